"""The policy of retention: every rule, on facts that were made up."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from orchestra.checkpoint.retention.plan import PrunePlan, RunFacts, plan
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.ids import Fence, Instant, RunId
from orchestra.ports.store import Row, RunRow
from orchestra.testing.samples import NOON, sample_digest, sample_row
from tests.unit.checkpoint.retention.pruning import DAY, HOUR

RUN = RunId("a")
NOTHING = RetentionSettings(per_phase=0)


def run_row(head: int, **columns: Any) -> RunRow:
    row = RunRow(
        run=RUN,
        family=RUN,
        workflow="w",
        status="completed",
        phase=None,
        head=head,
        digest=sample_digest("head"),
        fence=Fence(1),
        owner="somebody",
        owned=False,
        created_at=NOON,
        updated_at=NOON,
    )
    return attrs.evolve(row, **columns)


def rows(count: int, seal_every: int = 1, **columns: Sequence[Any]) -> tuple[Row, ...]:
    """Marked rows without triggers; a column is given as one value for each row."""
    made = [
        sample_row("a", seq, marked=True, triggers=(), phase="p", sealed_at=seq - seq % seal_every)
        for seq in range(count)
    ]
    for name, values in columns.items():
        made = [attrs.evolve(row, **{name: value}) for row, value in zip(made, values, strict=True)]
    return tuple(made)


def facts(held: tuple[Row, ...], *, parts: dict[str, Any] | None = None, **columns: Any) -> RunFacts:
    return RunFacts(run=run_row(len(held) - 1, **columns), rows=held, **(parts or {}))


def kept(found: PrunePlan, *, without: str = "needed") -> set[int]:
    return {seq for seq, reasons in found.kept.items() if reasons != (without,)}


# --- what is kept as a whole


@pytest.mark.parametrize("status", ["pending", "running", "waiting", "paused"])
def test_while_a_run_is_active_everything_is_kept(status: str) -> None:
    strict = RetentionSettings(days=0, per_phase=0, per_run=0, delete_on_completion=True)
    found = plan(facts(rows(9), status=status), strict, Instant(NOON + 99 * DAY))
    assert (found.action, found.dropped, set(found.kept)) == ("keep", (), set(range(9)))
    assert found.why == f"it is {status}"


def test_a_run_in_somebodys_hands_is_active() -> None:
    found = plan(facts(rows(9), status="failed", owned=True), NOTHING, NOON)
    assert (found.action, found.why) == ("keep", "it is in the hands of somebody")


def test_preserve_keeps_everything() -> None:
    settings = RetentionSettings(days=0, per_phase=0, preserve=True, delete_on_completion=True)
    found = plan(facts(rows(9)), settings, Instant(NOON + 99 * DAY))
    assert (found.action, found.why) == ("keep", "everything is preserved")


def test_without_limits_everything_is_kept() -> None:
    settings = RetentionSettings(days=None, per_phase=None)
    found = plan(facts(rows(9)), settings, Instant(NOON + 999 * DAY))
    assert (found.action, set(found.kept)) == ("keep", set(range(9)))


# --- what is kept whatever the limits say


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_the_ends_of_a_run_are_kept(status: str) -> None:
    found = plan(facts(rows(9), status=status), NOTHING, NOON)
    assert (found.action, found.dropped) == ("prune", tuple(range(1, 8)))
    assert found.kept == {0: ("first",), 8: ("head",)}


def test_pins_forks_and_the_last_good_are_kept() -> None:
    held = rows(9)
    parts = {"pins": frozenset({2}), "forked": frozenset({held[4].digest}), "last_good": 6}
    found = plan(facts(held, parts=parts), NOTHING, NOON)
    assert found.kept == {0: ("first",), 2: ("pin",), 4: ("fork",), 6: ("last_good",), 8: ("head",)}


def test_what_a_rollback_left_behind_is_kept() -> None:
    held = rows(9, triggers=[("rolled_back",) if seq in (3, 7) else () for seq in range(9)])
    found = plan(facts(held), NOTHING, NOON)
    assert found.kept == {0: ("first",), 2: ("undone",), 6: ("undone",), 8: ("head",)}


def test_several_reasons_are_all_given() -> None:
    parts = {"pins": frozenset({0}), "last_good": 0}
    found = plan(facts(rows(1), parts=parts), NOTHING, NOON)
    assert (found.action, found.kept) == ("keep", {0: ("first", "head", "pin", "last_good")})


def test_a_decision_alone_does_not_keep_a_snapshot() -> None:
    found = plan(facts(rows(9, triggers=[("decision",)] * 9)), NOTHING, NOON)
    assert set(found.kept) == {0, 8}


# --- limits


def test_the_newest_of_each_phase_are_kept() -> None:
    phases = [None, "p", "p", "p", "q", "q", "q", "p", None]
    found = plan(facts(rows(9, phase=phases)), RetentionSettings(per_phase=2), NOON)
    assert kept(found) == {0, 3, 5, 6, 7, 8}
    assert found.kept[8] == ("head", "per_phase")
    assert found.kept[5] == ("per_phase",)


def test_the_newest_of_a_run_are_kept() -> None:
    found = plan(facts(rows(9)), RetentionSettings(per_phase=None, per_run=3), NOON)
    assert found.kept == {0: ("first",), 6: ("per_run",), 7: ("per_run",), 8: ("head", "per_run")}


def test_both_limits_hold() -> None:
    phases = ["p", "p", "p", "p", "q", "q", "q", "q", "q"]
    found = plan(facts(rows(9, phase=phases)), RetentionSettings(per_phase=2, per_run=3), NOON)
    assert kept(found) == {0, 3, 7, 8}


def test_only_marked_snapshots_count() -> None:
    marks = [seq % 2 == 0 for seq in range(9)]
    found = plan(facts(rows(9, marked=marks)), RetentionSettings(per_phase=2), NOON)
    assert kept(found) == {0, 6, 8}


def test_what_is_pruned_already_neither_counts_nor_goes_again() -> None:
    gone = [seq in (1, 2, 6, 7) for seq in range(9)]
    found = plan(facts(rows(9, pruned=gone)), RetentionSettings(per_phase=2), NOON)
    assert kept(found) == {0, 5, 8}
    assert found.dropped == (3, 4)


def test_a_snapshot_that_lost_what_it_builds_on_does_not_count() -> None:
    held = rows(9, seal_every=4, pruned=[seq == 5 for seq in range(9)])
    found = plan(facts(held), RetentionSettings(per_phase=2), NOON)
    assert kept(found) == {0, 4, 8}
    assert found.dropped == (1, 2, 3, 6, 7)


# --- time


@pytest.mark.parametrize(("hours", "pruned"), [(0, False), (30 * 24, False), (30 * 24 + 1, True)])
def test_long_after_its_end_only_what_is_always_kept_stays(hours: int, pruned: bool) -> None:
    found = plan(facts(rows(9)), RetentionSettings(days=30), Instant(NOON + hours * HOUR))
    assert set(found.kept) == ({0, 8} if pruned else {0, 4, 5, 6, 7, 8})


def test_a_clock_that_went_back_prunes_nothing_by_age() -> None:
    settings = RetentionSettings(days=0, per_phase=None)
    assert plan(facts(rows(9)), settings, Instant(0)).action == "keep"


# --- deletion


def test_a_completed_run_is_deleted_when_that_is_wanted() -> None:
    found = plan(facts(rows(9)), RetentionSettings(delete_on_completion=True), NOON)
    assert (found.action, found.dropped, found.kept) == ("delete", tuple(range(9)), {})


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_only_completion_deletes(status: str) -> None:
    settings = RetentionSettings(delete_on_completion=True)
    assert plan(facts(rows(9), status=status), settings, NOON).action == "prune"


def test_pins_and_forks_hold_a_run_back_from_deletion() -> None:
    held = rows(9)
    settings = RetentionSettings(delete_on_completion=True)
    for parts in ({"pins": frozenset({2})}, {"forked": frozenset({held[2].digest})}):
        found = plan(facts(held, parts=parts), settings, NOON)
        assert (found.action, set(found.kept)) == ("prune", {0, 2, 8})


# --- seals


def test_what_is_kept_keeps_what_it_builds_on() -> None:
    parts = {"pins": frozenset({6, 13})}
    found = plan(facts(rows(20, seal_every=4), parts=parts), NOTHING, NOON)
    assert found.kept == {
        0: ("first",),
        **dict.fromkeys((4, 5), ("needed",)),
        6: ("pin",),
        12: ("needed",),
        13: ("pin",),
        **dict.fromkeys((16, 17, 18), ("needed",)),
        19: ("head",),
    }
    assert found.dropped == (1, 2, 3, 7, 8, 9, 10, 11, 14, 15)
