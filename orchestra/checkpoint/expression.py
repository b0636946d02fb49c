"""The door to minijinja: conditions over plain data.

An expression may use only the names it is given, must say yes or no, and is bounded in work.
"""

from collections.abc import Collection, Mapping
from typing import Any

import minijinja

from orchestra.errors import BadExpression
from orchestra.limits import EXPRESSION_FUEL


class Condition:
    """An expression that was checked before it is used."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        self.text = text
        self._environment = minijinja.Environment(undefined_behavior="strict")
        self._environment.fuel = EXPRESSION_FUEL
        self.names = self._names(known)

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it holds for these values; raises `BadExpression`.

        Where it looks at something that is not there it does not hold; `is defined` asks for that.
        """
        try:
            outcome = self._environment.eval_expr(self.text, **values)
        except minijinja.TemplateError as error:
            if error.kind == "UndefinedError":
                return False
            raise BadExpression(expression=self.text, reason=_first_line(error)) from None
        if not isinstance(outcome, bool):
            shown = type(outcome).__name__
            raise BadExpression(
                expression=self.text, reason=f"it gives {shown}, not true or false; compare it"
            )
        return outcome

    def _names(self, known: Collection[str]) -> frozenset[str]:
        try:
            used = self._environment.undeclared_variables_in_str("{{ " + self.text + " }}")
            self._environment.eval_expr(f"false and ({self.text})")
        except minijinja.TemplateError as error:
            raise BadExpression(expression=self.text, reason=_first_line(error)) from None
        unknown = sorted(set(used) - set(known))
        if unknown:
            names = ", ".join(sorted(known))
            raise BadExpression(expression=self.text, reason=f"it names {unknown[0]!r}; there are {names}")
        return frozenset(used)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]
