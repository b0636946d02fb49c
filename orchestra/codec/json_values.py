"""The JSON form of values: what JSON has is written as it is, the rest in marked forms that come back exact.

    {"$bytes": "AAH/"}                    bytes, as base64
    {"$int": "90071992547409930"}         an integer that not every JSON reader keeps exactly
    {"$float": "nan"}                     nan, inf or -inf; "nan:7ff8000000000001" for an unusual nan
    {"$tuple": […]}, {"$set": […]}, {"$frozenset": […]}
    {"$datetime": "2026-11-15T14:30:22.118000+01:00"}
    {"$large": {"digest": "…", "size": 70000}}    a large value, left in the store

A key of a dictionary that begins with "$" is written with one more "$", so that no data looks like a form. A
number with a point or an exponent is a float, any other an integer.
"""

import base64
import json
import math
import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import attrs

from orchestra.ids import DIGEST_BYTES, Digest
from orchestra.limits import CODEC_DEPTH, VALUE_INTEGER_BITS

_EXACT_INTEGER: Final = (1 << 53) - 1
_INTEGER_CHARS: Final = VALUE_INTEGER_BITS // 3
_MARK: Final = "$"
_DEPTH: Final = CODEC_DEPTH * 3  # a form takes two levels


class BadForm(Exception):
    """JSON that no value has as its form."""


@attrs.frozen
class LargeValue:
    """Stands for a large value that was left in the store."""

    digest: Digest
    size: int


def canonical_json(form: object) -> bytes:
    """The bytes of a form that its digest is worked out over: sorted keys, no spaces, UTF-8."""
    return json.dumps(
        form, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def pretty_json(form: object) -> bytes:
    """The bytes of a form as people read it: indented by two spaces, UTF-8."""
    return json.dumps(form, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def to_json(value: Any) -> Any:
    """The form of a value."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if abs(value) <= _EXACT_INTEGER else {"$int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": _special(value)}
    if kind is dict:
        escaped = ((_MARK + key if key.startswith(_MARK) else key, item) for key, item in value.items())
        return {key: to_json(item) for key, item in escaped}
    if kind is list:
        return [to_json(item) for item in value]
    return _mark(value, kind)


def _mark(value: Any, kind: type) -> dict[str, Any]:
    if kind is tuple:
        return {"$tuple": [to_json(item) for item in value]}
    if kind is set or kind is frozenset:
        return {f"${kind.__name__}": sorted([to_json(item) for item in value], key=canonical_json)}
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if kind is datetime:
        return {"$datetime": value.isoformat(timespec="microseconds")}
    assert kind is LargeValue, f"BUG: a {kind.__name__} cannot have been stored"
    return {"$large": {"digest": value.digest.hex(), "size": value.size}}


def _special(value: float) -> str:
    bits = struct.pack(">d", value).hex()
    return repr(value) if value == value or bits == "7ff8000000000000" else f"nan:{bits}"


def from_json(form: Any, depth: int = 0) -> Any:
    """The value that has this form; raises `BadForm`."""
    if depth > _DEPTH:
        raise BadForm("it is nested too deeply")
    if isinstance(form, list):
        return [from_json(item, depth + 1) for item in form]
    if not isinstance(form, dict):
        return form
    if len(form) == 1:
        name, content = next(iter(form.items()))
        if name.startswith(_MARK) and not name.startswith(_MARK * 2):
            return _read_marked(name, content, depth)
    return {_unescape(key): from_json(item, depth + 1) for key, item in form.items()}


def _read_marked(name: str, content: Any, depth: int) -> Any:
    reader = _READERS.get(name)
    if reader is None:
        raise BadForm(f"there is no form {name!r}")
    try:
        return reader(content, depth + 1)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, struct.error) as error:
        raise BadForm(f"{name!r} cannot be read ({error})") from None


def _unescape(key: str) -> str:
    if not key.startswith(_MARK):
        return key
    if not key.startswith(_MARK * 2):
        raise BadForm(f"the key {key!r} is neither a form nor escaped")
    return key[1:]


def _int(content: str, _depth: int) -> int:
    if len(content) > _INTEGER_CHARS or not content.removeprefix("-").isdecimal() or not content.isascii():
        raise ValueError("it is no integer, or too long")
    return int(content)


def _float(content: str, _depth: int) -> float:
    if content in ("nan", "inf", "-inf"):
        return float(content)
    found: float = struct.unpack(">d", bytes.fromhex(content.removeprefix("nan:")))[0]
    if found == found:
        raise ValueError("it is not nan")
    return found


def _items(content: Any, depth: int) -> list[Any]:
    if not isinstance(content, list):
        raise TypeError("it is not a list")
    return [from_json(item, depth) for item in content]


def _members(make: Callable[[list[Any]], Any]) -> Callable[[Any, int], Any]:
    def read(content: Any, depth: int) -> Any:
        items = _items(content, depth)
        members = make(items)
        if len(members) != len(items):
            raise ValueError("a member stands there twice")
        return members

    return read


def _datetime(content: str, _depth: int) -> datetime:
    found = datetime.fromisoformat(content)
    if found.tzinfo is None:
        raise ValueError("it has no zone")
    return found


def _large(content: Any, _depth: int) -> LargeValue:
    digest, size = bytes.fromhex(content["digest"]), content["size"]
    if len(digest) != DIGEST_BYTES or type(size) is not int or len(content) != 2:
        raise ValueError("it is not a digest and a size")
    return LargeValue(Digest(digest), size)


_READERS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "$bytes": lambda content, _: base64.b64decode(content, validate=True),
    "$int": _int,
    "$float": _float,
    "$tuple": lambda content, depth: tuple(_items(content, depth)),
    "$set": _members(set),
    "$frozenset": _members(frozenset),
    "$datetime": _datetime,
    "$large": _large,
}
FORMS: Final = tuple(_READERS)
