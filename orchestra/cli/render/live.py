"""The live display on a terminal: a picture of every run, drawn ten times a second in a thread of its own."""

import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any, Final

import attrs
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestra.cli.render.displays import Quiet, clock
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Span, Style, fit, length
from orchestra.cli.render.summary import answer_arguments, bar, open_waits, spending
from orchestra.cli.render.text import cut, safe, width
from orchestra.cli.render.times import duration, now
from orchestra.cli.store import option
from orchestra.ids import Instant, PhaseId, RunId
from orchestra.model.records import AgentState, Task
from orchestra.model.state import State, Visit
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import CheckpointFailed, TurnRecorded

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SIGNS: Final[dict[str, tuple[str, Style]]] = {
    "pending": ("○", "dim"),
    "completed": ("✔", "good"),
    "failed": ("✖", "bad"),
    "skipped": ("⊘", "dim"),
    "retired": ("⊘", "dim"),
    "abandoned": ("⊘", "warn"),
}
_NAME: Final = 18
_SMALL: Final = 6
"""With fewer rows than this a run is one line."""
_ORDER: Final = ("running", "failed", "pending", "completed")


@attrs.frozen(kw_only=True)
class LiveRun:
    """A run as it is shown: its newest state, its workflow, and how long it has been watched."""

    state: State
    workflow: Workflow | None
    passed: str  # since it was first seen, e.g. `00:03.4`
    now: Instant
    tick: int = 0  # turns the spinner
    store: str | None = None  # to be named in commands


def frame(shown: LiveRun, *, columns: int, rows: int) -> list[Line]:
    """The lines of one run, at most `rows` of them, none wider than `columns`."""
    if rows < _SMALL:
        return [fit(_small(shown), columns)]
    foot = [fit(line, columns) for line in _foot(shown.state, shown.store)]
    head = _spread(_title(shown), [(shown.passed, "dim")], columns)
    body = _phases(shown, columns, max(rows - len(foot) - 3, 2))
    return [head, *body, *([[]] if foot else []), *foot][:rows]


def _title(shown: LiveRun) -> Line:
    return [*_status_line(shown), ("  ", ""), (shown.state.run, "bold")]


def _status_line(shown: LiveRun) -> Line:
    if shown.state.status == "running":
        return [(f"{_spin(shown)} ", "accent"), ("running", "accent")]
    return status_cell(shown.state.status)


def _spin(shown: LiveRun) -> str:
    return SPINNER[shown.tick % len(SPINNER)]


def _spread(left: Line, right: Line, columns: int) -> Line:
    """A line with something at its right edge."""
    room = columns - length(right) - 2
    fitted = fit(left, room)
    gap: Span = (" " * (room - length(fitted) + 2), "")
    return [*fitted, gap, *right]


def _small(shown: LiveRun) -> Line:
    state = shown.state
    tasks = current_tasks(state)
    done = sum(task.status == "completed" for _, task in tasks)
    where = f"  {state.cursor.phase}  {done} of {len(tasks)}" if state.cursor.phase else ""
    waits = [wait.text for _, wait in open_waits(state)]
    asks: Span = (f"  {waits[0]}" if waits else "", "warn")
    return [*_title(shown), (where, ""), asks, (f"  {shown.passed}", "dim")]


def current_tasks(state: State) -> list[tuple[str, Task]]:
    """The assignments of the visit and round a run is in."""
    cursor = state.cursor
    return [
        (name, task)
        for name, task in state.tasks.items()
        if (task.phase, task.visit, task.round) == (cursor.phase, cursor.visit, max(cursor.round, 1))
    ]


# --- phases


