"""Facts: a document as the data that conditions and people's queries see.

Unlike in the stored form, a field that was left out because it had its default is filled in, unless that is
nothing. A context name is simply its data, whatever its reducer.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, NewType, cast, get_args, get_origin

import attrs

from orchestra.codec.document import Document
from orchestra.codec.fields import default_of
from orchestra.codec.loader import Loader
from orchestra.history.paths import MISSING, plain_data
from orchestra.model.reducers import ContextValue
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec

_CONTENT = ("value", "items", "entries", "total", "largest")


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Type and default of every field of a class."""
    resolved = attrs.fields(attrs.resolve_types(kind))
    return {field.name: (field.type, default_of(field)) for field in resolved}


def variable_names() -> list[str]:
    """The names a condition may use."""
    return list(_fields(State))


class Variables:
    """Makes facts of documents, one after the other; a part that did not change is not made again."""

    def __init__(self, names: Iterable[str], loader: Loader, *, nothing: bool = False) -> None:
        self._nothing = nothing  # whether fields that are nothing are told too
        self._names = tuple(names)
        self._loader = loader
        self._made: dict[str, tuple[Any, Any]] = {}

    def of(self, document: Document) -> dict[str, Any]:
        """The facts of one document."""
        made = {name: self._fact(name, document.get(name, MISSING)) for name in self._names}
        return self._there(made)

    def _fact(self, name: str, held: Any) -> Any:
        known = self._made.get(name)
        if known is not None and known[0] is held:
            return known[1]
        kind, default = _fields(State)[name]
        made = self._default(default) if held is MISSING else self._complete(held, kind)
        self._made[name] = (held, made)
        return made

    def _complete(self, held: Any, kind: Any) -> Any:
        kind = _unwrapped(kind)
        if held is None:
            return None
        if kind == ContextValue:
            return next(plain_data(held[name], self._loader) for name in _CONTENT if name in held)
        if isinstance(held, Table):
            return {key: self._complete(each, get_args(kind)[0]) for key, each in held.items()}
        if isinstance(held, Vec | list):
            return [self._complete(each, get_args(kind)[0]) for each in held]
        if isinstance(held, dict) and attrs.has(kind):
            return self._class(held, kind)
        return plain_data(held, self._loader)

    def _class(self, held: dict[str, Any], kind: Any) -> dict[str, Any]:
        return self._there(
            {
                name: self._complete(held[name], field) if name in held else self._default(default)
                for name, (field, default) in _fields(kind).items()
            }
        )

    def _there(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The facts without those that are nothing: to an expression nothing is smaller than any number."""
        return facts if self._nothing else {name: fact for name, fact in facts.items() if fact is not None}

    def _default(self, default: Any) -> Any:
        if isinstance(default, Table):
            return {}
        if isinstance(default, Vec | tuple):
            return []
        if attrs.has(type(default)):
            names = _fields(cast("Any", type(default)))
            return self._there({name: self._default(getattr(default, name)) for name in names})
        return None if default is attrs.NOTHING else default


def _unwrapped(kind: Any) -> Any:
    """The type inside `X | None` and inside an id."""
    if isinstance(kind, NewType):
        return kind.__supertype__
    arguments = get_args(kind)
    if get_origin(kind) not in (Vec, Table, tuple) and len(arguments) == 2 and arguments[1] is type(None):
        return _unwrapped(arguments[0])
    return kind
