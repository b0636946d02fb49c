"""Values and states as people read them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestra.cli.render.values import StateTree, atom, inline
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze
from orchestra.history.places import Place, in_reading_order
from orchestra.model.tree import Table, Vec
from orchestra.testing.samples import sample_digest

LOADER = Loader(lambda _: {}, Framer(Addresser()))
NOON = 1_794_744_000_000_000


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (Place(None), "none"),
        (Place(True), "true"),
        (Place(0.30000000000000004), "0.3"),
        (Place(7), "7"),
        (Place(NOON, name="created_at"), "2026-11-15 12:00:00.000 UTC"),
        (Place(NOON, True, "created_at"), str(NOON)),
        (Place(90_000_000, name="elapsed_us"), "90000000 (1m 30s)"),
        (Place(2048, name="memory_peak_bytes"), "2048 (2.0 KB)"),
        (Place(1_500_000, name="cost_micros"), "1500000 (1.50)"),
        (Place(1_500_000, True, "cost_micros"), "1500000"),
        (Place("text"), "text"),
        (Place(""), "''"),
        (Place("one\ntwo"), "one… (2 lines)"),
        (Place("x" * 300), "x" * 200 + "… (300 characters)"),
        (Place(b"\x00\x01", True), "00 01 (2 B)"),
        (Place({3, 1}, True), "{1, 3}"),
        (Place(datetime(2026, 1, 2, tzinfo=UTC), True), "2026-01-02 00:00:00+00:00"),
        (Place(LargeValue(sample_digest("a value"), 2048)), "a value of 2.0 KB"),
    ],
)
def test_atoms(place: Place, shown: str) -> None:
    assert atom(place)[0] == shown


def _inline(held: Any, room: int = 200) -> tuple[str, bool]:
    spans, fits = inline(Place(held), LOADER, room=room)
    return "".join(text for text, _ in spans), fits


def test_a_line_about_a_collection() -> None:
    held = {"history": Vec([1, 2]), "updated_at": NOON, "status": "running", "tags": Table([("a", 1)])}
    assert _inline(held) == ("{status: running, tags: {a: 1}, history: [1, 2], updated_at: 12:00:00}", True)


def test_a_line_that_is_too_long_is_cut() -> None:
    text, fits = _inline({"status": "running", "description": "many words " * 10}, room=40)
    assert not fits
    assert len(text) <= 40
    assert text.endswith("…")


def test_what_people_handed_in_is_opened_once() -> None:
    frozen = freeze({"raw": b"\xa0", "nested": [b"\x00"]}, Addresser())
    assert frozen.encoded is not None
    assert _inline({"result": frozen.encoded})[0] == "{result: {raw: a0 (1 B), nested: [00 (1 B)]}}"


def _tree(held: dict[str, Any], *, whole: bool = False, columns: int = 60) -> list[str]:
    lines = StateTree(LOADER, columns=columns, whole=whole).lines(Place(held))
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def test_a_state_has_a_line_for_every_part() -> None:
    tasks = Table(
        [(f"task-{number}", {"status": "completed", "description": "words " * 20}) for number in range(12)]
    )
    lines = _tree({"status": "running", "tasks": tasks, "empty": Vec([])})
    assert lines[:4] == ["status  running", "tasks   12 entries", "  … 4 older entries", lines[3]]
    assert lines[3].startswith("  task-4   status: completed, description: words")
    assert lines[-1] == "empty   []"
    assert all(len(line) <= 60 for line in lines)


def test_everything_is_shown_when_asked_for() -> None:
    held = {"outer": {"text": "one\ntwo\n", "deep": {"deeper": {"long": "x" * 100}}}}
    assert _tree(held, whole=True) == [
        "outer",
        "  text  8 characters",
        "    │ one",
        "    │ two",
        "  deep",
        "    deeper",
        "      long  100 characters",
        "        │ " + "x" * 100,
    ]


def test_fields_come_in_the_order_of_the_state() -> None:
    assert list(in_reading_order({"tasks": 1, "unheard_of": 2, "run": 3})) == ["run", "tasks", "unheard_of"]
