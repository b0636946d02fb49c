"""A document as the data that conditions and queries see.

Fields that are not stored are filled in with their defaults, unless that is None. A context name is its
data, whatever its reducer (`readable_document`).
"""

from collections.abc import Iterable, Sequence
from functools import cache, reduce
from typing import Any, NewType, cast, get_args, get_origin

import attrs

from orchestra.codec.document import Document
from orchestra.codec.fields import default_of
from orchestra.codec.loader import Loader
from orchestra.history.paths import MISSING, plain_data
from orchestra.model.reducers import ContextValue
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

_CONTENT = ("value", "items", "entries", "total", "largest")


class _Readable(dict[str, Any]):
    """A document that was made readable."""


def readable_document(document: Document) -> Document:
    """A document in which a context name is its data: what people and expressions mean by `context.NAME`."""
    if isinstance(document, _Readable):
        return document
    made = _Readable(document)
    if (held := document.get("context")) is not None:
        made["context"] = Table((name, _content(each)) for name, each in held.items())
    return made


def readable_path(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """The path of a stored place in a readable document."""
    return (*path[:2], *path[3:]) if path[:1] in (("context",), ["context"]) else tuple(path)


def _content(held: dict[str, Any]) -> Any:
    """What a context value holds, without how contributions join it."""
    return next((held[name] for name in _CONTENT if name in held), Table())


@cache
def field_types(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Type and default of every field of a class."""
    resolved = attrs.fields(attrs.resolve_types(kind))
    return {field.name: (field.type, default_of(field)) for field in resolved}


def variable_names() -> list[str]:
    """The names a condition may use."""
    return list(field_types(State))


def type_below(kind: Any, step: str | int) -> Any:
    """The type one step below a type of the model; None where data begins that people handed in."""
    if kind is None:
        return None
    each, fields = _types_below(kind)
    if fields is None:
        return each
    return None if step == "context" else fields.get(str(step))


@cache
def _types_below(kind: Any) -> tuple[Any, dict[str, Any] | None]:
    """The type of what a collection holds; of a class those of its fields."""
    if get_origin(kind) in (Vec, Table, tuple):
        return _type_of_part(get_args(kind)[0]), None
    if not attrs.has(kind):
        return None, {}
    return None, {name: _type_of_part(held) for name, (held, _) in field_types(kind).items()}


def _type_of_part(kind: Any) -> Any:
    below = _unwrap(kind)
    return None if below is Value else below


def type_at(path: Sequence[str | int]) -> Any:
    """The type at a path of a state; None inside what people handed in."""
    return reduce(type_below, path, cast("Any", State))


def plain_default(default: Any, *, nothing: bool = True) -> Any:
    """A default as ordinary data; without `nothing` its fields that are None are left out."""
    if isinstance(default, Table):
        return {}
    if isinstance(default, Vec | tuple):
        return []
    if attrs.has(type(default)):
        names = field_types(cast("Any", type(default)))
        made = {name: plain_default(getattr(default, name), nothing=nothing) for name in names}
        return made if nothing else {name: each for name, each in made.items() if each is not None}
    return None if default is attrs.NOTHING else default


class Variables:
    """Makes facts of documents, one after the other; a part that did not change is not made again."""

    def __init__(self, names: Iterable[str], loader: Loader, *, nothing: bool = False) -> None:
        self._nothing = nothing  # whether fields that are nothing are told too
        self._names = tuple(names)
        self._loader = loader
        self._made: dict[str, tuple[Any, Any]] = {}

    def of(self, document: Document) -> dict[str, Any]:
        made = {name: self._fact(name, document.get(name, MISSING)) for name in self._names}
        return self._there(made)

    def _fact(self, name: str, held: Any) -> Any:
        known = self._made.get(name)
        if known is not None and known[0] is held:
            return known[1]
        kind, default = field_types(State)[name]
        missing = held is MISSING
        made = plain_default(default, nothing=self._nothing) if missing else self._complete(held, kind)
        self._made[name] = (held, made)
        return made

    def _complete(self, held: Any, kind: Any) -> Any:
        kind = _unwrap(kind)
        if held is None:
            return None
        if kind == ContextValue:
            return plain_data(_content(held), self._loader)
        if isinstance(held, Table):
            return {key: self._complete(each, get_args(kind)[0]) for key, each in held.items()}
        if isinstance(held, Vec | list):
            return [self._complete(each, get_args(kind)[0]) for each in held]
        if not isinstance(held, dict) or not attrs.has(kind):
            return plain_data(held, self._loader)
        return self._there(
            {
                name: self._complete(held[name], field)
                if name in held
                else plain_default(default, nothing=self._nothing)
                for name, (field, default) in field_types(kind).items()
            }
        )

    def _there(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The facts without those that are nothing: to an expression nothing is smaller than any number."""
        return facts if self._nothing else {name: fact for name, fact in facts.items() if fact is not None}


def _unwrap(kind: Any) -> Any:
    """The type inside `X | None` and inside an id."""
    if isinstance(kind, NewType):
        return kind.__supertype__
    arguments = get_args(kind)
    if get_origin(kind) not in (Vec, Table, tuple) and len(arguments) == 2 and arguments[1] is type(None):
        return _unwrap(arguments[0])
    return kind
