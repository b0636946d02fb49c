"""The live display on a terminal: a picture of every run, drawn ten times a second in a thread of its own."""

import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any, Final, Self

import attrs
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestra.cli.render.displays import Display, clock
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Span, Style, fit, length
from orchestra.cli.render.summary import answer_arguments, bar, choices_text, open_waits, spending
from orchestra.cli.render.text import cut, safe, width
from orchestra.cli.render.times import duration
from orchestra.cli.store import option
from orchestra.ids import Instant, PhaseId, RunId, wall_clock
from orchestra.model.records import AgentState, Task
from orchestra.model.state import State
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import TurnRecorded

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SIGNS: Final[dict[str, Span]] = {
    "pending": ("○ ", "dim"),
    "completed": ("✔ ", "good"),
    "failed": ("✖ ", "bad"),
    "skipped": ("⊘ ", "dim"),
    "retired": ("⊘ ", "dim"),
    "abandoned": ("⊘ ", "warn"),
}
_NAME: Final = 18
_SMALL: Final = 6
"""With fewer rows than this a run is one line."""
_RANKS: Final = {"running": 0, "failed": 1, "pending": 2, "completed": 3}
"""Which assignments are shown where there is no room for all; those of another status come last."""


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
    status = status_cell(shown.state.status)
    if shown.state.status == "running":
        status = [(f"{_spin(shown)} running", "accent")]
    return [*status, ("  ", ""), (shown.state.run, "bold")]


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
    asks = next((f"  {wait.text}" for _, wait in open_waits(state)), "")
    return [*_title(shown), (where, ""), (asks, "warn"), (f"  {shown.passed}", "dim")]


def current_tasks(state: State) -> list[tuple[str, Task]]:
    """The assignments of the visit and round a run is in."""
    cursor = state.cursor
    return [
        (name, task)
        for name, task in state.tasks.items()
        if (task.phase, task.visit, task.round) == (cursor.phase, cursor.visit, max(cursor.round, 1))
    ]


