"""What a run came to, and where it stands: printed when playing it has ended, by `status` and by `watch`."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Column, Line, Screen, Span, Style, length, pick, print_table
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import age, duration
from orchestra.cli.store import option, outputs_folder, quote
from orchestra.history.archive import Archive
from orchestra.history.describe import stack_lines
from orchestra.history.story import DecisionCount, count_decisions
from orchestra.ids import RunId
from orchestra.model.apply.work import is_open_failure
from orchestra.model.records import AgentState, Decision, Failure, Metrics, Wait
from orchestra.model.state import State, skipped_text
from orchestra.ports.run_status import INTERRUPTED, shown_status
from orchestra.ports.store import RunQuery, RunRow

if TYPE_CHECKING:
    from orchestra.engine.atlas import Ending

_LABEL: Final = 11
_METRICS: Final = (
    *("elapsed_us", "api_calls", "tokens", "tokens_in", "tokens_out", "cost_micros"),
    *("recoveries", "rollbacks"),
)
_OUTPUTS_SHOWN: Final = 12
_FAILURES_SHOWN: Final = 5
_DECISIONS_SHOWN: Final = 3
_MOST_RUNS: Final = 10_000
_FOR_PEOPLE: Final = frozenset({"question", "dependency", "breakpoint"})


def label_line(label: str, *spans: Span | str) -> Line:
    """A line with a word in front that says what it is about."""
    line: list[Span] = [(each, "") if isinstance(each, str) else each for each in spans]
    return [(f"  {label.ljust(_LABEL)}", "dim"), *line]


def spending(metrics: Metrics) -> str:
    """What was spent, in words; empty when it was nothing."""
    parts = {
        f"{count(metrics.tokens_in, 'token')} in, {metrics.tokens_out:,} out": metrics.tokens,
        f"{metrics.cost_micros / 1_000_000:.4g} paid": metrics.cost_micros,
        count(metrics.api_calls, "call"): metrics.api_calls,
        count(metrics.recoveries, "recovery", "recoveries"): metrics.recoveries,
        count(metrics.rollbacks, "rollback"): metrics.rollbacks,
    }
    return ", ".join(said for said, amount in parts.items() if amount)


def bar(share: float, width: int = 12) -> Line:
    """A share from 0 to 1 as a bar."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return [("━" * filled, "accent"), ("─" * (width - filled), "dim")]


def path_of(state: State) -> str:
    """The phases a run has been through."""
    names = [visit.phase if visit.visit == 1 else f"{visit.phase}.{visit.visit}" for visit in state.path]
    shown = names if len(names) <= 8 else [*names[:3], f"… {len(names) - 6} more …", *names[-3:]]
    return " → ".join(shown)


def place_of(state: State, outputs: str, path: str) -> str:
    """Where people find an output, as they would type it from here."""
    began, below = Path(state.environment.working_dir), Path(outputs, state.run, path)
    where = began / below
    if not began.is_dir() or (not where.is_file() and below.is_file()):
        where = below.absolute()  # the project was moved here, and its outputs with it
    near = os.path.relpath(where)
    return near if not near.startswith("..") else str(where)


def open_waits(state: State) -> list[tuple[str, Any]]:
    """What a run waits for: nothing once it is over, whatever was asked before."""
    if not state.is_resumable:
        return []
    return [(name, wait) for name, wait in state.waits.items() if wait.status == "open"]


def waits_for_people(opened: Archive, run: RunId | None) -> list[tuple[RunId, str, Wait]]:
    """Every open wait for a person, of one run or of all, oldest first."""
    query = RunQuery(status=("running", "waiting", "paused"), limit=_MOST_RUNS)
    names = [row.run for row in opened.store.runs(query)] if run is None else [run]
    found = [
        (name, wait, held)
        for name in names
        for wait, held in open_waits(opened.snapshot(opened.newest(name)).state)
        if held.kind in _FOR_PEOPLE
    ]
    return sorted(found, key=lambda each: each[2].opened_at)


def print_summary(
    out: Screen, ending: "Ending", decided: DecisionCount, *, outputs: str, store: str | None
) -> None:
    """Print what a run came to, and what to type next."""
    state = ending.state
    sign = status_cell(ending.kind, skipped_text(state.skipped_tasks))
    lasted: Span = (f"  {duration(state.metrics.elapsed_us)}", "dim")
    out.print_cut([*sign, ("  ", ""), (state.run, "bold"), lasted])
    for line in facts(state, outputs, store, decided=decided, columns=out.columns):
        out.paragraph(line, indent=_LABEL + 2)
    for command, purpose in next_steps(ending.kind, state, store):
        room = (out.columns or 1000) - len(command) - len(purpose) - _LABEL - 5
        out.line(*label_line("next", command, (f"   {purpose}" if room >= 0 else "", "dim")))


