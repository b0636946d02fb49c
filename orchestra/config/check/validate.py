"""Validation that goes on after the first mistake.

What pydantic refuses is reported and cut out of a copy, and the rest is validated again, so that the checks
of names, graph and expressions run over what is left.
"""

import copy
from typing import Any

import attrs
from pydantic import ValidationError

from orchestra.config.check.sentences import mistakes
from orchestra.config.models import WorkflowForm
from orchestra.config.problems import Mistake, Path

_ROUNDS = 4
_NAME = "workflow"


@attrs.frozen
class Validation:
    """A form, as far as one could be made."""

    form: WorkflowForm | None
    mistakes: tuple[Mistake, ...] = ()
    cut: tuple[Path, ...] = ()  # what is missing from the form although it was written


def validate_form(data: Any) -> Validation:
    """The form of a file's data, and what pydantic found wrong with it."""
    try:
        return Validation(WorkflowForm.model_validate(data))
    except ValidationError as error:
        found = tuple(mistakes(error, WorkflowForm))
        form, cut = _rest(copy.deepcopy(data), error)
        return Validation(form, found, cut)


def _rest(data: Any, error: ValidationError) -> tuple[WorkflowForm | None, tuple[Path, ...]]:
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
            return WorkflowForm.model_validate(data), tuple(cut)
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
