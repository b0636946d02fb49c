"""The outline of a run: what a strip over all its snapshots shows, read from the headers.

Headers are opened once. What was read is kept and extended, so that asking again costs what is new.
"""

import threading
from typing import Any, Final

import attrs

from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.pages import Broken, Pages
from orchestra.ids import RunId
from orchestra.limits import WEB_OUTLINE_ROWS, WEB_OUTLINES
from orchestra.model.snapshot import Header, Headline
from orchestra.ports.store import RowQuery, RunRow
from orchestra.web.views.cache import Cached
from orchestra.web.views.cancel import Wanted, always

_OUTCOMES: Final = {"task_completed": "completed", "task_failed": "failed"}


@attrs.define
class _Bar:
    """An attempt at a task, from its launch to its end."""

    agent: str
    task: str
    attempt: int
    first: int
    first_at: int
    last: int | None = None
    last_at: int | None = None
    outcome: str = "open"
    touched: int = 0  # the snapshot that last changed it

    def json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "task": self.task,
            "attempt": self.attempt,
            "from": self.first,
            "to": self.last,
            "from_at": self.first_at,
            "to_at": self.last_at,
            "outcome": self.outcome,
        }


@attrs.define
class _Visit:
    """A stretch of snapshots in one phase."""

    phase: str
    visit: int
    first: int
    last: int | None = None
    touched: int = 0

    def json(self) -> dict[str, Any]:
        return {"phase": self.phase, "visit": self.visit, "from": self.first, "to": self.last}


class Outline:
    """What is known of a run from its headers, up to a snapshot."""

    def __init__(self) -> None:
        self.upto = -1
        self.digest: bytes | None = None  # of the snapshot it is known up to
        self._confidence: list[tuple[int, float | None]] = []
        self._bars: list[_Bar] = []
        self._open: dict[str, _Bar] = {}
        self._visits: list[_Visit] = []
        self._counted: dict[str, int] = {}
        self._jumps: list[dict[str, Any]] = []
        self._marks: dict[str, list[int]] = {"errors": [], "decisions": [], "waits": []}
        self._spent: list[tuple[int, int]] = []

    def add(self, header: Header) -> None:
        """What one more snapshot brings."""
        seq = header.seq
        if (not self._confidence and header.confidence is not None) or (
            self._confidence and self._confidence[-1][1] != header.confidence
        ):
            self._confidence.append((seq, header.confidence))
        if header.phase != (
            self._visits[-1].phase if self._visits and self._visits[-1].last is None else None
        ):
            self._enter(seq, header.phase)
        for line in header.events:
            self._event(header, line)
        if "error_encountered" in header.triggers or "failed" in header.triggers:
            self._marks["errors"].append(seq)

    def skip(self, seq: int) -> None:
        """A snapshot whose header cannot be read."""
        self._marks["errors"].append(seq)

    def _enter(self, seq: int, phase: str | None) -> None:
        if self._visits and self._visits[-1].last is None:
            self._visits[-1].last, self._visits[-1].touched = seq - 1, seq
        if phase is not None:
            self._counted[phase] = self._counted.get(phase, 0) + 1
            self._visits.append(_Visit(phase, self._counted[phase], seq, touched=seq))

    def _event(self, header: Header, line: Headline) -> None:
        seq, kind = header.seq, line.kind
        figures = dict(line.figures)
        if kind == "agent_launched":
            self._launch(header, line, int(figures.get("attempt", 1)))
        elif kind in _OUTCOMES:
            self._end(header, line.what, _OUTCOMES[kind])
        elif kind == "task_retired":
            self._end(header, line.what, line.what.rpartition(": ")[2])
        elif kind == "decision_made":
            self._mark("decisions", seq)
        elif kind == "wait_opened":
            self._mark("waits", seq)
        elif kind == "spent":
            self._spend(seq, int(figures.get("tokens", 0)))
        elif kind == "rolled_back":
            at = {"seq": seq, "from": figures.get("from"), "to": figures.get("to"), "reason": line.what}
            self._jumps.append(at)
            self._cut(header)
        elif kind in ("run_ended", "forked") or (kind == "run_resumed" and "recovered" in header.triggers):
            self._cut(header)

    def _mark(self, what: str, seq: int) -> None:
        marks = self._marks[what]
        if not marks or marks[-1] != seq:
            marks.append(seq)

    def _spend(self, seq: int, tokens: int) -> None:
        if self._spent and self._spent[-1][0] == seq:
            self._spent[-1] = (seq, self._spent[-1][1] + tokens)
        elif tokens:
            self._spent.append((seq, tokens))

    def _launch(self, header: Header, line: Headline, attempt: int) -> None:
        earlier = self._open.pop(line.what, None)
        if earlier is not None:
            _close(earlier, header, "interrupted")
        bar = _Bar(line.who or "", line.what, attempt, header.seq, header.at, touched=header.seq)
        self._bars.append(bar)
        self._open[line.what] = bar

    def _end(self, header: Header, what: str, outcome: str) -> None:
        task = what if what in self._open else _task_in(what, self._open)
        bar = self._open.pop(task, None)
        if bar is not None:
            _close(bar, header, outcome)

    def _cut(self, header: Header) -> None:
        """What was under way goes no further: the run ended, went back, or is recovered."""
        for bar in self._open.values():
            _close(bar, header, "interrupted")
        self._open.clear()

    def answer(self, after: int) -> dict[str, Any]:
        """What came after a snapshot; bars and phases that ended since are told again."""
        confidence = [each for each in self._confidence if each[0] > after]
        spent = [each for each in self._spent if each[0] > after]
        return {
            "confidence": {"seq": [seq for seq, _ in confidence], "value": [held for _, held in confidence]},
            "bars": [bar.json() for bar in self._bars if bar.touched > after],
            "phases": [visit.json() for visit in self._visits if visit.touched > after],
            "jumps": [jump for jump in self._jumps if jump["seq"] > after],
            **{name: [seq for seq in marks if seq > after] for name, marks in self._marks.items()},
            "spent": {"seq": [seq for seq, _ in spent], "tokens": [tokens for _, tokens in spent]},
        }


