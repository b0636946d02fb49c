"""Retention: which snapshots of a run are kept once it is over, and why.

`plan` is the policy: facts in, a plan out. `apply_plan` carries it out, `prune_store` does both for all runs.

Pruning takes patches away and leaves headers, so that the chain of a pruned run still verifies. To keep a
snapshot is to keep its seal and the patches from there up to it. Nothing is sealed anew. Objects that nobody
needs any more are left to `garbage`.

Patches go from the newest to the oldest, as the store promises. Wherever pruning is interrupted, a snapshot
that is not marked as pruned therefore still has every patch that it builds on.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Final, Literal, TypeAlias

import attrs

from orchestra.checkpoint.settings import RetentionSettings
from orchestra.errors import DamageError, RunOwned, UnknownRun, UnknownSnapshot
from orchestra.history.annotations import pins_of
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_good
from orchestra.ids import Digest, Instant, RunId
from orchestra.limits import PAGE_ROWS
from orchestra.model.state import ENDED
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow, Store

Reason: TypeAlias = Literal[
    "first",  # where the run began
    "head",  # where it ended
    "pin",  # somebody asked for it
    "fork",  # another run began there
    "last_good",  # where a rollback would go
    "undone",  # the newest snapshot that a rollback left behind: its decisions are in no later state
    "per_phase",  # among the newest marked ones of its phase
    "per_run",  # among the newest marked ones of the run
    "needed",  # a kept snapshot builds on its patch
    "everything",  # nothing of this run is dropped
]
Action: TypeAlias = Literal["keep", "prune", "delete"]

Bases = frozenset[Digest]  # snapshots that runs began at
DAY: Final = 24 * 3600 * 1_000_000

Kept: TypeAlias = dict[int, tuple[Reason, ...]]


@attrs.frozen(kw_only=True)
class RunFacts:
    """What the policy needs to know of a run."""

    run: RunRow
    rows: tuple[Row, ...]  # all of them, by sequence number; columns are enough
    pins: frozenset[int] = frozenset()
    forked: Bases = frozenset()  # snapshots, of this or any run, that another run began at
    last_good: int | None = None


@attrs.frozen(kw_only=True)
class PrunePlan:
    """What is to happen to a run, and why."""

    run: RunId
    action: Action
    why: str  # the rule that decided, for people
    kept: Mapping[int, tuple[Reason, ...]]  # snapshots that stay readable, with the reasons
    dropped: tuple[int, ...]  # snapshots that lose their content now, by sequence number
    seals: Mapping[int, int]  # for each dropped one the sequence number of its seal
    since: int = 0  # the newest commit when the facts were gathered


@attrs.frozen(kw_only=True)
class RunPruneReport:
    """What happened to a run, or would happen."""

    run: RunId
    action: Action = "keep"
    why: str
    kept: int = 0  # snapshots that are readable afterwards
    dropped: int = 0  # snapshots that lost their content
    bytes_freed: int = 0  # of rows; what objects took is freed by the garbage collection
    reasons: Mapping[Reason, int] = {}  # how many snapshots are kept for each reason


@attrs.frozen(kw_only=True)
class PruneReport:
    """What happened to the runs of a store, or would happen."""

    runs: tuple[RunPruneReport, ...]
    dry_run: bool

    @property
    def dropped(self) -> int:
        """How many snapshots lost their content."""
        return sum(run.dropped for run in self.runs)

    @property
    def bytes_freed(self) -> int:
        """How many bytes of rows went."""
        return sum(run.bytes_freed for run in self.runs)


# --- the policy


def plan(facts: RunFacts, settings: RetentionSettings, now: Instant) -> PrunePlan:
    """What is to happen to a run. Pure: the same facts give the same plan."""
    always, status = _always(facts), facts.run.status
    everything: Kept = {row.seq: ("everything",) for row in facts.rows}
    if settings.preserve:
        return _plan(facts, everything, "everything is preserved")
    if status not in ENDED:
        return _plan(facts, everything, f"it is {status}")
    if facts.run.owned:
        return _plan(facts, everything, f"it is in the hands of {facts.run.owner or 'a process'}")
    if settings.delete_on_completion and status == "completed":
        if any("pin" in reasons or "fork" in reasons for reasons in always.values()):
            return _plan(facts, always, "it is completed; pins or forks keep it from being deleted")
        return _plan(facts, {}, "it is completed", action="delete")
    if settings.days is not None and now - facts.run.updated_at > settings.days * DAY:
        return _plan(facts, always, f"it ended more than {settings.days} days ago")
    if settings.per_phase is None and settings.per_run is None:
        return _plan(facts, everything, "nothing limits the number of snapshots")
    newest = _newest(facts, settings)
    both = {seq: always.get(seq, ()) + newest.get(seq, ()) for seq in always.keys() | newest.keys()}
    return _plan(facts, both, f"it is {status}")


def _plan(facts: RunFacts, wanted: Kept, why: str, *, action: Action = "prune") -> PrunePlan:
    """A plan that keeps what is wanted, and the rows that it builds on. A pruned row cannot be kept."""
    by_seq = {row.seq: row for row in facts.rows if not row.pruned}
    needed = {each for seq in wanted.keys() & by_seq for each in range(by_seq[seq].sealed_at, seq)}
    kept: Kept = {seq: wanted.get(seq, ("needed",)) for seq in by_seq if seq in wanted or seq in needed}
    dropped = [row for seq, row in by_seq.items() if seq not in kept]
    return PrunePlan(
        run=facts.run.run,
        action=action if dropped or action == "delete" else "keep",
        why=why,
        kept=kept,
        dropped=tuple(row.seq for row in dropped),
        seals={row.seq: row.sealed_at for row in dropped},
    )


def _always(facts: RunFacts) -> Kept:
    """What is kept whatever the limits say."""
    found: Kept = {}
    undone = {row.seq - 1 for row in facts.rows if "rolled_back" in row.triggers}
    for row in facts.rows:
        tests: dict[Reason, bool] = {
            "first": row.seq == 0,
            "head": row.seq == facts.run.head,
            "pin": row.seq in facts.pins,
            "fork": row.digest in facts.forked,
            "last_good": row.seq == facts.last_good,
            "undone": row.seq in undone,
        }
        reasons = tuple(reason for reason, holds in tests.items() if holds)
        if reasons and not row.pruned:
            found[row.seq] = reasons
    return found


def _newest(facts: RunFacts, settings: RetentionSettings) -> Kept:
    """The newest marked snapshots within both limits."""
    limits: dict[Reason, int | None] = {"per_phase": settings.per_phase, "per_run": settings.per_run}
    reasons = tuple(reason for reason, limit in limits.items() if limit is not None)
    kept: Kept = {}
    of_phase: Counter[str | None] = Counter()
    for row in reversed(list(_readable(facts.rows))):
        full = settings.per_run is not None and len(kept) >= settings.per_run
        phase_full = settings.per_phase is not None and of_phase[row.phase] >= settings.per_phase
        if row.marked and not full and not phase_full:
            of_phase[row.phase] += 1
            kept[row.seq] = reasons
    return kept


def _readable(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that still have every patch they build on."""
    newest_pruned = -1
    for row in rows:
        if row.pruned:
            newest_pruned = row.seq
        elif newest_pruned <= row.sealed_at:
            yield row


