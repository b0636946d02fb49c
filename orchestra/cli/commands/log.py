"""`orchestra log`: a run as a story, from its first snapshot to its newest, with what was undone."""

from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.render.displays import clock
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Screen, length, print_json, screen
from orchestra.cli.render.story import TALKS, reason_spans, stack_spans, tell_closed_wait, tell_event
from orchestra.cli.render.text import count
from orchestra.cli.store import archive, option
from orchestra.codec.header import left_out_note
from orchestra.history.archive import Archive
from orchestra.history.describe import event_json
from orchestra.history.references import resolve_run
from orchestra.history.story import StoryEntry, Teller
from orchestra.ids import iso
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import RunRow

_SMALL: Final = TALKS | {"milestone_reached", "agent_launched", "effect_intended", "snapshot_requested"}
"""Events that are left out unless all are asked for."""
_TOP: Final = frozenset({"phase_started", "run_started", "run_ended", "forked"})
"""Events that stand further left: the others belong to them."""


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

    With a decision stand the alternatives that were not taken. What a rollback undid is part of the story and
    marked with ┊.
    """
    with archive(store) as opened:
        row = opened.run(resolve_run(opened, run))
        teller = Teller(opened, row)
        found = [each for each in teller.entries() if _wanted(each, all, decisions)]
        if json:
            print_json([_json(each) for each in found])
        else:
            _print(screen(), opened, row, found, store)
        return DAMAGE if teller.damaged else OK


def _wanted(entry: StoryEntry, everything: bool, decisions: bool) -> bool:
    if decisions:
        return entry.event.kind == "decision_made"
    if tell_event(entry.event) is None:
        return False
    if everything or entry.event.kind not in _SMALL:
        return True
    again = dict(entry.event.figures).get("attempt", 1) != 1
    asked = entry.event.what.startswith("user_requested")
    return (entry.event.kind == "agent_launched" and again) or asked


def _print(out: Screen, opened: Archive, run: RunRow, found: list[StoryEntry], store: str | None) -> None:
    ends = [each.event.what for each in found if each.event.kind == "run_ended"]
    status = status_cell(shown_status(opened.store, run), left_out_note(ends[-1]) if ends else "")
    made = [each.undone for each in found if each.event.kind == "decision_made"]
    undone = f" ({sum(made)} undone)" if any(made) else ""
    amounts = f"  {count(run.head + 1, 'snapshot')}, {count(len(made), 'decision')}{undone}"
    out.print_cut([(run.run, "bold"), ("  ", ""), *status, (amounts, "dim")])
    out.line()
    wide = len(str(run.head))
    for each in found:
        start = _start(each, clock(each.at - run.created_at), wide)
        out.paragraph([*start, *_said(opened, each)], indent=length(start) + 2)
        if each.failure is not None:
            out.lines(stack_spans(each.failure, length(start) + 2))
    if found:
        reference = f"{run.run}@{found[-1].seq}"
        out.hints((f"orchestra show {reference}{option(store)}", "the state at that moment"))


def _start(entry: StoryEntry, passed: str, wide: int) -> Line:
    """Where and when it happened; what was undone has a mark."""
    inner = "" if entry.event.kind in _TOP else "  "
    mark = "┊" if entry.undone else " "
    return [(f"@{entry.seq}".rjust(wide + 1), "dim"), (f"  {passed} {mark} {inner}", "dim")]


def _said(opened: Archive, entry: StoryEntry) -> Line:
    sentence = tell_event(entry.event) if entry.wait is None else tell_closed_wait(entry.wait, opened.value)
    assert sentence is not None, "BUG: only what can be told is chosen"
    line = list(sentence.line)
    if entry.decision is not None:
        others = ", ".join(entry.decision.alternatives)
        line += [*reason_spans(entry.decision), (f" (not taken: {others})" if others else "", "dim")]
    return [(text, "dim") for text, _ in line] if entry.undone else line


def _json(entry: StoryEntry) -> dict[str, Any]:
    decision = entry.decision
    return {
        "seq": entry.seq,
        "at": iso(entry.at),
        **event_json(entry.event),
        "undone": entry.undone,
        "rationale": decision.rationale if decision else None,
        "alternatives": list(decision.alternatives) if decision else [],
        "stack": entry.failure.stack if entry.failure else None,
    }