def _close(bar: _Bar, header: Header, outcome: str) -> None:
    bar.last, bar.last_at, bar.outcome, bar.touched = header.seq, header.at, outcome, header.seq


def _task_in(what: str, tasks: dict[str, _Bar]) -> str:
    """The task that a headline such as `analyse/security: ValueError: no` is about."""
    return next((task for task in tasks if what.startswith(f"{task}:")), what)


class Outlines:
    """The outlines of the runs that were looked at last."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._held: Cached[RunId, tuple[threading.Lock, Outline]] = Cached(WEB_OUTLINES)

    def of(self, run: RunRow, after: int, wanted: Wanted = always) -> dict[str, Any]:
        """The outline of a run after a snapshot, at most so many snapshots at once."""
        lock, outline = self._held.get(run.run, lambda: (threading.Lock(), Outline()))
        with lock:
            if outline.upto > run.head or self._is_another(run, outline):
                outline.__init__()  # type: ignore[misc]  # the run was deleted and another has its name
            last = min(run.head, max(after, outline.upto) + WEB_OUTLINE_ROWS)
            self._extend(outline, run, last, wanted)
            return {
                "run": run.run,
                "upto": outline.upto,
                "more": outline.upto < run.head,
                **outline.answer(after),
                "thresholds": self._thresholds(run),
            }

    def _is_another(self, run: RunRow, outline: Outline) -> bool:
        if outline.digest is None:
            return False
        query = RowQuery(run=run.run, first=outline.upto, last=outline.upto, content=False)
        try:
            rows = self._archive.store.rows(query)
        except DamageError:
            return False
        return not rows or rows[0].digest != outline.digest

    def _extend(self, outline: Outline, run: RunRow, last: int, wanted: Wanted) -> None:
        query = RowQuery(run=run.run, first=outline.upto + 1, last=last)
        for found in Pages(self._archive.store, query, run.head):
            wanted()  # what was read up to here is kept
            if isinstance(found, Broken):
                outline.skip(found.seq)
                continue
            try:
                outline.add(self._archive.header(found))
            except DamageError:
                outline.skip(found.seq)
            outline.upto, outline.digest = found.seq, found.digest
        outline.upto = max(outline.upto, last)

    def _thresholds(self, run: RunRow) -> list[float]:
        try:
            held = self._archive.part_of(self._archive.row(run.run, run.head), ("confidence",))
        except DamageError:
            return []
        return list(held.get("confidence", {}).get("thresholds", ()))
