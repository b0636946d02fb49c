"""`orchestra log`: a run as a story, from its first snapshot to its newest, with what was undone."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

from cyclopts import Parameter

from orchestra.checkpoint.archive import Archive
from orchestra.checkpoint.lineage import ancestry
from orchestra.checkpoint.references import resolve_run
from orchestra.cli.describe import event_json
from orchestra.cli.displays import clock
from orchestra.cli.failures import DAMAGE, OK
from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.output import print_json
from orchestra.cli.run_list import standing, status_cell
from orchestra.cli.screen import Line, Screen, length, screen
from orchestra.cli.source import archive, option
from orchestra.cli.story import told
from orchestra.cli.text import count
from orchestra.errors import DamageError
from orchestra.ids import Instant, RunId, iso
from orchestra.limits import HEADLINE_CHARS, PAGE_ROWS
from orchestra.model.parts import Decision
from orchestra.model.snapshot import Headline
from orchestra.ports.store import Row, RowQuery, RunRow

_SMALL: Final = frozenset({"milestone_reached", "agent_launched", "effect_intended", "snapshot_requested"})
"""Events that are left out unless all are asked for."""
_TOP: Final = frozenset({"phase_started", "run_started", "run_ended", "forked"})
"""Events that stand further left: the others belong to them."""


class Entry(NamedTuple):
    """One thing that happened, where, and why if it was decided."""

    seq: int
    at: Instant
    event: Headline
    undone: bool
    decision: Decision | None


def log(
    run: RunArgument,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", help="Also the small things: launches, progress.")] = False,
    decisions: Annotated[bool, Parameter(name="--decisions", help="Only decisions.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Tell a run as a story: its turning points and decisions, each with its reason and its snapshot.

    What a rollback undid is part of the story and marked with ┊.
    """
    with archive(store) as opened:
        row = opened.run(resolve_run(opened, run))
        teller = Teller(opened, row)
        found = [each for each in teller.entries() if _wanted(each, all, decisions)]
        if json:
            print_json([_json(each) for each in found])
        else:
            _print(screen(), row, found, store)
        return DAMAGE if teller.damaged else OK


def _wanted(entry: Entry, everything: bool, decisions: bool) -> bool:
    if decisions:
        return entry.event.kind == "decision_made"
    if told(entry.event) is None:
        return False
    if everything or entry.event.kind not in _SMALL:
        return True
    again = dict(entry.event.figures).get("attempt", 1) != 1
    asked = entry.event.what.startswith("user_requested")
    return (entry.event.kind == "agent_launched" and again) or asked


class Teller:
    """Reads the events of a run from its headers, and the reasons of decisions from its states."""

    def __init__(self, opened: Archive, run: RunRow) -> None:
        self._opened, self._run = opened, run
        self._lived = {row.seq for row in ancestry(opened, run.run, run.head)}
        self._reasons = _reasons(opened, opened.newest(run.run))
        self.damaged = False

    def entries(self) -> Iterator[Entry]:
        """Everything that happened, oldest first."""
        for row in _rows(self._opened, self._run.run, self._run.head):
            try:
                header = self._opened.header(row)
            except DamageError:
                self.damaged = True
                continue
            for event in header.events:
                decision = self._reason(row, event) if event.kind == "decision_made" else None
                yield Entry(row.seq, row.at, event, row.seq not in self._lived, decision)

    def _reason(self, row: Row, event: Headline) -> Decision | None:
        """The decision behind a headline; one that was undone is only in the state of its time."""
        key = event.who or "", event.what
        if key not in self._reasons and not row.pruned:
            self._reasons |= _reasons(self._opened, row)
        return self._reasons.get(key)


def _reasons(opened: Archive, row: Row) -> dict[tuple[str, str], Decision]:
    try:
        decisions = opened.snapshot(row).state.decisions
    except DamageError:
        return {}
    return {(each.agent, each.description[:HEADLINE_CHARS]): each for each in decisions}


def _rows(opened: Archive, run: RunId, head: int) -> Iterator[Row]:
    for first in range(0, head + 1, PAGE_ROWS):
        yield from opened.store.rows(RowQuery(run=run, first=first, last=min(head, first + PAGE_ROWS - 1)))


def _print(out: Screen, run: RunRow, found: list[Entry], store: str | None) -> None:
    amount = count(run.head + 1, "snapshot")
    out.wrapped([(run.run, "bold"), ("  ", ""), *status_cell(standing(run)), (f"  {amount}", "dim")])
    out.line()
    wide = len(str(run.head))
    for each in found:
        start = _start(each, Instant(each.at - run.created_at), wide)
        out.paragraph([*start, *_said(each)], indent=length(start) + 2)
    if found:
        reference = f"{run.run}@{found[-1].seq}"
        out.hints((f"orchestra show {reference}{option(store)}", "the state at that moment"))


def _start(entry: Entry, passed: Instant, wide: int) -> Line:
    """Where and when it happened; what was undone has a mark."""
    inner = "" if entry.event.kind in _TOP else "  "
    mark = "┊" if entry.undone else " "
    return [(f"@{entry.seq}".rjust(wide + 1), "dim"), (f"  {clock(passed)} {mark} {inner}", "dim")]


def _said(entry: Entry) -> Line:
    sentence = told(entry.event)
    assert sentence is not None, "BUG: only what can be told is chosen"
    line = list(sentence.line)
    if entry.decision is not None and entry.decision.rationale:
        line.append((f", because {entry.decision.rationale}", "dim"))
    return [(text, "dim") for text, _ in line] if entry.undone else line


def _json(entry: Entry) -> dict[str, Any]:
    decision = entry.decision
    return {
        "seq": entry.seq,
        "at": iso(entry.at),
        **event_json(entry.event),
        "undone": entry.undone,
        "rationale": decision.rationale if decision else None,
        "alternatives": list(decision.alternatives) if decision else [],
    }
