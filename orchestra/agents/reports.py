"""Making reports and results out of what an agent says, whether it called a method or wrote a line of JSON.

Both ways end in `make`, so that a field has one meaning and one check. Each check gives the value back as
the port has it, or raises a `ValueError` that names the field, what it must be and what it was.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from orchestra.agents.plain_data import short_text, take_plain
from orchestra.limits import AGENT_COUNT, NAME_CHARS, TEXT_CHARS
from orchestra.model.value import is_storable_text
from orchestra.ports.agent import (
    Asked,
    Confident,
    Decided,
    EffectBegun,
    EffectEnded,
    Emitted,
    Judgement,
    Limited,
    Report,
    Required,
    Result,
    Saved,
    Scored,
    Used,
    Wrote,
)

Check: TypeAlias = Callable[[Any], Any]
Made = TypeVar("Made")


class _Unfit(Exception):
    """Says what a value must be."""


def make(cls: type[Made], /, **fields: Any) -> Made:
    """A report or result of checked fields; raises `ValueError`."""
    checks = FIELDS[cls]
    for name, value in fields.items():
        check = checks.get(name)
        if check is None:
            raise ValueError(f"{kind_of(cls)} has no field {name!r}; it has {', '.join(checks)}")
        try:
            fields[name] = check(value)
        except _Unfit as unfit:
            raise ValueError(f"{name} of {kind_of(cls)} must be {unfit}, not {short_text(value)}") from None
    for name in _NEEDED[cls]:
        if name not in fields:
            raise ValueError(f"{kind_of(cls)} needs {name!r}")
    return cls(**fields)


def kind_of(cls: type) -> str:
    """The word for a report or result."""
    default = getattr(attrs.fields_dict(cls).get("kind"), "default", None)
    return str(default) if default else cls.__name__.lower()


# --- checks


def _stream(value: Any) -> str:
    """Text of any length: of a stream as much is kept as fits."""
    if not isinstance(value, str):
        raise _Unfit("text")
    return _written(value)


def _text(value: Any) -> str:
    return _bounded(_stream(value), TEXT_CHARS)


def _words(value: Any) -> str:
    return _bounded(_filled(value), TEXT_CHARS)


def _name(value: Any) -> str:
    return _bounded(_filled(value), NAME_CHARS)


def _filled(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Unfit("text that is not empty")
    return _written(value)


def _label(value: Any) -> str:
    """A name, or nothing."""
    return _bounded(_stream(value), NAME_CHARS)


def _bounded(text: str, limit: int) -> str:
    """A longer one would stand in every snapshot, and may be more than one can hold."""
    if len(text) > limit:
        raise _Unfit(f"text of at most {limit:,} characters")
    return text


def _written(value: str) -> str:
    """The text as a plain one that can be written down; what has its own `__str__` is not asked."""
    text = str.__str__(value)
    if not is_storable_text(text):
        raise _Unfit("text without lone surrogates; decode it with errors='replace'")
    return text


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _Unfit("a number")
    return float(value)


def _share(value: Any) -> float:
    try:
        number = _number(value)
    except (_Unfit, OverflowError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise _Unfit("a number from 0 to 1")
    return number


def _seconds(value: Any) -> float:
    try:
        number = _number(value)
    except (_Unfit, OverflowError):
        number = -1.0
    if number < 0:
        raise _Unfit("a number of seconds from 0 on")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Unfit("a whole number from 0 on")
    if value > AGENT_COUNT:
        raise _Unfit(f"a whole number of at most {AGENT_COUNT:,}")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Unfit("true or false")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise _Unfit("a list of texts")
    try:
        return tuple(_written(item) for item in value)
    except _Unfit as unfit:
        raise _Unfit(f"a list of texts, each {unfit}") from None


def _mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, Mapping) for item in value):
        raise _Unfit("a list of mappings")
    return tuple(take_plain([dict(item) for item in value]))


def _blockers(value: Any) -> tuple[Mapping[str, Any], ...]:
    found = _mappings(value)
    texts = [each.get(name) for each in found for name in ("by", "reason")]
    if not all(isinstance(text, str) for text in texts):
        raise _Unfit("a list of mappings, each with the texts 'by' and 'reason'")
    for text in texts:
        _text(text)
    return found


def _scores(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _Unfit("a mapping of criteria to scores")
    try:
        return {_label(key): _share(score) for key, score in value.items()}
    except _Unfit as unfit:
        raise _Unfit(f"a mapping of criteria to scores, each {unfit}") from None


def _content(value: Any) -> bytes:
    if isinstance(value, str):
        return _written(value).encode()
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _Unfit("text or bytes")
    return bytes(value)


def _choice(*known: str) -> Check:
    def check(value: Any) -> Any:
        if value not in known:
            raise _Unfit(f"one of {', '.join(known)}")
        return value

    return check


def _maybe(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


FIELDS: Final[Mapping[type, Mapping[str, Check]]] = {
    Saved: {
        "private": take_plain,
        "progress": _maybe(_share),
        "step": _maybe(_text),
        "step_number": _maybe(_count),
        "blockers": _maybe(_blockers),
    },
    Emitted: {"text": _stream},
    Decided: {
        "description": _words,
        "rationale": _text,
        "confidence": _maybe(_share),
        "alternatives": _texts,
        "decision": _name,
        "details": take_plain,
    },
    Confident: {"value": _share},
    Asked: {"question": _words, "choices": _texts, "details": take_plain, "key": _label},
    Required: {"name": _name, "reason": _text},
    Limited: {"seconds": _seconds, "reason": _text},
    EffectBegun: {"name": _name, "intent": take_plain, "risky": _flag},
    EffectEnded: {"name": _name, "status": _choice("done", "failed", "unknown"), "outcome": take_plain},
    Used: {"api_calls": _count, "tokens_in": _count, "tokens_out": _count, "cost_micros": _count},
    Scored: {
        "criterion": _name,
        "score": _share,
        "rationale": _text,
        "issues": _mappings,
        "feedback": _text,
    },
    Wrote: {"path": _words, "content": _content, "media_type": _label},
    Result: {"output": take_plain, "confidence": _maybe(_share)},
    Judgement: {
        "scores": _scores,
        "issues": _mappings,
        "feedback": _text,
        "verdict": _maybe(_choice("accept", "revise", "reject")),
        "confidence": _maybe(_share),
    },
}
_NEEDED: Final = {
    cls: tuple(
        field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING and field.name in checks
    )
    for cls, checks in FIELDS.items()
}
SENT: Final[frozenset[type]] = frozenset({Emitted, Confident, Used})
"""Reports that nobody waits for."""
REPORTS: Final[Mapping[str, type[Report]]] = {
    kind_of(cls): cls for cls in FIELDS if cls not in (Result, Judgement)
}