def _phases(shown: LiveRun, columns: int, rows: int) -> list[Line]:
    """The phases, with the assignments of the current one; what does not fit is left out at the ends."""
    if shown.workflow is not None:
        names = [phase.id for phase in shown.workflow.phases]
    else:
        names = list(dict.fromkeys(visit.phase for visit in shown.state.path))
    here = shown.state.cursor.phase
    others = sum(name != here for name in names)
    agents = _agents(shown, columns, max(rows - min(others, 4) - 1, 1)) if here else []
    room = max(rows - len(agents) - 1, 0)
    place = names.index(here) if here in names else 0
    first = max(0, min(place - room // 2, len(names) - room - 1))
    lines: list[Line] = []
    for name in names[first : first + room + 1]:
        lines.append(_spread(*_phase(shown, name), columns))
        lines += agents if name == here else []
    return lines


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
    said = f"  {', '.join(notes)}" if notes else ""
    took = _time_passed(max((last.completed_at or shown.now) - last.started_at, 0))
    return [sign, (name, "" if over else "bold"), (said, "warn")], [(took, "dim")]


def _time_passed(microseconds: int) -> str:
    """A length of time that does not flicker while it grows."""
    return duration(microseconds) if microseconds >= 1_000_000 else f"{microseconds / 1_000_000:.1f} s"


def _agents(shown: LiveRun, columns: int, rows: int) -> list[Line]:
    tasks = current_tasks(shown.state)
    fits = len(tasks) <= rows
    ranked = sorted(tasks, key=lambda each: _RANKS.get(each[1].status, len(_RANKS)))
    chosen = {name for name, _ in (ranked if fits else ranked[: max(rows - 1, 0)])}
    lines = [_agent(shown, name, task, columns) for name, task in tasks if name in chosen]
    if fits:
        lines += [_spread(line, [], columns) for line in _not_yet(shown)][: rows - len(lines)]
    else:
        done = sum(task.status == "completed" for _, task in tasks)
        lines.append([(f"    … {done} of {len(tasks)} done", "dim")])
    return lines


def _not_yet(shown: LiveRun) -> Iterator[Line]:
    """The specialists of the current phase whose turn has not come."""
    state, phases = shown.state, shown.workflow.phases if shown.workflow else ()
    phase = next((each for each in phases if each.id == state.cursor.phase), None)
    if phase is None or (state.path and state.path[len(state.path) - 1].completed_at is not None):
        return
    there = {name.rpartition("/")[2].partition("~")[0].partition("[")[0] for name, _ in current_tasks(state)}
    for specialist in phase.specialists:
        if specialist.id not in there:
            after = f"after {', '.join(specialist.needs)}" if specialist.needs else ""
            yield [("    ○ ", "dim"), (specialist.id.ljust(_NAME), "dim"), (f"  {after}", "dim")]


def _agent(shown: LiveRun, name: str, task: Task, columns: int) -> Line:
    agent = shown.state.agents.get(task.agent)
    local = safe(name.rpartition("/")[2])
    label: Span = (cut(local, _NAME) + " " * max(_NAME - width(local), 0), "dim" if _idle(task) else "")
    left = [("    ", ""), _sign(shown, task, agent), label, ("  ", ""), *_activity(task, agent, shown.state)]
    sure = task.confidence if task.confidence is not None else agent.confidence if agent else None
    right: Line = [(f"{sure:.2f}", _tone(sure))] if sure is not None and not _idle(task) else []
    return _spread(left, right, columns)


def _idle(task: Task) -> bool:
    return task.status in ("pending", "skipped", "retired")


def _tone(confidence: float) -> Style:
    return "good" if confidence >= 0.75 else "warn" if confidence >= 0.5 else "bad"


def _sign(shown: LiveRun, task: Task, agent: AgentState | None) -> Span:
    if task.status == "running":
        waiting = agent is not None and agent.status == "waiting"
        return ("? ", "warn") if waiting else (f"{_spin(shown)} ", "accent")
    if task.status == "pending" and task.failures:
        return "↻ ", "warn"
    return _SIGNS.get(task.status, ("· ", "dim"))


def _activity(task: Task, agent: AgentState | None, state: State) -> Line:
    """What an assignment is doing, or how it went."""
    if task.status in ("failed", "pending") and task.failure is not None:
        return [(f"failed {task.failures}×: {task.failure.error}: {task.failure.message}", "bad")]
    if task.status == "completed":
        return [(_time_passed(task.duration_us or 0), "dim")]
    if task.status != "running" or agent is None:
        return []
    again: list[Span] = [(f"attempt {task.attempts}  ", "warn")] if task.attempts > 1 else []
    progress: list[Span] = [*bar(agent.progress), (f" {agent.progress:4.0%}  ", "")] if agent.progress else []
    text = agent.step or _last_words(agent.partial)
    return [*again, *progress, (_streaming(agent, state) or text, "dim")]


def _streaming(agent: AgentState, state: State) -> str:
    """The end of what a model answers an agent just now; before it says anything, that it is asked."""
    message = state.messages.get(agent.message) if agent.message is not None else None
    if message is None:
        return ""
    said = next((part.text for part in reversed(message.parts) if part.text), "")
    step = f" (step {message.step_number})" if message.step_number else ""
    return _last_words(said) or f"asks {message.model or 'a model'}{step}"


def _last_words(text: str) -> str:
    return text.rstrip()[-60:].rpartition("\n")[2]


def _foot(state: State, store: str | None) -> Iterator[Line]:
    figures: list[Span] = []
    if (overall := state.confidence.overall) is not None:
        figures = [("  confidence  ", "dim"), *bar(overall), (f" {overall:.2f}    ", _tone(overall))]
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
        yield [("  waits for   ", "dim"), (wait.text, "warn"), (choices_text(wait), "")]
        if wait.kind == "question":
            which = answer_arguments(wait, alone=alone)
            yield [("              ", ""), (f"orchestra answer {state.run} {which}{option(store)}", "dim")]


_PER_SECOND: Final = 10
_COLOURS: Final[dict[Style, str]] = {"accent": "cyan", "good": "green", "bad": "red", "warn": "yellow"}


class LiveDisplay(Display):
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
        self._workflows[workflow.name] = workflow

    def show_turn(self, notice: TurnRecorded) -> None:
        self._since.setdefault(notice.run, monotonic())

    def say(self, text: str) -> None:
        self._console.print(Text(text, style=_COLOURS["warn"]))

    def picture(self) -> Any:
        """All runs as they are now."""
        size = self._console.size
        lines: list[Line] = []
        for run, state in (shown := list(self.states.items())):
            live = LiveRun(
                state=state,
                workflow=self._workflows.get(state.workflow.name),
                passed=clock(int((monotonic() - self._since.get(run, self._began)) * 1_000_000)),
                now=wall_clock(),
                tick=int((monotonic() - self._began) * _PER_SECOND),
                store=self._store,
            )
            lines += frame(live, columns=size.width, rows=max((size.height - 1) // len(shown), 1))
        styled = ([(text, _COLOURS.get(style, style)) for text, style in line] for line in lines)
        texts = [Text.assemble(*line, no_wrap=True, overflow="crop") for line in styled]
        return Group(*texts[: size.height - 1])

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()
