"""Validation that goes on after the first mistake.

What pydantic refuses is reported and cut out of a copy, and the rest is validated again, so that the checks
of names, graph and expressions run over what is left.
"""

import copy
from typing import Any, Generic, TypeVar

import attrs
from pydantic import ValidationError

from orchestra.config.check.sentences import mistakes
from orchestra.config.forms import Form
from orchestra.config.problems import Mistake, Path

_ROUNDS = 4
_NAME = "workflow"
F = TypeVar("F", bound=Form)


@attrs.frozen
class Validation(Generic[F]):
    """A form, as far as one could be made."""

    form: F | None
    mistakes: tuple[Mistake, ...] = ()
    cut: tuple[Path, ...] = ()  # what is missing from the form although it was written


def validate_form(data: Any, model: type[F], where: Path = ()) -> Validation[F]:
    """The form of some data, which stands at `where`, and what pydantic found wrong with it."""
    try:
        return Validation(model.model_validate(data))
    except ValidationError as error:
        found = tuple(mistakes(error, model, where))
        form, cut = _rest(copy.deepcopy(data), model, error)
        return Validation(form, found, cut)


def _rest(data: Any, model: type[F], error: ValidationError) -> tuple[F | None, tuple[Path, ...]]:
    """The form of what is left when everything refused has been cut out."""
    cut: list[Path] = []
    for _ in range(_ROUNDS):
        gone: list[Path] = []
        for found in error.errors(include_url=False):
            path: Path = found["loc"]
            missing = found["type"] == "missing"
            if missing and path == ("name",) and isinstance(data, dict):
                data["name"] = _NAME
            elif not any(path[: len(each)] == each for each in gone):
                out = _cut_out(data, path[:-1] if missing else path)
                if out is None:
                    return None, tuple(cut)
                gone.append(out)
            cut.append(path)
        try:
            return model.model_validate(data), tuple(cut)
        except ValidationError as again:
            error = again
    return None, tuple(cut)


def _cut_out(data: Any, path: Path) -> Path | None:
    """Remove the key nearest to a path and return where it stood; None when there is none.

    An item of a list is emptied instead, because the others would move.
    """
    owner: Any = None
    end = 0
    for at, step in enumerate(path, start=1):
        if isinstance(data, dict) and step in data:
            owner, end = data, at
        elif not (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            break
        elif not isinstance(data[step], dict | list):
            data[step] = {}
            return path[:at]
        data = data[step]
    if owner is None:
        return path if not path or path[0] == "name" else None
    del owner[path[end - 1]]
    return path[:end]