def facts(
    state: State,
    outputs: str,
    store: str | None,
    *,
    decided: DecisionCount | None = None,
    columns: int | None = None,
) -> Iterator[Line]:
    """What is worth knowing of a run, in lines."""
    if state.failure is not None:
        yield from _failure("failed", state, state.failure, "bad")
    elif state.open_failures:
        failing = [name for name, task in state.tasks.items() if is_open_failure(task)]
        yield from _failed_tasks("failing", state, failing, "bad")
    yield from _failed_tasks("skipped", state, state.skipped_tasks, "warn")
    if state.path:
        yield label_line("phases", path_of(state))
    if (overall := state.confidence.overall) is not None:
        yield label_line("confidence", *bar(overall), f" {overall:.2f}")
    if said := spending(state.metrics):
        yield label_line("spent", said)
    if decided:
        last = state.decisions[len(state.decisions) - 1].description if state.decisions else "undone"
        yield label_line("decisions", str(decided), (f", the last: {last}", "dim"))
    for _, wait in open_waits(state):
        yield label_line("waits for", (f"{wait.kind}: {wait.text}", "warn"), (choices_text(wait), "dim"))
    yield from _outputs(state, outputs, store, columns)


def _failed_tasks(label: str, state: State, names: Sequence[str], style: Style) -> Iterator[Line]:
    """Assignments that are to be tried again, or that a run went on without; each with where it failed."""
    for name in names[:_FAILURES_SHOWN]:
        failure = state.tasks[name].failure
        assert failure is not None, "BUG: only tasks that failed are named"
        yield from _failure(label, state, failure, style, f"{name}: ")
    if len(names) > _FAILURES_SHOWN:
        yield label_line("", (f"and {len(names) - _FAILURES_SHOWN} more", "dim"))


def _failure(label: str, state: State, failure: Failure, style: Style, who: str = "") -> Iterator[Line]:
    first, *more = failure.message.splitlines() or [""]
    yield label_line(label, (f"{who}{failure.error}: {first}", style))
    for line in more:
        yield label_line("", (line, style))
    for line in stack_lines(failure.stack, state.environment.working_dir):
        yield label_line("", (line, "dim"))


def choices_text(wait: Wait) -> str:
    """The choices of a question, to stand behind it."""
    return f" [{', '.join(wait.choices)}]" if wait.choices else ""


def _outputs(state: State, outputs: str, store: str | None, columns: int | None) -> Iterator[Line]:
    """The files a run has made; where there is no room for their sizes, their paths alone."""
    command = f"orchestra outputs {state.run}{option(store)}"
    for at, (path, output) in enumerate(islice(state.outputs.items(), _OUTPUTS_SHOWN)):
        where = place_of(state, outputs, path)
        missing = "" if Path(where).is_file() else f"  in the store only: {command}"
        line = label_line("" if at else "outputs", where, (f"  {size(output.size)}{missing}", "dim"))
        narrow = not missing and columns is not None and length(line) > columns
        yield line[:-1] if narrow else line
    if (more := len(state.outputs) - _OUTPUTS_SHOWN) > 0:
        yield label_line("", (f"and {more} more: {command}", "dim"))


def answer_arguments(wait: Wait, *, alone: bool) -> str:
    """What follows the run in a command that answers this question: which one, if there are others."""
    answer = quote(wait.choices[0]) if wait.choices else "VALUE"
    return answer if alone else f"{answer} --question {quote(wait.text)}"


def next_steps(kind: str, state: State, store: str | None) -> list[tuple[str, str]]:
    """What to type next, and what for."""
    at, run = option(store), state.run
    page = (f"orchestra browse {run}{at}", "every moment of it, on a page")
    if store == "memory:":
        return []  # nothing is left of it
    if kind == "completed":
        return [(f"orchestra log {run}{at}", "what was decided, and why"), page]
    if kind == "cancelled":
        return [(f"orchestra fork {run}@last-good --run{at}", "begins again from there")]
    if kind == "failed":
        again = (f"orchestra resume {run}{at}", "tries again what failed")
        return [(f"orchestra log {run}{at}", "what led to it"), page, again]
    waits = [wait for _, wait in open_waits(state)]
    if questions := [wait for wait in waits if wait.kind == "question"]:
        which = answer_arguments(questions[0], alone=len(questions) == 1)
        return [(f"orchestra answer {run} {which} --resume{at}", "answers, and goes on")]
    if needs := [wait for wait in waits if wait.kind == "dependency"]:
        return [(f"orchestra provide {run} {needs[0].text} --resume{at}", "once it is set")]
    return [(f"orchestra resume {run}{at}", "goes on where it stopped")]


