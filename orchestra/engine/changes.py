"""How two definitions differ, in lines that a person can read."""

from collections.abc import Iterator
from typing import Any

from orchestra.limits import DIFF_LINES


def changes(before: Any, after: Any) -> list[str]:
    """What was added, removed and changed, by place."""
    found = []
    for line in _changed("", before, after):
        found.append(line)
        if len(found) == DIFF_LINES:
            found.append("and more")
            break
    return found


def _changed(place: str, before: Any, after: Any) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, list) and isinstance(after, list):
        before, after = _named(before), _named(after)
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(each for each in after if each not in before)]:
            inner = f"{place}.{name}" if place else str(name)
            if name not in after:
                yield f"{inner} is gone"
            elif name not in before:
                yield f"{inner} is new"
            else:
                yield from _changed(inner, before[name], after[name])
        return
    yield f"{place} was {_shown(before)} and is {_shown(after)}"


def _named(items: list[Any]) -> dict[str, Any]:
    """A list by the names of its items, so that one that was inserted does not change all after it."""
    named: dict[str, Any] = {}
    for place, item in enumerate(items):
        name = item.get("id") or item.get("name") if isinstance(item, dict) else None
        named[str(name or place)] = item
    return named


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
