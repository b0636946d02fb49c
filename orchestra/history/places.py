"""Places in a state: what stands there, opened step by step, and the same as JSON."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import attrs

from orchestra.codec.document import Document
from orchestra.codec.json_values import LargeValue, to_json
from orchestra.codec.loader import Loader
from orchestra.codec.readers import Address
from orchestra.errors import UnknownPath
from orchestra.history.archive import Archive
from orchestra.history.paths import MISSING, BadPath, Inside, Path, child, format_path, open_value, parse_path
from orchestra.history.variables import (
    Variables,
    field_types,
    plain_default,
    readable_document,
    type_below,
    variable_names,
)
from orchestra.ids import Instant, iso
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.ports.store import Row

_INSTANTS: Final = frozenset({"at", "until"})
_PLAUSIBLE_MICROSECONDS: Final = 10**14


@attrs.frozen
class Place:
    """What stands somewhere in a state."""

    held: Any
    theirs: bool = False  # inside a value that people handed in
    name: str | int = ""  # the last step that leads here

    def open(self, loader: Loader, *, large: bool = True) -> "Place":
        """The same place with a frozen value opened; a large one only when asked for."""
        if self.theirs:
            return self
        if isinstance(self.held, Address):
            return Place(self.held.digest.hex(), False, self.name)
        if isinstance(self.held, Value) and not large and self.held.digest is not None:
            return Place(LargeValue(self.held.digest, self.held.size), True, self.name)
        found = open_value(self.held, loader)
        return Place(found.data, True, self.name) if isinstance(found, Inside) else self

    def below(self) -> Iterator["Place"]:
        """What stands one step below an opened place."""
        if isinstance(self.held, dict | Table):
            yield from (Place(each, self.theirs, name) for name, each in self.held.items())
        elif isinstance(self.held, Vec | list | tuple):
            yield from (Place(each, self.theirs, at) for at, each in enumerate(self.held))

    def newest(self, count: int) -> Iterator["Place"]:
        """The last places one step below an opened collection, without fetching the others."""
        held = len(self.held) if isinstance(self.held, dict | Table | Vec | list | tuple) else 0
        return self.part(max(held - count, 0), count)

    def part(self, start: int, count: int) -> Iterator["Place"]:
        """Some places one step below an opened collection, without fetching the others."""
        if isinstance(self.held, Table):
            return (Place(each, False, name) for name, each in self.held.pairs[start : start + count])
        if isinstance(self.held, Vec):
            items = self.held[start : start + count]
            return (Place(each, self.theirs, at) for at, each in enumerate(items, start))
        return islice(self.below(), start, start + count)

    @property
    def instant(self) -> Instant | None:
        """The instant that stands here, as far as its name and its size tell."""
        named = isinstance(self.name, str) and (self.name in _INSTANTS or self.name.endswith("_at"))
        fits = type(self.held) is int and self.held >= _PLAUSIBLE_MICROSECONDS
        return Instant(self.held) if named and fits and not self.theirs else None


def read_path(text: str, reference: str) -> Path:
    """A path as people type it; raises `UnknownPath`."""
    try:
        return parse_path(text)
    except (BadPath, ValueError) as bad:
        raise UnknownPath(reference=reference, path=text, reason=str(bad)) from None


def look(archive: Archive, row: Row, path: Path) -> Place:
    """What stands at a path in a snapshot, fields with their default value included; raises `UnknownPath`."""
    document = readable_document(archive.document_of(row))
    place = _walk(Place(document), path, archive.loader) or _default(document, path, archive.loader)
    if place is None:
        reason = _reason(document, path, archive.loader)
        raise UnknownPath(reference=f"{row.run}@{row.seq}", path=format_path(path), reason=reason)
    return place


def _walk(place: Place, path: Path, loader: Loader) -> Place | None:
    for step in path:
        inner = place.open(loader)
        held = child(inner.held, step)
        if held is MISSING:
            return None
        place = Place(held, inner.theirs, step)
    return place


def _default(document: Document, path: Path, loader: Loader) -> Place | None:
    """A field that is not stored because it has its default value."""
    if not path or path[0] not in variable_names():
        return None
    name = str(path[0])
    if name == "context":
        return Place(Table(), False, name) if path == ("context",) else None
    facts = Variables([name], loader, nothing=True).of(document)
    found = _walk(Place(facts, True), path, loader)
    return None if found is None else Place(found.held, True, found.name)


def _reason(document: Document, path: Path, loader: Loader) -> str:
    """How far a path leads, and what there is instead."""
    for count in range(len(path) - 1, -1, -1):
        place = _walk(Place(document), path[:count], loader)
        if place is None:
            continue
        place = place.open(loader)
        held = place.held
        where = f"{format_path(path[:count])!r}" if count else "the state"
        if isinstance(held, Vec | list | tuple):
            return f"{where} has {len(held)} entries, counted from 0"
        names = [format_path([each.name]) for each in place.newest(6)]
        if not names:
            return f"{where} has no parts"
        return f"{where} has {', '.join(names)}" + (" and more" if len(held) > len(names) else "")
    return "no such field, key or position"


def in_reading_order(document: Document) -> Document:
    """The fields of a state in the order in which people read them, each context name simply its data."""
    names, document = variable_names(), readable_document(document)
    known = [name for name in names if name in document]
    return {name: document[name] for name in [*known, *(each for each in document if each not in names)]}


def place_json(place: Place, loader: Loader, *, kind: Any = None, large: bool = True) -> Any:
    """What stands at a place as JSON; instants of our own are ISO text.

    With the `kind` of the model that stands there, fields that have their default are told too.
    """
    place = place.open(loader, large=large)
    if place.instant is not None:
        return iso(place.instant)
    if place.theirs:
        return to_json(place.held)
    below = (
        (each.name, place_json(each, loader, kind=type_below(kind, each.name), large=large))
        for each in place.below()
    )
    if isinstance(place.held, dict | Table):
        told: dict[str, Any] = {}
        if isinstance(place.held, dict) and kind is not None and attrs.has(kind):
            defaults = field_types(kind).items()
            told = {name: to_json(plain_default(default)) for name, (_, default) in defaults}
        return told | {str(name): each for name, each in below}
    if isinstance(place.held, Vec | list | tuple):
        return [each for _, each in below]
    return to_json(place.held)
