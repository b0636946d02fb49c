"""`orchestra status`: where a run stands."""

import os
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Screen, Style, screen
from orchestra.cli.render.summary import bar, facts, label_line, next_steps, state_json
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count
from orchestra.cli.render.times import age, duration
from orchestra.cli.store import SETTINGS_FILE, archive, option
from orchestra.history.archive import Archive
from orchestra.history.describe import figure
from orchestra.history.glance import Glance, glance
from orchestra.history.references import resolve_run
from orchestra.history.story import DecisionCount, count_decisions
from orchestra.ids import AgentId, iso
from orchestra.model.records import AgentState, Decision
from orchestra.model.state import State, skipped_text
from orchestra.ports.run_status import INTERRUPTED, shown_status
from orchestra.ports.store import RunRow

_COLUMNS: Final = (
    Column("agent", least=8),
    Column("status"),
    Column("progress", drop=2),
    Column("step", least=10, drop=3),
    Column("conf", align="right", drop=1),
    Column("tries", align="right", drop=4),
    Column("tokens", align="right", drop=5),
)
_AGENT_STYLES: Final[dict[str, Style]] = {
    "running": "accent",
    "launched": "accent",
    "waiting": "warn",
    "interrupted": "warn",
    "completed": "good",
    "failed": "bad",
}
_DECISIONS: Final = 3
# As in the settings, which cost too much to load for a look; a test keeps them equal.
OUTPUTS_VARIABLE: Final = "ORCHESTRA_PERFORMANCE_OUTPUTS"
DEFAULT_OUTPUTS: Final = "outputs"


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
            stands = shown_status(opened.store, row)
            _print_brief(opened, row, stands, as_json=json)
            return
        state = opened.snapshot(opened.newest(row.run)).state
        if json:
            print_json(_json(row, state, decided_of(opened, row, state)))
        else:
            print_status(screen(), opened, row, state, store)


def decided_of(opened: Archive, row: RunRow, state: State) -> DecisionCount:
    """How many decisions `log` tells of a run."""
    return count_decisions(opened, row, held=len(state.decisions), generation=state.generation)


def _print_brief(opened: Archive, row: RunRow, stands: str, *, as_json: bool) -> None:
    seen = glance(opened, row.run)
    decided = count_decisions(opened, row, held=seen.decisions, generation=seen.generation)
    if as_json:
        print_json(_brief_json(row, seen, decided))
    else:
        screen().wrapped(_brief(row, stands, seen, decided))


def _brief(row: RunRow, stands: str, seen: Glance, decided: DecisionCount) -> Line:
    """A run in a line."""
    where = f"  {seen.phase}" if seen.phase else ""
    sure = "" if seen.confidence is None else f"  confidence {figure(seen.confidence)}"
    last = seen.last_decision
    told = "" if last is None else f"  {last.agent} decided: {last.description}"
    counted = f"  {count(seen.tasks, 'task')}  {count(decided.told, 'decision')}{sure}"
    return [
        (row.run, "bold"),
        ("  ", ""),
        *status_cell(stands, seen.note),
        (f"{where}{counted}", ""),
        (told, "dim"),
    ]


def _brief_json(row: RunRow, seen: Glance, decided: DecisionCount) -> dict[str, Any]:
    last = seen.last_decision
    return {
        "run": row.run,
        "seq": seen.seq,
        "at": iso(seen.at),
        "status": row.status,
        "owned": row.owned,
        "phase": seen.phase,
        "confidence": seen.confidence,
        "tasks": seen.tasks,
        "decisions": decided.told,
        "undone_decisions": decided.undone,
        "note": seen.note or None,
        "last_decision": None if last is None else _decision_json(last),
    }


def outputs_folder() -> str:
    """The folder that runs write into, as the settings say."""
    if not Path(SETTINGS_FILE).exists() and OUTPUTS_VARIABLE not in os.environ:
        return DEFAULT_OUTPUTS
    from orchestra.cli.play.settings import settings_in_force

    return settings_in_force().engine.outputs


