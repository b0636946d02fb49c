"""`orchestra status`: where a run stands."""

from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import pick, print_json, screen
from orchestra.cli.render.summary import count_told, last_decisions, print_status, state_json
from orchestra.cli.render.text import count
from orchestra.cli.store import archive, outputs_folder
from orchestra.history.archive import Archive
from orchestra.history.describe import figure
from orchestra.history.glance import Glance, glance
from orchestra.history.references import resolve_run
from orchestra.history.story import DecisionCount, count_decisions
from orchestra.ids import iso
from orchestra.model.records import Decision
from orchestra.model.state import State
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import RunRow

_AGENT_FIELDS: Final = (
    *("role", "status", "phase", "step", "progress"),
    *("confidence", "tokens", "attempts", "task"),
)


def status(
    run: RunArgument,
    /,
    *,
    brief: Annotated[bool, Parameter(help="In a line, without reading the state.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Show where a run stands: phases, agents, confidence, what it waits for, what it spent, who plays it."""
    with archive(store) as opened:
        row = opened.run(resolve_run(opened, run))
        if brief:
            _print_brief(opened, row, json)
            return
        state = opened.snapshot(opened.newest(row.run)).state
        if json:
            print_json(_json(row, state, count_told(opened, row, state)))
        else:
            print_status(screen(), opened, row, state, store)


def _print_brief(opened: Archive, row: RunRow, as_json: bool) -> None:
    stands = status_cell(shown_status(opened.store, row), (seen := glance(opened, row.run)).note)
    decided = count_decisions(opened, row, held=seen.decisions, generation=seen.generation)
    if as_json:
        print_json(_brief_json(row, seen, decided))
        return
    where = f"  {seen.phase}" if seen.phase else ""
    sure = "" if seen.confidence is None else f"  confidence {figure(seen.confidence)}"
    last = seen.last_decision
    told = "" if last is None else f"  {last.agent} decided: {last.description}"
    counted = f"{where}  {count(seen.tasks, 'task')}  {count(decided.told, 'decision')}{sure}"
    screen().print_cut([(row.run, "bold"), ("  ", ""), *stands, (counted, ""), (told, "dim")])


def _brief_json(row: RunRow, seen: Glance, decided: DecisionCount) -> dict[str, Any]:
    last = seen.last_decision
    return {
        "run": row.run,
        "seq": seen.seq,
        "at": iso(seen.at),
        **pick(row, "status", "owned"),
        **pick(seen, "phase", "confidence", "tasks"),
        "decisions": decided.told,
        "undone_decisions": decided.undone,
        "note": seen.note or None,
        "last_decision": None if last is None else _decision_json(last),
    }


def _json(row: RunRow, state: State, decided: DecisionCount) -> dict[str, Any]:
    return {
        **pick(row, "run", "workflow"),
        **pick(state.cursor, "phase", "visit", "round"),
        **pick(row, "owned", "owner"),
        "snapshots": row.head + 1,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        **state_json(state, decided, outputs_folder()),
        "agents": {name: pick(agent, *_AGENT_FIELDS) for name, agent in state.agents.items()},
        "last_decisions": [_decision_json(each) for each in last_decisions(state)],
    }


def _decision_json(decision: Decision) -> dict[str, str]:
    return {"who": decision.agent, "what": decision.description, "rationale": decision.rationale}
