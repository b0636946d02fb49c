"""Values as people read them: in one line, cut where they are long, with their size."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from orchestra.cli.render.screen import Span, fit, length
from orchestra.cli.render.text import count, safe, size
from orchestra.cli.render.times import duration, full, short
from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.history.places import Large, Place
from orchestra.model.tree import Table, Vec

LONG_CHARS: Final = 200
"""A text longer than this is cut, unless everything is asked for."""
_FIRST: Final = (
    "status",
    "description",
    "reason",
    "message",
    "kind",
    "role",
    "phase",
    "agent",
    "value",
    "task",
)
_LAST: Final = ("failure", "result", "private", "details", "history")


def is_collection(held: Any) -> bool:
    """Whether something has parts that a path leads to."""
    return isinstance(held, dict | list | tuple | Vec | Table)


def parts_of(place: Place) -> Iterator[Place]:
    """The parts of an opened place; the fields of our own in the order in which people ask for them."""
    ours = isinstance(place.held, dict) and not place.theirs
    yield from sorted(place.below(), key=_weight) if ours else place.below()


def _weight(part: Place) -> tuple[int, int]:
    if part.name in _FIRST:
        return 0, _FIRST.index(str(part.name))
    if part.instant is not None:
        return 3, 0
    return (2, _LAST.index(str(part.name))) if part.name in _LAST else (1, 0)


def atom(place: Place, *, whole: bool = False, brief: bool = False) -> Span:
    """An opened place without parts, in one span."""
    held = place.held
    if place.instant is not None:
        return (short(place.instant, with_date=False), "dim") if brief else (full(place.instant), "")
    match held:
        case None:
            return "none", "dim"
        case bool():
            return str(held).lower(), "accent"
        case float():
            return repr(held) if whole else f"{held:.6g}", "accent"
        case int():
            return f"{held}{_meaning(place)}", "accent"
        case str():
            return _text(held, whole), ""
        case bytes():
            return f"{held[:16].hex(' ')}{'…' if len(held) > 16 else ''} ({size(len(held))})", "dim"
        case datetime():
            return held.isoformat(" "), ""
        case Large() | LargeValue():
            return f"a value of {size(held.size)}", "dim"
        case set() | frozenset():
            return "{" + ", ".join(sorted(_member(each) for each in held)) + "}", ""
        case _:
            return str(held), ""


def _meaning(place: Place) -> str:
    """A figure of our own in a unit that people use, behind the exact one."""
    name = "" if place.theirs else str(place.name)
    if name.endswith("_us"):
        return f" ({duration(place.held)})"
    if name.endswith("_bytes"):
        return f" ({size(place.held)})"
    return f" ({place.held / 1_000_000:.2f})" if name.endswith("_micros") else ""


def _text(text: str, whole: bool) -> str:
    body = text.strip("\n")
    if not body:
        return repr(text)
    if whole or (len(body) <= LONG_CHARS and "\n" not in body):
        return body
    first = body.split("\n", 1)[0][:LONG_CHARS]
    lines = body.count("\n") + 1
    return f"{first}… ({count(lines, 'line') if lines > 1 else count(len(text), 'character')})"


def _member(held: Any) -> str:
    return held if isinstance(held, str) else repr(held)


def inline(place: Place, loader: Loader, *, room: int, bare: bool = False) -> tuple[list[Span], bool]:
    """A place in one line of at most `room` columns, and whether it is all there."""
    spans: list[Span] = []
    left = room
    for text, style in _spans(place.open(loader, large=False), loader, bare):
        spans.append((text, style))
        left -= len(safe(text))
        if left < 0:
            return fit(spans, room), length(spans) <= room
    return spans, True


def is_abridged(place: Place, loader: Loader) -> bool:
    """Whether one line about a place leaves out some of its text."""
    place = place.open(loader)
    if isinstance(place.held, str):
        return _text(place.held, whole=False) != _text(place.held, whole=True)
    return is_collection(place.held) and any(is_abridged(part, loader) for part in place.below())


def _spans(place: Place, loader: Loader, bare: bool) -> Iterator[Span]:
    if not is_collection(place.held):
        yield atom(place, brief=True)
        return
    named = isinstance(place.held, dict | Table)
    begin, end = ("", "") if bare and named else "{}" if named else "[]"
    yield begin, "dim"
    for at, part in enumerate(parts_of(place)):
        yield ", " if at else "", "dim"
        yield f"{part.name}: " if named else "", "dim"
        yield from _spans(part.open(loader, large=False), loader, False)
    yield end, "dim"
