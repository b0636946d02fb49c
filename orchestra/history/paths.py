"""Paths: how people name a place in a state.

For example `tasks.analyse/1/structure.result.summary`, `decisions[-1]` or `context["a name"]`.

A name follows a dot; a name with other characters than letters, digits, `_`, `-` and `/` is written in
brackets and double quotes; a position is written in brackets and may count from the end.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import attrs

from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.codec.readers import Address
from orchestra.codec.values import thaw_bytes
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_/-]+")
_STEP = re.compile(r"\.?([A-Za-z0-9_/-]+)|\[(-?\d+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
MISSING: Any = object()


class BadPath(Exception):
    """A text that is no path; carries the position where it stops making sense."""


def parse_path(text: str) -> Path:
    """The steps of a path; raises `BadPath`."""
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (steps and found.group(1) and text[at] != "."):
            raise BadPath(f"cannot read {text[at:]!r} at character {at + 1}")
        name, position, quoted = found.groups()
        steps.append(name or (int(position) if position else json.loads(quoted)))
        at = found.end()
    return tuple(steps)


def format_path(path: Sequence[str | int]) -> str:
    """A path as people write it."""
    text = "".join(_written(step) for step in path)
    return text.removeprefix(".") or "."


def _written(step: str | int) -> str:
    if isinstance(step, str) and _BARE.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=False)}]"


@attrs.frozen
class Inside:
    """Something inside a value that people handed in. There bytes are bytes, not a frozen value."""

    data: Any


def walk(held: Any, path: Sequence[str | int], loader: Loader) -> Any:
    """What stands at `path` in a document, or `MISSING`. Values are opened on the way."""
    for step in path:
        held = child(open_value(held, loader), step)
        if held is MISSING:
            return MISSING
    return held


def child(held: Any, step: str | int) -> Any:
    """What stands one step below, or `MISSING`."""
    if isinstance(held, Inside):
        below = child(held.data, step)
        return MISSING if below is MISSING else Inside(below)
    if isinstance(held, Vec | list | tuple) and isinstance(step, int):
        return held[step] if -len(held) <= step < len(held) else MISSING
    if isinstance(held, Table) and isinstance(step, str):
        position = held.position(step)
        return MISSING if position is None else held.pairs[position][1]
    if isinstance(held, dict):
        return held.get(step, MISSING)
    return MISSING


def open_value(held: Any, loader: Loader) -> Any:
    """A frozen value opened, as `Inside`; anything else as it is."""
    if isinstance(held, bytes):
        return Inside(thaw_bytes(held))
    if isinstance(held, Value):
        encoded = loader.value(held).encoded
        assert encoded is not None, "BUG: a fetched value has its bytes"
        return Inside(thaw_bytes(encoded))
    return held


def open_data(held: Any, loader: Loader) -> Any:
    """The data of a frozen value, or of what stands inside one; anything else as it is."""
    found = open_value(held, loader)
    return found.data if isinstance(found, Inside) else found


def plain_data(held: Any, loader: Loader, *, large: bool = True) -> Any:
    """A part of a document as ordinary data: lists, dictionaries, atoms and what people handed in.

    With `large` off, a large value is given as a `LargeValue` instead of being fetched.
    """
    if isinstance(held, Vec | list):
        return [plain_data(each, loader, large=large) for each in held]
    if isinstance(held, Table | dict):
        return {key: plain_data(each, loader, large=large) for key, each in held.items()}
    if isinstance(held, Address):
        return held.digest.hex()
    if isinstance(held, Value) and not large and held.digest is not None:
        return LargeValue(held.digest, held.size)
    return open_data(held, loader)