def print_status(out: Screen, opened: Archive, row: RunRow, state: State, store: str | None) -> None:
    """Print where a run stands."""
    stands = shown_status(opened.store, row)
    cell = status_cell(stands, skipped_text(state.skipped_tasks))
    out.wrapped([(row.run, "bold"), ("  ", ""), *cell, (f"  {age(row.updated_at)} ago", "dim")])
    out.lines(_about(row, state))
    out.lines(facts(state, outputs_folder(), store))
    if state.agents:
        out.line()
        agents = [
            _cells(AgentId(name), agent, _word(agent, owned=row.owned))
            for name, agent in state.agents.items()
        ]
        print_table(out, _COLUMNS, agents)
    _decisions(out, state, decided_of(opened, row, state))
    kind = INTERRUPTED if stands == INTERRUPTED else state.status
    if not row.owned:
        out.hints(*next_steps(kind, state, store))
    else:
        out.hints((f"orchestra watch {row.run}{option(store)}", "what it does now"))


def _about(row: RunRow, state: State) -> list[Line]:
    lines: list[Line] = [label_line("workflow", [(row.workflow, "")])]
    if state.origin is not None:
        lines.append(label_line("fork of", [(f"{state.origin.run}@{state.origin.seq}", "")]))
    owner = row.owner or "nobody"
    lines.append(label_line("played by", [(owner, "accent") if row.owned else ("nobody now", "dim")]))
    counted = " until its newest snapshot" if state.status == "running" else ""  # more since, not counted yet
    lines.append(label_line("played for", [(duration(state.metrics.elapsed_us), ""), (counted, "dim")]))
    return lines


def _word(agent: AgentState, *, owned: bool) -> str:
    """The status of an agent; one that nobody plays is interrupted."""
    return "interrupted" if agent.status in ("running", "launched") and not owned else agent.status


def _cells(name: AgentId, agent: AgentState, status: str) -> list[Line]:
    sure = agent.confidence
    return [
        [(name, "bold")],
        [(status, _AGENT_STYLES.get(status, "dim"))],
        [*bar(agent.progress, 10), (f" {agent.progress:.0%}", "dim")] if agent.progress else [],
        [(agent.step or "", "")],
        [("" if sure is None else f"{sure:.2f}", "")],
        [(str(agent.attempts) if agent.attempts > 1 else "", "warn")],
        [(f"{agent.tokens:,}" if agent.tokens else "", "dim")],
    ]


def _decisions(out: Screen, state: State, decided: DecisionCount) -> None:
    if not decided:
        return
    out.line()
    out.line(("last decisions", "dim"), (f" of {decided}", "dim"))
    for decision in state.decisions[max(len(state.decisions) - _DECISIONS, 0) :]:
        why = f", because {decision.rationale}" if decision.rationale else ""
        out.wrapped([(f"{decision.agent} ", "accent"), (decision.description, ""), (why, "dim")], indent=2)


def _json(row: RunRow, state: State, decided: DecisionCount) -> dict[str, Any]:
    return {
        "run": row.run,
        "workflow": row.workflow,
        "phase": state.cursor.phase,
        "visit": state.cursor.visit,
        "round": state.cursor.round,
        "owned": row.owned,
        "owner": row.owner,
        "snapshots": row.head + 1,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        **state_json(state, decided, outputs_folder()),
        "agents": {name: _agent_json(agent) for name, agent in state.agents.items()},
        "last_decisions": [
            _decision_json(each) for each in state.decisions[max(len(state.decisions) - _DECISIONS, 0) :]
        ],
    }


def _decision_json(decision: Decision) -> dict[str, str]:
    return {"who": decision.agent, "what": decision.description, "rationale": decision.rationale}


def _agent_json(agent: AgentState) -> dict[str, Any]:
    return {
        "role": agent.role,
        "status": agent.status,
        "phase": agent.phase,
        "step": agent.step,
        "progress": agent.progress,
        "confidence": agent.confidence,
        "tokens": agent.tokens,
        "attempts": agent.attempts,
        "task": agent.task,
    }
