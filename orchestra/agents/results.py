"""What an agent returned, as the port has it."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

import attrs

from orchestra.agents.failures import misbehaviour
from orchestra.agents.plain_data import short_text
from orchestra.agents.reports import make
from orchestra.errors import AgentFailed
from orchestra.model.frozen import maker
from orchestra.model.records import Role
from orchestra.ports.agent import Assignment, Judgement, Result

_result: Final = maker(Result)
_ATOMS: Final = frozenset({type(None), bool, int, float, str, bytes})
"""What nobody can change afterwards, and need not be copied."""


def result_from(assignment: Assignment, returned: Any) -> Result | Judgement:
    """The result in what was returned; raises `AgentFailed` that names it when there is none."""
    try:
        return _judged(returned) if assignment.role == "apollo" else _worked(returned)
    except ValueError as error:
        raise wrong_result(assignment, str(error)) from None


def wrong_result(assignment: Assignment, why: str) -> AgentFailed:
    """The failure of an agent that returned what it must not."""
    return misbehaviour(assignment.agent, "WrongResult", f"what the agent returned cannot be used: {why}")


def expected_result(role: Role) -> str:
    """The word for what an agent of a role returns."""
    return "judgement" if role == "apollo" else "result"


def _worked(returned: Any) -> Result:
    if type(returned) in _ATOMS:
        return _result(output=returned)
    if isinstance(returned, Result):
        return make(Result, output=_value(returned.output), confidence=returned.confidence)
    if isinstance(returned, Judgement):
        raise ValueError("it is a Judgement, which only an evaluator returns")
    return make(Result, output=_value(returned))


def _judged(returned: Any) -> Judgement:
    if returned is None:
        return Judgement()  # it scored on the way
    if isinstance(returned, Judgement):
        return make(Judgement, **attrs.asdict(returned, recurse=False))
    if isinstance(returned, Mapping) and "scores" in returned:
        return make(Judgement, **_named(returned))
    raise ValueError(f"an evaluator returns a Judgement or a mapping with scores, not {short_text(returned)}")


def _named(fields: Mapping[Any, Any]) -> dict[str, Any]:
    named = dict(fields)
    for name in named:
        if not isinstance(name, str):
            raise ValueError(f"the name of a field must be text, not {short_text(name)}")
    return named


def _value(output: Any) -> Any:
    if inspect.iscoroutine(output):
        output.close()
        raise ValueError("it is a coroutine; an `await` is missing")
    return output