# --- the facts


def fork_bases(store: Store) -> Bases:
    """The snapshots that runs of this store began at."""
    first_rows = store.rows(RowQuery(first=0, last=0, content=False))
    return frozenset(row.parent for row in first_rows if row.parent is not None)


def facts_of(archive: Archive, run: RunId, forked: Bases) -> RunFacts:
    """The facts of a run; raises `UnknownRun`, or `Damaged` when something of it cannot be told."""
    try:
        good = last_good(archive, run)
    except UnknownSnapshot:
        good = None
    return RunFacts(
        run=archive.run(run),
        rows=tuple(archive.store.rows(RowQuery(run=run, content=False))),
        pins=pins_of(archive.store, archive.framer, run),
        forked=forked,
        last_good=good,
    )


def plan_run(
    archive: Archive, run: RunId, settings: RetentionSettings, *, now: Instant, forked: Bases | None = None
) -> PrunePlan:
    """The plan for one run; raises `UnknownRun` or `Damaged`. `forked` saves looking for forks again."""
    since = archive.store.last_no()
    bases = fork_bases(archive.store) if forked is None else forked
    return attrs.evolve(plan(facts_of(archive, run, bases), settings, now), since=since)


# --- carrying it out


def apply_plan(archive: Archive, plan: PrunePlan) -> int:
    """Do what a plan says; returns how many snapshots lost their content.

    What was forked or pinned since it was made stays. May be repeated after any failure. Raises what the
    store raises, `RunOwned` and `UnknownRun` included.
    """
    spared = partial(newly_held_rows, archive, plan)
    match plan.action:
        case "keep":
            return 0
        case "prune":
            return archive.store.prune(plan.run, plan.dropped, spared=spared)
        case "delete":
            return len(plan.dropped) if archive.store.delete(plan.run, spared=spared) else 0


