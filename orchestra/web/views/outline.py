"""The outline of a run: what a strip over all its snapshots shows, read from the headers.

Headers are opened once. What was read is kept and extended, so that asking again costs what is new.
"""

import threading
from collections import Counter
from typing import Any, Final

import attrs

from orchestra.history.archive import Archive, if_whole
from orchestra.history.pages import Broken, Pages
from orchestra.ids import RunId
from orchestra.limits import WEB_OUTLINE_ROWS, WEB_OUTLINES
from orchestra.model.snapshot import Header, Headline
from orchestra.ports.store import RowQuery, RunRow
from orchestra.web.views.common import Cached, CheckWanted, Json, always_wanted
from orchestra.web.views.runs import newest_part, thresholds_of

_OUTCOMES: Final = {"task_completed": "completed", "task_failed": "failed"}
_MARKS: Final = {"decision_made": "decisions", "wait_opened": "waits"}
_ERRORS: Final = frozenset({"error_encountered", "failed"})


@attrs.define
class _Span:
    """A stretch of snapshots, as it is sent: an attempt at a task, or a visit to a phase."""

    json: Json
    touched: int  # the snapshot that last changed it

    def change(self, seq: int, **changes: Any) -> None:
        self.json |= changes
        self.touched = seq


class Outline:
    """What is known of a run from its headers, up to a snapshot."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.upto = -1
        self.digest: bytes | None = None  # of the snapshot it is known up to
        self._confidence: list[tuple[int, float | None]] = []
        self._bars: list[_Span] = []
        self._open: dict[str, _Span] = {}
        self._visits: list[_Span] = []
        self._counted = Counter[str]()
        self._jumps: list[Json] = []
        self._marks: dict[str, list[int]] = {"errors": [], "decisions": [], "waits": []}
        self._spent = Counter[int]()

    def add(self, header: Header) -> None:
        """What one more snapshot brings."""
        if header.confidence != (self._confidence[-1][1] if self._confidence else None):
            self._confidence.append((header.seq, header.confidence))
        visit = self._visits[-1] if self._visits and self._visits[-1].json["to"] is None else None
        if header.phase != (visit and visit.json["phase"]):
            self._enter(header.seq, visit, header.phase)
        for line in header.events:
            self._event(header, line)
        if not _ERRORS.isdisjoint(header.triggers):
            self.skip(header.seq)

    def skip(self, seq: int) -> None:
        """A snapshot whose header cannot be read."""
        self._marks["errors"].append(seq)

    def _enter(self, seq: int, visit: _Span | None, phase: str | None) -> None:
        """Leave the phase that a visit is to, and go into another."""
        if visit is not None:
            visit.change(seq, to=seq - 1)
        if phase is not None:
            self._counted[phase] += 1
            made = {"phase": phase, "visit": self._counted[phase], "from": seq, "to": None}
            self._visits.append(_Span(made, seq))

    def _event(self, header: Header, line: Headline) -> None:
        seq, kind = header.seq, line.kind
        figures = dict(line.figures)
        if kind == "agent_launched":
            self._launch(header, line, int(figures.get("attempt", 1)))
        elif kind in _OUTCOMES:
            self._end(header, line.what, _OUTCOMES[kind])
        elif kind == "task_retired":
            self._end(header, line.what, line.what.rpartition(": ")[2])
        elif kind in _MARKS:
            marks = self._marks[_MARKS[kind]]
            if marks[-1:] != [seq]:
                marks.append(seq)
        elif kind == "spent" and figures.get("tokens"):
            self._spent[seq] += int(figures["tokens"])
        elif kind == "rolled_back":
            at = {"seq": seq, "from": figures.get("from"), "to": figures.get("to"), "reason": line.what}
            self._jumps.append(at)
            self._cut(header)
        elif kind in ("run_ended", "forked") or (kind == "run_resumed" and "recovered" in header.triggers):
            self._cut(header)

    def _launch(self, header: Header, line: Headline, attempt: int) -> None:
        self._close(line.what, header, "interrupted")
        made = {"agent": line.who or "", "task": line.what, "attempt": attempt}
        made |= {"from": header.seq, "to": None, "from_at": header.at, "to_at": None, "outcome": "open"}
        bar = self._open[line.what] = _Span(made, header.seq)
        self._bars.append(bar)

    def _end(self, header: Header, what: str, outcome: str) -> None:
        """End the task that a headline such as `analyse/security: ValueError: no` is about."""
        about = (task for task in self._open if what.startswith(f"{task}:"))
        self._close(what if what in self._open else next(about, what), header, outcome)

    def _cut(self, header: Header) -> None:
        """What was under way goes no further: the run ended, went back, or is recovered."""
        for task in list(self._open):
            self._close(task, header, "interrupted")

    def _close(self, task: str, header: Header, outcome: str) -> None:
        if bar := self._open.pop(task, None):
            bar.change(header.seq, to=header.seq, to_at=header.at, outcome=outcome)

    def json(self, after: int) -> Json:
        """What came after a snapshot; bars and phases that ended since are told again."""
        confidence = [each for each in self._confidence if each[0] > after]
        spent = {seq: tokens for seq, tokens in self._spent.items() if seq > after}
        return {
            "confidence": {"seq": [seq for seq, _ in confidence], "value": [held for _, held in confidence]},
            "bars": [dict(bar.json) for bar in self._bars if bar.touched > after],
            "phases": [dict(visit.json) for visit in self._visits if visit.touched > after],
            "jumps": [jump for jump in self._jumps if jump["seq"] > after],
            **{name: [seq for seq in marks if seq > after] for name, marks in self._marks.items()},
            "spent": {"seq": list(spent), "tokens": list(spent.values())},
        }


class Outlines:
    """The outlines of the runs that were looked at last."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._held: Cached[RunId, tuple[threading.Lock, Outline]] = Cached(WEB_OUTLINES)

    def json(self, run: RunRow, after: int, check_wanted: CheckWanted = always_wanted) -> Json:
        """The outline of a run after a snapshot, at most so many snapshots at once."""
        lock, outline = self._held.get(run.run, lambda: (threading.Lock(), Outline()))
        with lock:
            if outline.upto > run.head or self._is_another(run, outline):
                outline.reset()  # the run was deleted and another has its name
            last = min(run.head, max(after, outline.upto) + WEB_OUTLINE_ROWS)
            self._extend(outline, run, last, check_wanted)
            known = {"run": run.run, "upto": outline.upto, "more": outline.upto < run.head}
            held = if_whole(lambda: newest_part(self._archive, run, "confidence"), {})
            return known | outline.json(after) | {"thresholds": thresholds_of(held)}

    def _is_another(self, run: RunRow, outline: Outline) -> bool:
        if outline.digest is None:
            return False
        query = RowQuery(run=run.run, first=outline.upto, last=outline.upto, content=False)
        rows = if_whole(lambda: self._archive.store.rows(query), None)
        return rows is not None and [row.digest for row in rows] != [outline.digest]

    def _extend(self, outline: Outline, run: RunRow, last: int, check_wanted: CheckWanted) -> None:
        query = RowQuery(run=run.run, first=outline.upto + 1, last=last)
        for found in Pages(self._archive.store, query, run.head):
            check_wanted()  # what was read up to here is kept
            header, _ = self._archive.try_header(found)
            if header is None:
                outline.skip(found.seq)
            else:
                outline.add(header)
            if not isinstance(found, Broken):
                outline.upto, outline.digest = found.seq, found.digest
        outline.upto = max(outline.upto, last)
