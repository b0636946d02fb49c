"""Scalars of the YAML 1.2 core schema: `on`, `yes` and `12:30:00` are text, as they look."""

import re
from typing import Final, TypeAlias

from orchestra.limits import VALUE_INTEGER_BITS

Scalar: TypeAlias = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMERIC: Final = frozenset("0123456789+-.")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TAG: Final = "tag:yaml.org,2002:"
_INTEGER_CHARS: Final = VALUE_INTEGER_BITS  # in the base with the fewest bits in a digit, and then some

_TYPES: Final[dict[str, type]] = {"int": int, "float": float, "bool": bool, "null": type(None)}


class BadScalar(Exception):
    """A scalar that cannot be read; its text says why."""


def read_plain(text: str) -> Scalar:
    """What a plain scalar stands for; raises `BadScalar`."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER.fullmatch(text) or _OTHER_BASE.fullmatch(text):
        return _integer(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def read_tagged(tag: str, text: str) -> Scalar:
    """What a scalar with a tag stands for; raises `BadScalar`, also for tags that are not core YAML."""
    if tag in ("!", f"{_TAG}str"):
        return text
    wanted = _TYPES.get(tag.removeprefix(_TAG)) if tag.startswith(_TAG) else None
    if wanted is None:
        raise BadScalar(f"the tag {short(tag)} cannot be used; remove it, plain data is all that is read")
    value = read_plain(text)
    if type(value) is int and wanted is float:
        return float(value)
    if type(value) is not wanted:
        raise BadScalar(f"{text!r} is not what its tag {short(tag)} says")
    return value


def short(tag: str) -> str:
    """A tag as people write it."""
    return f"`!!{tag.removeprefix(_TAG)}`" if tag.startswith(_TAG) else f"`{tag}`"


def _integer(text: str) -> int:
    if len(text) <= _INTEGER_CHARS:
        number = int(text, 0 if text[:2] in ("0o", "0x") else 10)
        if number.bit_length() <= VALUE_INTEGER_BITS:
            return number
    raise BadScalar(f"a number of {len(text)} digits is too long; write it as text, in quotes")
