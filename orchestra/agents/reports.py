"""Making reports and results out of what an agent says, whether it called a method or wrote a line of JSON.

Both ways end in `make`, so that a field has one meaning and one check. Each check gives the value back as
the port has it, or raises a `ValueError` that names the field, what it must be and what it was.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from orchestra.agents.failures import misbehaviour
from orchestra.agents.plain_data import short_text, take_plain
from orchestra.errors import AgentFailed
from orchestra.limits import AGENT_COUNT, NAME_CHARS, TEXT_CHARS
from orchestra.model.frozen import maker
from orchestra.model.value import is_storable_text
from orchestra.ports import agent as port
from orchestra.ports.agent import Assignment, Judgement, Report, Result

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


def _written(value: str) -> str:
    """The text as a plain one that can be written down; what has its own `__str__` is not asked."""
    text = str.__str__(value)
    if not is_storable_text(text):
        raise _Unfit("text without lone surrogates; decode it with errors='replace'")
    return text


def _stream(value: Any) -> str:
    """Text of any length: as much of it is kept as fits."""
    if not isinstance(value, str):
        raise _Unfit("text")
    return _written(value)


def _text_of(limit: int, *, filled: bool = False) -> Check:
    """Text; a longer one than that would stand in every snapshot, and may be more than one can hold."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or (filled and not value):
            raise _Unfit("text that is not empty" if filled else "text")
        if len(text := _written(value)) > limit:
            raise _Unfit(f"text of at most {limit:,} characters")
        return text

    return check


_text, _words = _text_of(TEXT_CHARS), _text_of(TEXT_CHARS, filled=True)
_label, _name = _text_of(NAME_CHARS), _text_of(NAME_CHARS, filled=True)


def _number_to(most: float, words: str) -> Check:
    """A number from 0 on."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise _Unfit(words)
        return float(value)

    return check


_share: Final = _number_to(1.0, "a number from 0 to 1")
_seconds: Final = _number_to(sys.float_info.max, "a number of seconds from 0 on")


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
    port.Saved: {
        "private": take_plain,
        "progress": _maybe(_share),
        "step": _maybe(_text),
        "step_number": _maybe(_count),
        "blockers": _maybe(_blockers),
    },
    port.Emitted: {"text": _stream},
    port.Decided: {
        "description": _words,
        "rationale": _text,
        "confidence": _maybe(_share),
        "alternatives": _texts,
        "decision": _name,
        "details": take_plain,
    },
    port.Confident: {"value": _share},
    port.Asked: {"question": _words, "choices": _texts, "details": take_plain, "key": _label},
    port.Required: {"name": _name, "reason": _text},
    port.Limited: {"seconds": _seconds, "reason": _text},
    port.EffectBegun: {"name": _name, "intent": take_plain, "risky": _flag},
    port.EffectEnded: {"name": _name, "status": _choice("done", "failed", "unknown"), "outcome": take_plain},
    port.Used: {"api_calls": _count, "tokens_in": _count, "tokens_out": _count, "cost_micros": _count},
    port.Scored: {
        "criterion": _name,
        "score": _share,
        "rationale": _text,
        "issues": _mappings,
        "feedback": _text,
    },
    port.Wrote: {"path": _words, "content": _content, "media_type": _label},
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
SENT: Final[frozenset[type]] = frozenset({port.Emitted, port.Confident, port.Used})
"""Reports that nobody waits for."""
REPORTS: Final[Mapping[str, type[Report]]] = {
    kind_of(cls): cls for cls in FIELDS if cls not in (Result, Judgement)
}


# --- results

_result: Final = maker(Result)
_ATOMS: Final = frozenset({type(None), bool, int, float, str, bytes})
"""What nobody can change afterwards, and need not be copied."""


def result_from(assignment: Assignment, returned: Any) -> Result | Judgement:
    """The result in what was returned; raises `AgentFailed` that names it when there is none."""
    try:
        return _judged(returned) if assignment.role == "apollo" else _worked(returned)
    except ValueError as error:
        raise wrong_result(assignment, str(error)) from None


def wrong_result(assignment: Assignment, why: str) -> AgentFailed:
    """The failure of an agent that returned what it must not."""
    return misbehaviour(assignment.agent, "WrongResult", f"what the agent returned cannot be used: {why}")


def _worked(returned: Any) -> Result:
    if type(returned) in _ATOMS:
        return _result(output=returned)
    if isinstance(returned, Result):
        return make(Result, output=_value(returned.output), confidence=returned.confidence)
    if isinstance(returned, Judgement):
        raise ValueError("it is a Judgement, which only an evaluator returns")
    return make(Result, output=_value(returned))


def _judged(returned: Any) -> Judgement:
    if returned is None:
        return Judgement()  # it scored on the way
    if isinstance(returned, Judgement):
        return make(Judgement, **attrs.asdict(returned, recurse=False))
    if isinstance(returned, Mapping) and "scores" in returned:
        for name in returned:
            if not isinstance(name, str):
                raise ValueError(f"the name of a field must be text, not {short_text(name)}")
        return make(Judgement, **returned)
    raise ValueError(f"an evaluator returns a Judgement or a mapping with scores, not {short_text(returned)}")


def _value(output: Any) -> Any:
    if inspect.iscoroutine(output):
        output.close()
        raise ValueError("it is a coroutine; an `await` is missing")
    return output