def newly_held_rows(archive: Archive, plan: PrunePlan) -> frozenset[int]:
    """The dropped rows that pins and forks need by now; those that they needed before are not dropped."""
    store = archive.store
    wanted = set(pins_of(store, archive.framer, plan.run)).intersection(plan.dropped)
    begun = store.rows(RowQuery(first=0, last=0, after_no=plan.since, content=False))
    bases = {row.parent for row in begun if row.parent is not None}
    if bases:
        rows = store.rows(RowQuery(run=plan.run, content=False))
        wanted.update(row.seq for row in rows if row.digest in bases and row.seq in plan.seals)
    return frozenset(each for seq in wanted for each in range(plan.seals[seq], seq + 1))


def bytes_of(store: Store, plan: PrunePlan) -> int:
    """How many bytes of rows a plan frees: patches, and headers where the run goes as a whole."""
    if not plan.dropped:
        return 0
    dropped, total, whole = frozenset(plan.dropped), 0, plan.action == "delete"
    for first in range(plan.dropped[0], plan.dropped[-1] + 1, PAGE_ROWS):
        last = min(plan.dropped[-1], first + PAGE_ROWS - 1)
        if not dropped.isdisjoint(range(first, last + 1)):
            rows = store.rows(RowQuery(run=plan.run, first=first, last=last))
            found = [row for row in rows if row.seq in dropped]
            total += sum(len(row.patch or b"") + (len(row.header) if whole else 0) for row in found)
    return total


def prune_run(
    archive: Archive,
    run: RunId,
    settings: RetentionSettings,
    *,
    now: Instant,
    dry_run: bool = False,
    forked: Bases | None = None,
) -> RunPruneReport:
    """Plan one run and do it. A run that cannot be read for it, or that somebody took over, is kept."""
    try:
        plan = plan_run(archive, run, settings, now=now, forked=forked)
        if plan.action != "keep" and not dry_run and forked is not None:
            plan = plan_run(archive, run, settings, now=now)  # forks and pins may have come since
        freed = bytes_of(archive.store, plan)
        dropped = len(plan.dropped) if dry_run else apply_plan(archive, plan)
        if plan.action == "delete" and plan.dropped and not dropped:
            return RunPruneReport(run=run, why="it was forked or pinned just now")
    except DamageError as error:
        return RunPruneReport(run=run, why=f"it is kept as it is: {error}")
    except RunOwned as error:
        return RunPruneReport(run=run, why=str(error))
    except UnknownRun:
        return RunPruneReport(run=run, why="it is not there any more")
    return RunPruneReport(
        run=run,
        action=plan.action,
        why=plan.why,
        kept=len(plan.kept),
        dropped=dropped,
        bytes_freed=freed,
        reasons=Counter(reason for reasons in plan.kept.values() for reason in reasons),
    )


def prune_store(
    archive: Archive, settings: RetentionSettings, *, now: Instant, dry_run: bool = False
) -> PruneReport:
    """Prune every run of a store. Raises what the store raises; what was done until then stays done."""
    forked = fork_bases(archive.store)
    prune = partial(prune_run, archive, settings=settings, now=now, dry_run=dry_run, forked=forked)
    return PruneReport(runs=tuple(prune(run) for run in _all_runs(archive.store)), dry_run=dry_run)


def _all_runs(store: Store) -> Collection[RunId]:
    found: dict[RunId, None] = {}
    for offset in count(0, PAGE_ROWS):
        page = store.runs(RunQuery(limit=PAGE_ROWS, offset=offset))
        found.update(dict.fromkeys(row.run for row in page))
        if len(page) < PAGE_ROWS:
            break
    return found
