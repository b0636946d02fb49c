"""Pins and notes: kept as they were made, and never believed when they are not what was written."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.errors import BadName, Damaged, PrunedSnapshot, UnknownSnapshot
from orchestra.history.annotations import (
    Remark,
    annotations_of,
    note,
    open_annotation,
    pin,
    pins_of,
    remove_note,
    unpin,
    write_annotation,
)
from orchestra.ids import RunId
from orchestra.limits import NOTE_CHARS
from orchestra.ports.store import Annotation, Store
from orchestra.testing.samples import NOON, SampleRun
from tests.unit.checkpoint.retention.pruning import FRAMER, new_store

RUN = RunId("a")


@pytest.fixture(params=["memory", "sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request.param, tmp_path) as store:
        SampleRun(store, "a").extend(6)
        yield store


def remark(**parts: Any) -> Remark:
    made = Remark(run=RUN, seq=3, kind="note", at=NOON, text="looks odd — 日本\nsee below")
    return attrs.evolve(made, **parts)


def test_what_was_said_comes_back(store: Store) -> None:
    note(store, FRAMER, RUN, 4, NOON, "first")
    made = note(store, FRAMER, RUN, 3, NOON, remark().text)
    pinned = pin(store, FRAMER, RUN, 3, NOON)
    assert {each.kind for each in (made, pinned)} == {"note", "pin"}
    said = annotations_of(store, FRAMER, RUN)
    assert sorted(said, key=lambda each: (each.seq, each.kind)) == [
        remark(),
        remark(kind="pin", text=""),
        remark(seq=4, text="first"),
    ]
    assert pins_of(store, FRAMER, RUN) == {3}


def test_a_newer_note_takes_the_place_of_an_older(store: Store) -> None:
    note(store, FRAMER, RUN, 3, NOON, "first")
    note(store, FRAMER, RUN, 3, NOON, "second")
    assert [each.text for each in annotations_of(store, FRAMER, RUN)] == ["second"]


def test_pins_and_notes_can_be_taken_back_again_and_again(store: Store) -> None:
    pin(store, FRAMER, RUN, 3, NOON, "for the audit")
    note(store, FRAMER, RUN, 3, NOON, "x")
    for _ in range(2):
        unpin(store, RUN, 3)
        remove_note(store, RUN, 3)
    assert annotations_of(store, FRAMER, RUN) == []


@pytest.mark.parametrize(("run", "seq"), [("a", 6), ("a", -1), ("b", 0)])
def test_there_is_nothing_to_pin(store: Store, run: str, seq: int) -> None:
    with pytest.raises(UnknownSnapshot):
        pin(store, FRAMER, RunId(run), seq, NOON)
    with pytest.raises(UnknownSnapshot):
        note(store, FRAMER, RunId(run), seq, NOON, "x")
    with pytest.raises(UnknownSnapshot):
        unpin(store, RunId(run), seq)


def test_what_was_pruned_cannot_be_pinned_but_noted(store: Store) -> None:
    store.prune(RUN, [2, 3])
    with pytest.raises(PrunedSnapshot, match="nearest kept snapshots are a@1"):
        pin(store, FRAMER, RUN, 2, NOON)
    note(store, FRAMER, RUN, 2, NOON, "gone")
    assert pins_of(store, FRAMER, RUN) == frozenset()


def test_a_text_has_a_limit(store: Store) -> None:
    note(store, FRAMER, RUN, 3, NOON, "x" * NOTE_CHARS)
    for make in (note, pin):
        with pytest.raises(BadName, match="at most 16000 characters"):
            make(store, FRAMER, RUN, 3, NOON, "y" * (NOTE_CHARS + 1))
    assert [each.text for each in annotations_of(store, FRAMER, RUN)] == ["x" * NOTE_CHARS]


@pytest.mark.parametrize("text", ["", "\ud800"])
def test_a_note_is_text(store: Store, text: str) -> None:
    with pytest.raises(BadName):
        note(store, FRAMER, RUN, 3, NOON, text)
    assert store.annotations(RUN) == []


def test_a_flipped_bit_is_noticed() -> None:
    made = write_annotation(remark(text="word " * 60), FRAMER)
    assert open_annotation(made, FRAMER).text == "word " * 60
    for bit in range(len(made.body) * 8):
        body = bytearray(made.body)
        body[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged, match="the note on a@3"):
            open_annotation(attrs.evolve(made, body=bytes(body)), FRAMER)


@pytest.mark.parametrize("place", [{"run": RunId("b")}, {"seq": 4}, {"kind": "pin"}])
def test_an_annotation_in_the_wrong_place_is_noticed(place: dict[str, Any]) -> None:
    made: Annotation = attrs.evolve(write_annotation(remark(), FRAMER), **place)
    with pytest.raises(Damaged, match="it belongs on a@3"):
        open_annotation(made, FRAMER)


def test_bytes_that_are_no_annotation_are_refused() -> None:
    made = write_annotation(remark(), FRAMER)
    chance = random.Random(7)
    bodies = [b"", b"x", made.body[:32], made.body[:-1], made.body + b"\0", chance.randbytes(99)]
    for canonical in (b"", b"\x80", b"\xa0", b"\xff", b"\xa1\x62at\x01"):
        bodies.append(FRAMER.address("annotation", canonical) + FRAMER.write("annotation", canonical))
    for body in bodies:
        with pytest.raises(Damaged):
            open_annotation(attrs.evolve(made, body=body), FRAMER)


def test_another_stores_key_does_not_fit() -> None:
    keyed = Framer(Addresser(b"k" * 32))
    made = write_annotation(remark(), keyed)
    assert open_annotation(made, keyed) == remark()
    with pytest.raises(Damaged):
        open_annotation(made, FRAMER)
