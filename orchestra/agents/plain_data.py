"""Plain data on its way in and out of an agent: private copies, and a safe way to name what was handed over.

An agent may keep what it was given and change it later, and change what it handed in. Neither may reach the
run, so what it is given goes through `copy_plain`, and what it hands in through `take_plain`.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final

from orchestra.codec.values import Room
from orchestra.limits import VALUE_DEPTH

_SHOWN_CHARS: Final = 80


def copy_plain(value: Any) -> Any:
    """`value` with every container in it made anew.

    What is no plain data is left as it is, and so is what lies deeper than can be stored: whoever freezes
    the value refuses it by name.
    """
    return _copied(value, 0, Room(things=inf, size=inf))


def take_plain(value: Any) -> Any:
    """The same for what an agent hands in; raises `ValueTooLarge` or `UnstorableValue` when it is too much.

    A few lists that hold each other twice are millions of things, and everything that looks into them after
    this would take as long as they are many.
    """
    return _copied(value, 0, Room())


def _copied(value: Any, depth: int, room: Room) -> Any:
    kind = type(value)
    if kind is str or kind is bytes:
        room.room -= len(value)
        return value
    if kind not in _CONTAINERS or depth > VALUE_DEPTH:
        return value
    if kind is bytearray:
        return bytearray(value)
    room.count(len(value))
    if kind is dict:
        made: Any = {key: _copied(item, depth + 1, room) for key, item in value.items()}
    else:
        made = kind([_copied(item, depth + 1, room) for item in value])
    room.weigh()
    return made


def copy_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of any type as a dictionary of its own."""
    return {key: copy_plain(item) for key, item in value.items()}


def short_text(value: object) -> str:
    """A short text for a value, whatever it is and however it behaves."""
    try:
        text = repr(value)
    except BaseException:
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset, bytearray})
