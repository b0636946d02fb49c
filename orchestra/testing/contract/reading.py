"""Reading: every filter alone and together, order, paging, digests."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import attrs
import pytest

from orchestra.ids import Instant, RunId
from orchestra.ports.store import Row, RowQuery, RunQuery, Store
from orchestra.testing.contract.base import OpenStore, StoreSuite
from orchestra.testing.samples import NOON, SECOND, SampleRun, sample_digest

PHASES = ("analyse", "write", None)
TRIGGERS = ((), ("decision",), ("phase_start", "decision"), ("phase_started",), ("error_encountered",))
ODD_TRIGGERS = ("phase_start", "error_encountered")
AGENTS = ((), ("ann",), ("joanna", "bob"), ("bob", "ann"))
STATUSES = ("running", "waiting", "completed")

RowTest = Callable[[Row], bool]
EVERYTHING: tuple[RowQuery, RowTest] = (RowQuery(), lambda row: True)
ROW_FILTERS: tuple[tuple[RowQuery, RowTest], ...] = (
    (RowQuery(run=RunId("b")), lambda row: row.run == "b"),
    (RowQuery(run=RunId("absent")), lambda row: False),
    (RowQuery(first=3), lambda row: row.seq >= 3),
    (RowQuery(last=7), lambda row: row.seq <= 7),
    (RowQuery(first=5, last=5), lambda row: row.seq == 5),
    (RowQuery(first=6, last=4), lambda row: False),
    (RowQuery(triggers=("decision",)), lambda row: "decision" in row.triggers),
    (RowQuery(triggers=ODD_TRIGGERS), lambda row: not set(ODD_TRIGGERS).isdisjoint(row.triggers)),
    (RowQuery(triggers=("phase",)), lambda row: False),
    (RowQuery(phase="write"), lambda row: row.phase == "write"),
    (RowQuery(agent="ann"), lambda row: "ann" in row.agents),
    (RowQuery(agent="joanna"), lambda row: "joanna" in row.agents),
    (RowQuery(agent="%"), lambda row: False),
    (RowQuery(status=("waiting",)), lambda row: row.status == "waiting"),
    (RowQuery(status=("waiting", "completed")), lambda row: row.status in ("waiting", "completed")),
    (RowQuery(since=Instant(NOON + 4 * SECOND)), lambda row: row.at >= NOON + 4 * SECOND),
    (RowQuery(until=Instant(NOON + 4 * SECOND)), lambda row: row.at <= NOON + 4 * SECOND),
    (RowQuery(marked=True), lambda row: row.marked),
    (RowQuery(marked=False), lambda row: not row.marked),
    (RowQuery(sealed=True), lambda row: row.sealed_at == row.seq),
    (RowQuery(sealed=False), lambda row: row.sealed_at != row.seq),
    (RowQuery(after_no=0), lambda row: True),
)


RowsStore = tuple[Store, list[Row]]
"""A store, and the rows in it as they must come back."""


def conditions_of(query: RowQuery) -> dict[str, Any]:
    """The conditions of a query, without those left as they are."""
    return attrs.asdict(query, filter=lambda field, value: value != field.default)


NAMES = [
    " ".join(f"{name}={value}" for name, value in conditions_of(query).items()) for query, _ in ROW_FILTERS
]


def fill(store: Store) -> list[Row]:
    """Three runs whose rows differ in everything that can be asked for."""
    runs = [SampleRun(store, name) for name in "abc"]
    return [_append_varied(run, n) for n in range(12) for run in runs]


def _append_varied(run: SampleRun, n: int) -> Row:
    salt = n + ord(run.run[0])
    return run.append(
        phase=PHASES[salt % 3],
        triggers=TRIGGERS[salt % 5],
        agents=AGENTS[salt % 4],
        status=STATUSES[(salt // 2) % 3],
        marked=salt % 3 == 0,
        sealed_at=n - n % 4,
    )


def merge_queries(left: RowQuery, right: RowQuery) -> RowQuery | None:
    """Both queries in one, or None when they ask for the same column."""
    if conditions_of(left).keys() & conditions_of(right).keys():
        return None
    return attrs.evolve(left, **conditions_of(right))


class RowContract(StoreSuite):
    """What `rows` and `find` give back."""

    @pytest.fixture
    def rows_store(self, open_store: OpenStore) -> Iterator[RowsStore]:
        with open_store() as store:
            yield store, fill(store)

    @pytest.mark.parametrize(("query", "fits"), ROW_FILTERS, ids=NAMES)
    def test_each_filter_alone_and_with_each_other(
        self, rows_store: RowsStore, query: RowQuery, fits: RowTest
    ) -> None:
        store, rows = rows_store
        for other, also in (EVERYTHING, *ROW_FILTERS):
            both = merge_queries(query, other)
            if both is not None:
                expected = [row for row in rows if fits(row) and also(row)]
                assert sorted(store.rows(both), key=_no) == expected, both

    def test_all_filters_together(self, rows_store: RowsStore) -> None:
        store, rows = rows_store
        target = next(row for row in rows if row.triggers and row.agents and row.phase and row.seq > 2)
        query = RowQuery(
            run=target.run, first=1, last=11, after_no=target.no - 1, triggers=target.triggers,
            phase=target.phase, agent=target.agents[0], status=(target.status,), since=target.at,
            until=target.at, marked=target.marked, sealed=target.sealed_at == target.seq, limit=5,
        )  # fmt: skip
        assert store.rows(query) == [target]

    def test_rows_of_a_run_are_in_order(self, rows_store: RowsStore) -> None:
        store, _ = rows_store
        everything = store.rows(RowQuery())
        for run in map(RunId, "abc"):
            forwards = store.rows(RowQuery(run=run))
            assert [row.seq for row in forwards] == list(range(12))
            assert store.rows(RowQuery(run=run, newest_first=True)) == forwards[::-1]
            assert [row for row in everything if row.run == run] == forwards

    def test_rows_of_all_runs_are_in_order_of_commits(self, rows_store: RowsStore) -> None:
        store, rows = rows_store
        middle = rows[17].no
        assert store.rows(RowQuery(after_no=middle)) == rows[18:]
        assert store.rows(RowQuery(after_no=middle, newest_first=True)) == rows[:17:-1]
        assert store.rows(RowQuery(after_no=rows[-1].no)) == []

    @pytest.mark.parametrize("limit", [0, 1, 5, 12, 100])
    def test_the_limit(self, rows_store: RowsStore, limit: int) -> None:
        store, rows = rows_store
        of_b = [row for row in rows if row.run == "b"]
        assert store.rows(RowQuery(run=RunId("b"), limit=limit)) == of_b[:limit]
        latest = store.rows(RowQuery(run=RunId("b"), limit=limit, newest_first=True))
        assert latest == of_b[::-1][:limit]
        assert store.rows(RowQuery(after_no=0, limit=limit)) == rows[:limit]

    def test_the_limit_counts_what_fits(self, rows_store: RowsStore) -> None:
        store, rows = rows_store
        marked = [row for row in rows if row.run == "a" and row.marked]
        assert store.rows(RowQuery(run=RunId("a"), marked=True, limit=3)) == marked[:3]

    @pytest.mark.parametrize("newest_first", [False, True])
    def test_pages_join_without_gap_or_repetition(self, rows_store: RowsStore, newest_first: bool) -> None:
        store, rows = rows_store
        query, found = RowQuery(run=RunId("c"), limit=5, newest_first=newest_first), list[Row]()
        while page := store.rows(query):
            found += page
            edge = page[-1].seq
            rest: dict[str, Any] = {"last": edge - 1} if newest_first else {"first": edge + 1}
            query = attrs.evolve(query, **rest)
        assert sorted(found, key=_no) == [row for row in rows if row.run == "c"]
        assert len(found) == 12

    def test_columns_only(self, rows_store: RowsStore) -> None:
        store, rows = rows_store
        store.prune(RunId("a"), [3])
        found = store.rows(RowQuery(after_no=0, content=False))
        assert [attrs.evolve(row, pruned=False) for row in found] == [*map(_without_content, rows)]
        assert [(row.run, row.seq) for row in found if row.pruned] == [("a", 3)]

    def test_find_by_digest(self, rows_store: RowsStore) -> None:
        store, rows = rows_store
        bare = sorted(map(_without_content, rows), key=_digest)
        one = bare[9]
        assert store.find(one.digest, one.digest, 10) == [one]
        inside = store.find(bare[4].digest, bare[20].digest, 100)
        assert sorted(inside, key=_digest) == bare[4:21]
        assert len(store.find(b"", b"\xff" * 32, 7)) == 7
        assert len(store.find(b"", b"\xff" * 32, 1000)) == len(rows)
        assert store.find(b"\xff" * 32, b"", 10) == []

    def test_find_by_prefix(self, rows_store: RowsStore) -> None:
        store, rows = rows_store
        prefix = rows[5].digest[:2]
        found = store.find(prefix, prefix + b"\xff" * 30, 100)
        assert {row.digest for row in found} == {row.digest for row in rows if row.digest.startswith(prefix)}


class RunContract(StoreSuite):
    """What `run` and `runs` give back."""

    @pytest.fixture
    def runs_store(self, open_store: OpenStore) -> Iterator[Store]:
        with open_store() as store:
            for n, name in enumerate(("b_1", "a-1", "c.1", "B_2", "bx1")):
                run = SampleRun(store, name)
                family = RunId("b_1" if n % 2 else name)
                parts = {"family": family, "workflow": "review" if n < 3 else "release"}
                run.append(parts=parts, at=Instant(NOON + (n // 2) * SECOND), status=STATUSES[n % 3])
            yield store

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (RunQuery(), ["bx1", "c.1", "B_2", "b_1", "a-1"]),
            (RunQuery(limit=2), ["bx1", "c.1"]),
            (RunQuery(limit=2, offset=2), ["B_2", "b_1"]),
            (RunQuery(offset=4), ["a-1"]),
            (RunQuery(offset=9), []),
            (RunQuery(limit=0), []),
            (RunQuery(status=("completed",)), ["c.1"]),
            (RunQuery(status=("completed", "waiting")), ["bx1", "c.1", "a-1"]),
            (RunQuery(workflow="review"), ["c.1", "b_1", "a-1"]),
            (RunQuery(workflow="rev"), []),
            (RunQuery(family=RunId("b_1")), ["B_2", "b_1", "a-1"]),
            (RunQuery(contains="b_"), ["b_1"]),
            (RunQuery(contains="_"), ["B_2", "b_1"]),
            (RunQuery(contains="%"), []),
            (RunQuery(contains="1"), ["bx1", "c.1", "b_1", "a-1"]),
            (RunQuery(contains="."), ["c.1"]),
            (RunQuery(workflow="review", status=("running",), contains="b"), ["b_1"]),
        ],
    )
    def test_queries(self, runs_store: Store, query: RunQuery, expected: list[str]) -> None:
        assert [run.run for run in runs_store.runs(query)] == expected

    def test_one_run_is_as_in_the_list(self, runs_store: Store) -> None:
        for run in runs_store.runs(RunQuery()):
            assert runs_store.run(run.run) == run

    def test_unknown_things_are_empty_not_errors(self, store: Store) -> None:
        absent = RunId("absent")
        assert store.run(absent) is None
        assert [*store.rows(RowQuery(run=absent)), *store.commands(absent), *store.annotations(absent)] == []
        assert [*store.runs(RunQuery()), *store.rows(RowQuery()), *store.find(b"", b"\xff" * 32, 10)] == []
        assert store.get_objects([sample_digest("absent")]) == {}
        assert store.last_no() == 0


_no, _digest = attrgetter("no"), attrgetter("digest")


def _without_content(row: Row) -> Row:
    return attrs.evolve(row, header=b"", patch=None)