def _phases(shown: LiveRun, columns: int, rows: int) -> list[Line]:
    """The phases, with the assignments of the current one; what does not fit is left out at the ends."""
    state = shown.state
    names = _names(shown)
    here = state.cursor.phase
    others = [name for name in names if name != here]
    agents = _agents(shown, columns, max(rows - min(len(others), 4) - 1, 1)) if here else []
    room = max(rows - len(agents) - 1, 0)
    place = names.index(here) if here in names else 0
    first = max(0, min(place - room // 2, len(names) - room - 1))
    lines: list[Line] = []
    for name in names[first : first + room + 1]:
        lines.append(_spread(*_phase(shown, name), columns))
        lines += agents if name == here else []
    return lines


def _names(shown: LiveRun) -> list[PhaseId]:
    """Every phase: of the workflow when it is known, else those the run has been to."""
    if shown.workflow is not None:
        return [phase.id for phase in shown.workflow.phases]
    return list(dict.fromkeys(visit.phase for visit in shown.state.path))


def _phase(shown: LiveRun, name: PhaseId) -> tuple[Line, Line]:
    visits = [visit for visit in shown.state.path if visit.phase == name]
    if not visits:
        return [("  ○ ", "dim"), (name, "dim")], []
    last = visits[-1]
    over = last.completed_at is not None
    sign: Span = ("  ✔ ", "good") if over else ("  ● ", "accent")
    notes = [f"visit {len(visits)}"] if len(visits) > 1 else []
    if not over and shown.state.cursor.round > 1:
        notes.append(f"round {shown.state.cursor.round}")
    said: Span = (f"  {', '.join(notes)}" if notes else "", "warn")
    return [sign, (name, "" if over else "bold"), said], [(_visit_time(last, shown.now), "dim")]


def _visit_time(visit: Visit, now: Instant) -> str:
    return _time_passed(max((visit.completed_at or now) - visit.started_at, 0))


def _time_passed(microseconds: int) -> str:
    """A length of time that does not flicker while it grows."""
    return duration(microseconds) if microseconds >= 1_000_000 else f"{microseconds / 1_000_000:.1f} s"


# --- assignments


def _agents(shown: LiveRun, columns: int, rows: int) -> list[Line]:
    tasks = sorted(current_tasks(shown.state), key=lambda each: _rank(each[1]))
    fits = len(tasks) <= rows
    chosen = tasks if fits else tasks[: max(rows - 1, 0)]
    order = {name: at for at, (name, _) in enumerate(current_tasks(shown.state))}
    lines = [
        _agent(shown, name, task, columns) for name, task in sorted(chosen, key=lambda each: order[each[0]])
    ]
    if fits:
        lines += [_spread(line, [], columns) for line in _not_yet(shown)][: rows - len(lines)]
    else:
        done = sum(task.status == "completed" for _, task in tasks)
        lines.append([(f"    … {done} of {len(tasks)} done", "dim")])
    return lines


def _not_yet(shown: LiveRun) -> Iterator[Line]:
    """The specialists of the current phase whose turn has not come."""
    state, workflow = shown.state, shown.workflow
    phase = (
        next((each for each in workflow.phases if each.id == state.cursor.phase), None) if workflow else None
    )
    if phase is None or (state.path and state.path[len(state.path) - 1].completed_at is not None):
        return
    there = {name.rpartition("/")[2].partition("~")[0].partition("[")[0] for name, _ in current_tasks(state)}
    for specialist in phase.specialists:
        if specialist.id not in there:
            after = f"after {', '.join(specialist.needs)}" if specialist.needs else ""
            yield [("    ○ ", "dim"), (specialist.id.ljust(_NAME), "dim"), (f"  {after}", "dim")]


def _rank(task: Task) -> int:
    return _ORDER.index(task.status) if task.status in _ORDER else len(_ORDER)


def _agent(shown: LiveRun, name: str, task: Task, columns: int) -> Line:
    agent = shown.state.agents.get(task.agent)
    local = safe(name.rpartition("/")[2])
    label: Span = (cut(local, _NAME) + " " * max(_NAME - width(local), 0), "dim" if _idle(task) else "")
    left: Line = [("    ", ""), *_sign(shown, task, agent), label, ("  ", ""), *_activity(task, agent)]
    sure = task.confidence if task.confidence is not None else agent.confidence if agent else None
    right: Line = [(f"{sure:.2f}", _tone(sure))] if sure is not None and not _idle(task) else []
    return _spread(left, right, columns)


def _idle(task: Task) -> bool:
    return task.status in ("pending", "skipped", "retired")


def _tone(confidence: float) -> Style:
    return "good" if confidence >= 0.75 else "warn" if confidence >= 0.5 else "bad"


def _sign(shown: LiveRun, task: Task, agent: AgentState | None) -> Line:
    if task.status == "running":
        waiting = agent is not None and agent.status == "waiting"
        return [("? " if waiting else f"{_spin(shown)} ", "warn" if waiting else "accent")]
    if task.status == "pending" and task.failures:
        return [("↻ ", "warn")]
    sign, style = _SIGNS.get(task.status, ("·", "dim"))
    return [(f"{sign} ", style)]


def _activity(task: Task, agent: AgentState | None) -> Line:
    """What an assignment is doing, or how it went."""
    if task.status in ("failed", "pending") and task.failure is not None:
        return [(f"failed {task.failures}×: {task.failure.error}: {task.failure.message}", "bad")]
    if task.status == "completed":
        return [(_time_passed(task.duration_us or 0), "dim")]
    if task.status != "running" or agent is None:
        return []
    again: list[Span] = [(f"attempt {task.attempts}  ", "warn")] if task.attempts > 1 else []
    progress: list[Span] = [*bar(agent.progress), (f" {agent.progress:4.0%}  ", "")] if agent.progress else []
    text = agent.step or agent.partial.rstrip()[-60:].rpartition("\n")[2]
    return [*again, *progress, (text, "dim")]


# --- below


def _foot(state: State, store: str | None) -> Iterator[Line]:
    figures: list[Span] = []
    if state.confidence.overall is not None:
        overall = state.confidence.overall
        figures += [
            ("  confidence  ", "dim"),
            *bar(overall),
            (f" {overall:.2f}", _tone(overall)),
            ("    ", ""),
        ]
    if said := spending(state.metrics):
        figures += [("" if figures else "  ", ""), (said, "dim")]
    if figures:
        yield figures
    if state.decisions:
        last = state.decisions[len(state.decisions) - 1]
        yield [("  decided     ", "dim"), (f"{last.agent}: ", "accent"), (last.description, "")]
    waits = [wait for _, wait in open_waits(state) if wait.kind != "rate_limit"]
    alone = [wait.kind for wait in waits].count("question") == 1
    for wait in waits[:3]:
        choices = f" [{', '.join(wait.choices)}]" if wait.choices else ""
        yield [("  waits for   ", "dim"), (wait.text, "warn"), (choices, "")]
        if wait.kind == "question":
            which = answer_arguments(wait, alone=alone)
            yield [("              ", ""), (f"orchestra answer {state.run} {which}{option(store)}", "dim")]


_PER_SECOND: Final = 10
_STYLES: Final = {
    "": "",
    "dim": "dim",
    "bold": "bold",
    "accent": "cyan",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
}


class LiveDisplay(Quiet):
    """Shows runs as a picture that changes in place."""

    def __init__(self, console: Console | None = None, *, store: str | None = None) -> None:
        """`store` is named in commands, when it is not the one that they use by themselves."""
        super().__init__()
        self._store = store
        self._console = console or Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        self._workflows: dict[str, Workflow] = {}
        self._since: dict[RunId, float] = {}
        self._began = monotonic()
        self._live = Live(
            get_renderable=self.picture,
            console=self._console,
            refresh_per_second=_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
        )

    def expect(self, workflow: Workflow) -> None:
        """Runs of this workflow will be played."""
        self._workflows[workflow.name] = workflow

    def show_turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""
        self._since.setdefault(notice.run, monotonic())

    def show_failure(self, notice: CheckpointFailed) -> None:
        """A turn could not be recorded."""
        self.say(f"{notice.run}: snapshot {notice.seq} was not saved: {notice.error}")

    def say(self, text: str) -> None:
        """Something about the whole process, above the picture."""
        self._console.print(Text(text, style=_STYLES["warn"]))

    def picture(self) -> Any:
        """All runs as they are now."""
        size = self._console.size
        shown = list(self.states.items())
        rows = max((size.height - 1) // max(len(shown), 1), 1)
        lines = [
            line
            for run, state in shown
            for line in frame(
                LiveRun(
                    state=state,
                    workflow=self._workflows.get(state.workflow.name),
                    passed=clock(int((monotonic() - self._since.get(run, self._began)) * 1_000_000)),
                    now=now(),
                    tick=int((monotonic() - self._began) * _PER_SECOND),
                    store=self._store,
                ),
                columns=size.width,
                rows=rows,
            )
        ]
        return Group(*[_text(line) for line in lines[: size.height - 1]])

    def __enter__(self) -> "LiveDisplay":
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()


def _text(line: Line) -> Text:
    made = Text(no_wrap=True, overflow="crop")
    for text, style in line:
        made.append(text, style=_STYLES[style])
    return made
