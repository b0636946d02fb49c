"""Telling a run: what happened in it, from its headers, and why it was decided, from its states."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from orchestra.codec.readers import structure
from orchestra.history.archive import Archive, if_whole
from orchestra.history.lineage import jumps, lived_ranges
from orchestra.history.pages import Broken, Pages
from orchestra.ids import Instant
from orchestra.limits import FAILURES_TOLD, HEADLINE_CHARS
from orchestra.model.records import Decision, Failure, Wait
from orchestra.model.snapshot import Headline
from orchestra.model.tree import Table
from orchestra.ports.store import Row, RowQuery, RunRow


class StoryEntry(NamedTuple):
    """One thing that happened, where, and why if it was decided."""

    seq: int
    at: Instant
    event: Headline
    undone: bool
    decision: Decision | None
    wait: Wait | None = None
    """What is over, of the end of a wait: what was asked, and the answer."""
    failure: Failure | None = None
    """What an agent failed with; told once for each agent and error."""


class DecisionCount(NamedTuple):
    """How many decisions of a run are told, and how many of these were undone."""

    told: int
    undone: int = 0

    def __bool__(self) -> bool:
        return self.told > 0

    def __str__(self) -> str:
        return f"{self.told:,}" + (f" ({self.undone:,} undone)" if self.undone else "")


def count_decisions(opened: Archive, run: RunRow, *, held: int, generation: int) -> DecisionCount:
    """The number of decisions of a run; `held` are in its newest state, without undone and inherited ones."""
    alone = generation == 0 and run.family == run.run
    return DecisionCount(held) if alone else Teller(opened, run).count_decisions()


Reasons = dict[tuple[str, str], deque[Decision]]
"""Decisions by who made them and in which words, oldest first."""


class Teller:
    """Reads the events of a run from its headers, and the reasons of decisions from its states."""

    def __init__(self, opened: Archive, run: RunRow) -> None:
        self._opened, self._run = opened, run
        self._lived = lived_ranges(jumps(opened, run.run), run.head)
        self._waits: dict[int, Mapping[str, Wait]] = {}  # of the snapshot that was asked for last
        self._failures = Failures(opened)
        self.damaged = False

    def entries(self, triggers: tuple[str, ...] = ()) -> Iterator[StoryEntry]:
        """Everything that happened, oldest first; or only what is in snapshots with one of these triggers."""
        told = list(self._told(triggers))
        lasting = [event for row, events in told if not self._is_undone(row.seq) for event in events]
        newest = self._opened.newest(self._run.run)
        reasons = _reasons(self._opened, newest, lasting)
        for row, events in told:
            undone = self._is_undone(row.seq)
            made = (event for event in events if event.kind == "decision_made")
            in_time = undone or any(_key(event) not in reasons for event in made)  # only its state knows then
            known = _reasons(self._opened, row, events) if in_time else reasons
            for event in events:
                # What lasted is in the newest state too, which is read once for all.
                wait = self._wait(row if undone else newest, event)
                reason, failure = _next_reason(known, event), self._failures.of(row, event)
                yield StoryEntry(row.seq, row.at, event, undone, reason, wait, failure)

    def count_decisions(self) -> DecisionCount:
        """How many decisions the entries have, without reading their reasons."""
        told = [(row, event) for row, events in self._told(("decision",)) for event in events]
        undone = [self._is_undone(row.seq) for row, event in told if event.kind == "decision_made"]
        return DecisionCount(len(undone), sum(undone))

    def _told(self, triggers: tuple[str, ...]) -> Iterator[tuple[Row, tuple[Headline, ...]]]:
        """The rows that can be read, each with its events."""
        query = RowQuery(run=self._run.run, triggers=triggers)
        for row in Pages(self._opened.store, query, self._run.head):
            header, _ = self._opened.try_header(row)
            if header is None or isinstance(row, Broken):
                self.damaged = True
            else:
                yield row, header.events

    def _wait(self, row: Row, event: Headline) -> Wait | None:
        if event.kind != "wait_closed":
            return None
        if row.seq not in self._waits:
            self._waits = {row.seq: waits_at(self._opened, row)}
        return self._waits[row.seq].get(event.what)

    def _is_undone(self, seq: int) -> bool:
        return not any(seq in stretch for stretch in self._lived)


class Failures:
    """Reads what agents failed with, which their headlines only name; the same of an agent once."""

    def __init__(self, opened: Archive) -> None:
        self._opened = opened
        self._known: set[tuple[str, str]] = set()

    def of(self, row: Row, event: Headline) -> Failure | None:
        """The failure behind a headline; None where it is none, was told before or cannot be read."""
        if event.kind != "task_failed" or _key(event) in self._known or len(self._known) >= FAILURES_TOLD:
            return None
        self._known.add(_key(event))
        task = event.what.partition(": ")[0]
        held = if_whole(lambda: self._opened.part_of(row, ("tasks",)).get("tasks", Table()).get(task), None)
        plain = None if held is None else held.get("failure")
        return plain and structure(plain, Failure, what=f"the failure of {task} in {row.run}@{row.seq}")


def waits_at(opened: Archive, row: Row) -> Mapping[str, Wait]:
    """The waits of a run at a snapshot, by name; empty where they cannot be read."""
    return {} if row.pruned else if_whole(lambda: dict(opened.snapshot(row).state.waits.items()), {})


def decisions_at(opened: Archive, row: Row, events: Iterable[Headline]) -> Iterator[Decision | None]:
    """The decision behind each event of a snapshot; None where it is none, or cannot be read."""
    told = list(events)
    known = _reasons(opened, row, told)
    return (_next_reason(known, event) for event in told)


def _key(event: Headline) -> tuple[str, str]:
    return event.who or "", event.what


def _next_reason(known: Reasons, event: Headline) -> Decision | None:
    """The decision behind a headline; of several in the same words each is told once, in order."""
    queue = known.get(_key(event)) if event.kind == "decision_made" else None
    return queue.popleft() if queue else None


def _reasons(opened: Archive, row: Row, told: Iterable[Headline]) -> Reasons:
    """The decisions behind headlines; of several in the same words the last ones are theirs."""
    wanted = Counter(_key(event) for event in told if event.kind == "decision_made")
    if not wanted or row.pruned:
        return {}
    found = Reasons()
    for each in if_whole(lambda: opened.snapshot(row).state.decisions, ()):
        key = (each.agent, each.description[:HEADLINE_CHARS])
        if key in wanted:
            found.setdefault(key, deque(maxlen=wanted[key])).append(each)
    return found
