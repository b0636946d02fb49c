"""Plain data on its way in and out of an agent: private copies, and a safe way to name what was handed over.

An agent may keep what it was given and change it later, and change what it handed in. Neither may reach the
run, so both directions go through `copied`.
"""

from collections.abc import Mapping
from typing import Any, Final

from orchestra.limits import VALUE_DEPTH

_SHOWN_CHARS: Final = 80


def copied(value: Any, depth: int = 0) -> Any:
    """`value` with every container in it made anew.

    What is no plain data is left as it is, and so is what lies deeper than can be stored: whoever freezes
    the value refuses it by name.
    """
    kind = type(value)
    if kind not in _CONTAINERS or depth > VALUE_DEPTH:
        return value
    if kind is dict:
        return {key: copied(item, depth + 1) for key, item in value.items()}
    if kind is bytearray:
        return bytearray(value)
    return kind([copied(item, depth + 1) for item in value])


def copied_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of any type as a dictionary of its own."""
    return {key: copied(item) for key, item in value.items()}


def shown(value: object) -> str:
    """A short text for a value, whatever it is and however it behaves."""
    try:
        text = repr(value)
    except BaseException:
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset, bytearray})