def summary_json(ending: "Ending", decided: DecisionCount, outputs: str, store: str | None) -> dict[str, Any]:
    """What a run came to, as JSON."""
    state = ending.state
    return {
        "kind": "ending",
        "run": state.run,
        "ending": ending.kind,
        **state_json(state, decided, outputs),
        "next": [command for command, _ in next_steps(ending.kind, state, store)],
    }


def state_json(state: State, decided: DecisionCount, outputs: str) -> dict[str, Any]:
    """Where a run stands, as JSON."""
    return {
        "status": state.status,
        "phases": [visit.phase for visit in state.path],
        "confidence": state.confidence.overall,
        "decisions": decided.told,
        "undone_decisions": decided.undone,
        "failure": _failure_json(state.failure),
        "skipped": [
            {"task": task, **(_failure_json(state.tasks[task].failure) or {})} for task in state.skipped_tasks
        ],
        "metrics": pick(state.metrics, *_METRICS),
        "outputs": [
            {"path": path, "file": place_of(state, outputs, path), "size": output.size}
            for path, output in state.outputs.items()
        ],
        "waits": [
            {"wait": name, **pick(wait, "kind", "text"), "choices": list(wait.choices)}
            for name, wait in open_waits(state)
        ],
    }


def _failure_json(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else pick(failure, "error", "message", "stack")


class _Shown(NamedTuple):
    """An agent as it is shown: one that nobody plays is interrupted."""

    name: str
    agent: AgentState
    status: str


_COLUMNS: Final[tuple[Column[_Shown], ...]] = (
    Column("agent", lambda each: (each.name, "bold"), least=8),
    Column("status", lambda each: (each.status, _AGENT_STYLES.get(each.status, "dim"))),
    Column("progress", lambda each: _progress(each.agent.progress), drop=2),
    Column("step", lambda each: each.agent.step or "", least=10, drop=3),
    Column(
        "conf", lambda each: "" if (sure := each.agent.confidence) is None else f"{sure:.2f}", "right", drop=1
    ),
    Column("tries", lambda each: (_above(1, each.agent.attempts), "warn"), align="right", drop=4),
    Column("tokens", lambda each: (_above(0, each.agent.tokens), "dim"), align="right", drop=5),
)
_AGENT_STYLES: Final[dict[str, Style]] = {
    "running": "accent",
    "launched": "accent",
    "waiting": "warn",
    "interrupted": "warn",
    "completed": "good",
    "failed": "bad",
}


def print_status(out: Screen, opened: Archive, row: RunRow, state: State, store: str | None) -> None:
    """Print where a run stands."""
    stands = shown_status(opened.store, row)
    cell = status_cell(stands, skipped_text(state.skipped_tasks))
    out.print_cut([(row.run, "bold"), ("  ", ""), *cell, (f"  {age(row.updated_at)} ago", "dim")])
    owner: Span = (row.owner or "nobody", "accent") if row.owned else ("nobody now", "dim")
    counted = " until its newest snapshot" if state.status == "running" else ""  # more since, not counted yet
    out.line(*label_line("workflow", row.workflow))
    if state.origin is not None:
        out.line(*label_line("fork of", f"{state.origin.run}@{state.origin.seq}"))
    out.line(*label_line("played by", owner))
    out.line(*label_line("played for", duration(state.metrics.elapsed_us), (counted, "dim")))
    out.lines(facts(state, outputs_folder(), store))
    if state.agents:
        out.line()
        left = {} if row.owned else dict.fromkeys(("running", "launched"), INTERRUPTED)
        shown = (
            _Shown(name, each, left.get(each.status, each.status)) for name, each in state.agents.items()
        )
        print_table(out, _COLUMNS, shown)
    if decided := count_told(opened, row, state):
        out.line()
        out.line((f"last decisions of {decided}", "dim"))
    for decision in last_decisions(state) if decided else ():
        why = f", because {decision.rationale}" if decision.rationale else ""
        out.print_cut([(f"{decision.agent} ", "accent"), (decision.description, ""), (why, "dim")], indent=2)
    kind = INTERRUPTED if stands == INTERRUPTED else state.status
    if not row.owned:
        out.hints(*next_steps(kind, state, store))
    else:
        out.hints((f"orchestra watch {row.run}{option(store)}", "what it does now"))


def count_told(opened: Archive, row: RunRow, state: State) -> DecisionCount:
    """How many decisions `log` tells of a run."""
    return count_decisions(opened, row, held=len(state.decisions), generation=state.generation)


def _progress(share: float) -> Line:
    return [*bar(share, 10), (f" {share:.0%}", "dim")] if share else []


def _above(least: int, number: int) -> str:
    return f"{number:,}" if number > least else ""


def last_decisions(state: State) -> Sequence[Decision]:
    """The newest decisions of a run, as many as are shown."""
    return state.decisions[max(len(state.decisions) - _DECISIONS_SHOWN, 0) :]
