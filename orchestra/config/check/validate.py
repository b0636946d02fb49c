"""Validation by pydantic that goes on after the first mistake, and tells each in a sentence.

What pydantic refuses is reported and cut out of a copy, and the rest is validated again, so that the checks
of names, graph and expressions run over what is left.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, get_args

import attrs
from pydantic import BaseModel, ValidationError

from orchestra.config.forms import Form
from orchestra.config.problems import Mistake, Path
from orchestra.suggest import meant

_ROUNDS = 4
_NAME = "workflow"
_SHOWN_CHARS: Final = 40
_NEEDED: Final = {
    "string_type": "a text is needed",
    "int_type": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "float_type": "a number is needed",
    "bool_type": "`true` or `false` is needed",
    "list_type": "a list is needed",
    "dict_type": "a mapping is needed",
    "model_type": "a mapping is needed",
    "model_attributes_type": "a mapping is needed",
    "finite_number": "a finite number is needed",
}
_BOUNDS: Final = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
}
RULE: Final = "a name is up to 64 letters, digits, `_` and `-`, beginning with a letter or digit"
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


# --- in sentences


def mistakes(error: ValidationError, model: type[BaseModel], where: Path = ()) -> Iterator[Mistake]:
    """Every mistake that pydantic found in what stands at `where`."""
    for found in error.errors(include_url=False):
        path: Path = (*where, *found["loc"])
        if found["type"] == "extra_forbidden":
            word = str(path[-1])
            known = keys_at(model, found["loc"][:-1])
            yield Mistake(path, f"unknown key `{word}`{meant(word, known)}", at_key=True)
        elif found["type"] == "missing":
            yield Mistake(path[:-1], f"`{path[-1]}` is missing", at_key=True)
        else:
            yield Mistake(path, _sentence(found["type"], path, found["input"], found.get("ctx", {})))


def _sentence(kind: str, path: Path, given: Any, context: Mapping[str, Any]) -> str:
    name = _name(path)
    if kind in _NEEDED:
        is_number = kind == "string_type" and isinstance(given, bool | int | float)
        return f"{name}: {_NEEDED[kind]}, not {value_text(given)}{'; put it in quotes' if is_number else ''}"
    if kind in _BOUNDS:
        return f"{name} must be {_BOUNDS[kind].format(**context)}, not {value_text(given)}"
    if kind == "literal_error":
        expected = str(context["expected"]).replace(" or ", ", ")
        known = [part.strip("' ") for part in expected.split(", ")]
        return f"{name} cannot be {value_text(given)}{meant(str(given), known)}"
    if kind == "string_pattern_mismatch":
        return f"{name} cannot be {value_text(given)}; {RULE}"
    if kind == "too_short":
        return f"{name} needs at least one entry"
    if kind == "said":
        return f"{name}: {context['sentence']}"
    return f"{name} cannot be {value_text(given)}"


def value_text(value: Any) -> str:
    """A value in a sentence."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return repr(value if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + "…")
        case _:
            return f"the number {str(value)[:_SHOWN_CHARS]}"


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that may stand in the mapping at a path."""
    kind: Any = model
    for step in path:
        kind = _below(kind, step)
    return [field.alias or name for name, field in kind.model_fields.items()] if _is_model(kind) else []


def _below(kind: Any, step: str | int) -> Any:
    """The type one step further down."""
    if _is_model(kind):
        fields = kind.model_fields.items()
        field = next((each for name, each in fields if step in (name, each.alias)), None)
        return _bare(field.annotation) if field is not None else None
    arguments = get_args(kind)
    return _bare(arguments[-1]) if arguments else None


def _bare(kind: Any) -> Any:
    """A type without annotations and without `None`."""
    while hasattr(kind, "__metadata__"):
        kind = kind.__origin__
    members = [each for each in get_args(kind) if each is not type(None)]
    optional = type(None) in get_args(kind) and len(members) == 1
    return _bare(members[0]) if optional else kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _name(path: Path) -> str:
    if path[-1:] == ("proceed or fail",):  # the short form of a reaction has no key of its own
        path = path[:-1]
    words = [str(step) for step in path if isinstance(step, str)]
    counted = f" (entry {path[-1] + 1})" if path and isinstance(path[-1], int) else ""
    return f"`{words[-1]}`{counted}" if words else "the file"
