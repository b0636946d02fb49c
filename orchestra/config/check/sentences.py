"""What pydantic found, in sentences for whoever wrote the file."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from orchestra.config.problems import Mistake, Path
from orchestra.suggest import meant

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


def mistakes(error: ValidationError, model: type[BaseModel], where: Path = ()) -> Iterator[Mistake]:
    """Every mistake that pydantic found in what stands at `where`."""
    for found in error.errors(include_url=False):
        yield _mistake(found, model, where)


def _mistake(found: ErrorDetails, model: type[BaseModel], where: Path) -> Mistake:
    path: Path = (*where, *found["loc"])
    kind, given, context = found["type"], found["input"], found.get("ctx", {})
    if kind == "extra_forbidden":
        word = str(path[-1])
        return Mistake(
            path, f"unknown key `{word}`{meant(word, keys_at(model, found['loc'][:-1]))}", at_key=True
        )
    if kind == "missing":
        return Mistake(path[:-1], f"`{path[-1]}` is missing", at_key=True)
    return Mistake(path, _sentence(kind, path, given, context))


def _sentence(kind: str, path: Path, given: Any, context: Mapping[str, Any]) -> str:
    name = _name(path)
    if kind in _NEEDED:
        return f"{name}: {_NEEDED[kind]}, not {value_text(given)}{_quotes(kind, given)}"
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


RULE: Final = "a name is up to 64 letters, digits, `_` and `-`, beginning with a letter or digit"


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
        fields: Mapping[str, FieldInfo] = kind.model_fields
        field = next((each for name, each in fields.items() if step in (name, each.alias)), None)
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


def _quotes(kind: str, given: Any) -> str:
    numeric = isinstance(given, bool | int | float)
    return "; put it in quotes" if kind == "string_type" and numeric else ""
