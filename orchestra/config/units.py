"""Durations and sizes as people write them: `500ms`, `1h30m`, `64MB`; bare numbers are seconds or bytes."""

import re
from typing import Any, Final

from orchestra.limits import DURATION_SECONDS, KB, MB

DURATION_PATTERN: Final = r"^([0-9]+(\.[0-9]+)?\s*(us|ms|s|m|h|d)\s*)+$"
SIZE_PATTERN: Final = r"^[0-9]+\s*(B|KB|MB|GB)?$"
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|m|h|d)\s*")
_UNITS_US: Final = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_SIZE: Final = re.compile(r"([0-9]{1,15})\s*(|B|KB|MB|GB)", re.IGNORECASE)
_SIZES: Final = {"": 1, "B": 1, "KB": KB, "MB": MB, "GB": 1024 * MB}
_CHARS: Final = 40


def duration_us(value: Any) -> int:
    """A duration in microseconds; raises `ValueError` with a sentence."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a duration such as 30s, 5m or 1h30m is needed")
    us = _text_us(value) if isinstance(value, str) else value * 1_000_000
    if not 0 <= us <= DURATION_SECONDS * 1_000_000:
        raise ValueError(f"a duration lies between 0s and {DURATION_SECONDS // 86400}d")
    return round(us)


def size_bytes(value: Any) -> int:
    """A size in bytes; raises `ValueError` with a sentence."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("a size such as 500KB or 64MB is needed")
    return int(found[1]) * _SIZES[found[2].upper()]


def shown_duration(us: int) -> str:
    """Microseconds as a person writes them."""
    for unit in ("d", "h", "m", "s", "ms"):
        if us and us % _UNITS_US[unit] == 0:
            return f"{us // _UNITS_US[unit]}{unit}"
    return f"{us}us" if us else "0s"


def _text_us(text: str) -> float:
    stripped = text.strip()
    parts = list(_PART.finditer(stripped)) if len(stripped) <= _CHARS else []
    if not parts or sum(len(part[0]) for part in parts) != len(stripped):
        raise ValueError(f"{text[:_CHARS]!r} is not a duration; write it as 30s, 5m or 1h30m")
    return sum(float(part[1]) * _UNITS_US[part[2]] for part in parts)
