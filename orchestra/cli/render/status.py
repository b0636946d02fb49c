"""Where a run stands, in full."""

from typing import Final

from orchestra.cli.play.outputs_folder import outputs_folder
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Screen, Style
from orchestra.cli.render.summary import bar, facts, label_line, next_steps
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.times import age, duration
from orchestra.cli.store import option
from orchestra.history.archive import Archive
from orchestra.history.story import DecisionCount, count_decisions
from orchestra.ids import AgentId
from orchestra.model.records import AgentState
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
DECISIONS_SHOWN: Final = 3


def print_status(out: Screen, opened: Archive, row: RunRow, state: State, store: str | None) -> None:
    """Print where a run stands."""
    stands = shown_status(opened.store, row)
    cell = status_cell(stands, skipped_text(state.skipped_tasks))
    out.print_cut([(row.run, "bold"), ("  ", ""), *cell, (f"  {age(row.updated_at)} ago", "dim")])
    out.lines(_about(row, state))
    out.lines(facts(state, outputs_folder(), store))
    if state.agents:
        out.line()
        agents = [
            _cells(AgentId(name), agent, _word(agent, owned=row.owned))
            for name, agent in state.agents.items()
        ]
        print_table(out, _COLUMNS, agents)
    _print_decisions(out, state, decisions_of(opened, row, state))
    kind = INTERRUPTED if stands == INTERRUPTED else state.status
    if not row.owned:
        out.hints(*next_steps(kind, state, store))
    else:
        out.hints((f"orchestra watch {row.run}{option(store)}", "what it does now"))


def decisions_of(opened: Archive, row: RunRow, state: State) -> DecisionCount:
    """How many decisions `log` tells of a run."""
    return count_decisions(opened, row, held=len(state.decisions), generation=state.generation)


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


def _print_decisions(out: Screen, state: State, decided: DecisionCount) -> None:
    if not decided:
        return
    out.line()
    out.line(("last decisions", "dim"), (f" of {decided}", "dim"))
    for decision in state.decisions[max(len(state.decisions) - DECISIONS_SHOWN, 0) :]:
        why = f", because {decision.rationale}" if decision.rationale else ""
        out.print_cut([(f"{decision.agent} ", "accent"), (decision.description, ""), (why, "dim")], indent=2)
