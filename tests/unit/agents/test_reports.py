"""A field has one meaning and one check, however it was said."""

from typing import Any

import pytest

from orchestra.agents.plain_data import copy_plain, short_text
from orchestra.agents.reports import make
from orchestra.limits import TEXT_CHARS
from orchestra.ports.agent import (
    Asked,
    Decided,
    EffectBegun,
    EffectEnded,
    Emitted,
    Judgement,
    Limited,
    Required,
    Saved,
    Used,
    Wrote,
)

LONG = "x" * (TEXT_CHARS + 1)


class Unspeakable:
    def __repr__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("cls", "fields", "words"),
    [
        (Asked, {}, "asked needs 'question'"),
        (Asked, {"question": ""}, "text that is not empty"),
        (Asked, {"question": "x", "choices": "yes"}, "choices of asked must be a list of texts, not 'yes'"),
        (Asked, {"question": "x", "word": 1}, "asked has no field 'word'; it has question"),
        (Decided, {"description": Unspeakable()}, "not <Unspeakable>"),
        (EffectBegun, {"name": "x", "risky": 1}, "true or false, not 1"),
        (EffectEnded, {"name": "x", "status": "maybe"}, "one of done, failed, unknown"),
        (Judgement, {"scores": [1]}, "a mapping of criteria to scores, not [1]"),
        (Judgement, {"scores": {1: 1}}, "a mapping of criteria to scores"),
        (Limited, {"seconds": "soon"}, "a number of seconds from 0 on, not 'soon'"),
        (Limited, {"seconds": float("inf")}, "not inf"),
        (Saved, {"step": 3}, "step of saved must be text, not 3"),
        (Saved, {"step_number": True}, "a whole number from 0 on, not True"),
        (Saved, {"blockers": [1]}, "a list of mappings"),
        (
            Saved,
            {"blockers": [{"reason": "x"}]},
            "each with the texts 'by' and 'reason', not [{'reason': 'x'}]",
        ),
        (Saved, {"blockers": [{"by": 1, "reason": "x"}]}, "each with the texts 'by' and 'reason'"),
        (Asked, {"question": "\ud800"}, "question of asked must be text without lone surrogates"),
        (
            Asked,
            {"question": "x", "choices": ["\ud800"]},
            "a list of texts, each text without lone surrogates",
        ),
        (Emitted, {"text": "a\udce9"}, "text of emitted must be text without lone surrogates"),
        (
            Used,
            {"tokens_in": 10**400},
            "tokens_in of used must be a whole number of at most 1,000,000,000,000,000",
        ),
        (Used, {"api_calls": float("inf")}, "a whole number from 0 on, not inf"),
        (Wrote, {"path": "x", "content": "\ud800"}, "text without lone surrogates"),
        (Wrote, {"path": "x", "content": None}, "text or bytes, not None"),
        (
            Wrote,
            {"path": "x", "content": "", "media_type": LONG},
            "media_type of wrote must be text of at most 512",
        ),
        (Asked, {"question": "x", "key": LONG}, "text of at most 512 characters"),
        (Required, {"name": LONG}, "text of at most 512 characters"),
        (EffectBegun, {"name": LONG}, "text of at most 512 characters"),
        (Judgement, {"scores": {LONG: 1}}, "each text of at most 512 characters"),
        (Judgement, {"scores": {}, "feedback": LONG}, "text of at most 200,000 characters"),
        (Saved, {"step": LONG}, "step of saved must be text of at most 200,000 characters"),
        (Saved, {"blockers": [{"by": "x", "reason": LONG}]}, "text of at most 200,000 characters"),
    ],
)
def test_what_does_not_fit_is_named(cls: type, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        make(cls, **fields)
    assert words in str(caught.value)


def test_a_stream_and_the_content_of_an_output_may_be_longer() -> None:
    assert make(Emitted, text=LONG).text == LONG
    assert make(Wrote, path="x", content=LONG).content == LONG.encode()


def test_copies_share_nothing_that_can_change() -> None:
    inner = bytearray(b"x")
    value = {"a": [{1, 2}, (inner, frozenset({3}))]}
    again = copy_plain(value)
    assert again == value
    inner.append(1)
    value["a"].append(4)  # type: ignore[arg-type]
    assert again == {"a": [{1, 2}, (bytearray(b"x"), frozenset({3}))]}


def test_a_cycle_ends_and_a_strange_thing_passes() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert copy_plain(cycle) is not cycle
    strange = object()
    assert copy_plain([strange]) == [strange]


def test_what_is_shown_is_short() -> None:
    assert short_text("x" * 1000).endswith("…")
    assert len(short_text("x" * 1000)) < 100
