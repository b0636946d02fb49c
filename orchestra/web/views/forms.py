"""Values as JSON within a budget: what does not fit is said to be there and can be asked for.

Odd values have the forms of `docs/reference/json-form.md`. A page needs three more:

    {"$at": 1763218222118000}                      an instant of our own, microseconds since 1970
    {"$cut": {"text": "…", "size": 70000}}         the beginning of a long text (or "bytes", as base64)
    {"$more": {"kind": "object", "count": 1200}}   a collection that was not opened
"""

import json
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from orchestra.codec.json_values import to_json
from orchestra.codec.loader import Loader
from orchestra.history.places import Place
from orchestra.limits import WEB_COLLECTION_ITEMS, WEB_TEXT_CHARS
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.web.views.common import Json

_COLLECTIONS: Final = (dict, Table, Vec, list, tuple)
_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    ((dict, Table), "object"),
    ((Vec, list, tuple, set, frozenset), "array"),
    (str, "text"),
    (bytes, "bytes"),
    (bool, "bool"),
    ((int, float), "number"),
    (type(None), "null"),
)
_MORE_BYTES: Final = 40
_ODD: Final = 10**14
"""A smaller number is neither an instant nor too large for JSON."""
_THEIRS: Final = frozenset(
    {"inputs", "result", "details", "value", "items", "entries", "private", "content", "intent", "outcome"}
    | {"answer", "data", "definition"}
)
"""Fields of a state below which everything was handed in by agents and people."""


class Former:
    """Makes forms, breadth first, until a budget of JSON bytes is used up."""

    def __init__(self, loader: Loader, budget: int) -> None:
        self._loader, self._left = loader, budget
        self._waiting: deque[tuple[Place, Any, str | int]] = deque()
        self.whole = True
        """Whether nothing had to be left out."""

    def form(self, place: Place, offset: int = 0, limit: int = WEB_COLLECTION_ITEMS) -> Any:
        """The form of an opened place; of a collection the entries from `offset` on, at most `limit`."""
        if not isinstance(place.held, _COLLECTIONS):
            return self._shallow(place, whole_text=not isinstance(place, _Plain))
        holder: dict[str | int, Any] = {}
        entries = list(place.part(offset, limit))
        if len(entries) < len(place.held):
            self.whole = False
        self._expand(place, entries, holder, "")
        while self._waiting:
            below, into, name = self._waiting.popleft()
            if len(below.held) > WEB_COLLECTION_ITEMS or len(below.held) * 4 > self._left:
                self.whole = False
            else:
                self._expand(below, list(below.below()), into, name)
        return holder[""]

    def _expand(self, place: Place, entries: list[Place], into: Any, name: str | int) -> None:
        """Put a collection with its parts in place of the word that there is one, if it fits."""
        is_object = isinstance(place.held, dict | Table)
        keys = [escape_key(str(each.name)) if is_object else at for at, each in enumerate(entries)]
        parts = [self._part(each) for each in entries]
        cost = sum(size for _, size, _ in parts)
        cost += sum(len(str(each.name)) + 4 for each in entries) if is_object else len(entries)
        if cost > self._left and name != "":
            self.whole = False
            return
        self._left -= cost
        forms = [form for form, _, _ in parts]
        made: Any = dict(zip(keys, forms, strict=True)) if is_object else forms
        into[name] = {"$tuple": made} if isinstance(place.held, tuple) else made
        self._waiting.extend(
            (below, made, key) for key, (_, _, below) in zip(keys, parts, strict=True) if below is not None
        )

    def _part(self, place: Place) -> tuple[Any, int, Place | None]:
        """The form of a part, about how many bytes it takes, and the part itself when more is below it."""
        held, kind = place.held, type(place.held)
        if kind is str and len(held) <= WEB_TEXT_CHARS:
            return held, len(held) + 2, None
        if held is None or kind is bool or kind is float or (kind is int and held < _ODD):
            return to_json(held), 8, None
        opened = place.open(self._loader, large=False)
        form = self._shallow(opened)
        if isinstance(opened.held, _COLLECTIONS):
            return form, _MORE_BYTES, opened if len(opened.held) else None
        return form, _size(form), None

    def _shallow(self, place: Place, *, whole_text: bool = False) -> Any:
        held = place.held
        if place.instant is not None:
            return {"$at": held}
        if isinstance(held, _COLLECTIONS) and not len(held):
            return {} if isinstance(held, dict | Table) else {"$tuple": []} if held == () else []
        is_large = isinstance(held, set | frozenset) and len(held) > WEB_COLLECTION_ITEMS
        if is_large or isinstance(held, _COLLECTIONS):
            return {"$more": {"kind": kind_of(place), "count": len(held)}}
        if isinstance(held, str | bytes) and len(held) > WEB_TEXT_CHARS and not whole_text:
            return cut(held, WEB_TEXT_CHARS)
        return to_json(held)


def escape_key(name: str) -> str:
    """A key of an object; one that looks like a form gets another sign before it."""
    return f"${name}" if name.startswith("$") else name


def as_value(held: Any) -> Value:
    """A stored value, which may be large or stand in its place."""
    return held if isinstance(held, Value) else Value(held)


def cut(held: str | bytes, most: int) -> Json:
    """The beginning of a long text, or of bytes, and how long it is."""
    if isinstance(held, str):
        return {"$cut": {"text": held[:most], "size": len(held)}}
    return {"$cut": {"bytes": to_json(held[:most])["$bytes"], "size": len(held)}}


def _size(form: Any) -> int:
    """About how many bytes a shallow form takes."""
    if isinstance(form, str):
        return len(form) + 2
    if isinstance(form, dict):
        return len(json.dumps(form, ensure_ascii=False))
    return 8


def kind_of(place: Place) -> str:
    """What stands at an opened place, in a word."""
    if place.instant is not None:
        return "time"
    return next((word for kind, word in _KINDS if isinstance(place.held, kind)), "other")


def data_form(value: Any, path: tuple[str | int, ...], loader: Loader, budget: int) -> Any:
    """The form of ordinary data that stands at a path of a state."""
    theirs = not _THEIRS.isdisjoint(path)
    return Former(loader, budget).form(_Plain(value, theirs, path[-1] if path else ""))


class _Plain(Place):
    """A place in ordinary data, where bytes are bytes."""

    def open(self, loader: Loader, *, large: bool = True) -> Place:
        """Itself: everything is open already."""
        return self

    def below(self) -> Iterator[Place]:
        """What stands one step below; what people handed in is told by the field's name."""
        if isinstance(self.held, dict):
            for name, each in self.held.items():
                yield _Plain(each, self.theirs or name in _THEIRS, name)
        else:
            yield from (_Plain(each, self.theirs, at) for at, each in enumerate(self.held))
