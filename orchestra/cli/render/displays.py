"""How a run is shown while it plays: as lines, as JSON, live on a terminal, or not at all.

A display is a sink: it is told about every turn on the loop's thread and must return at once.
"""

import json
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import attrs

from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.json_text import pick
from orchestra.cli.render.screen import Screen, Span, screen
from orchestra.cli.render.story import ProgressFold, reason_spans, stack_spans, tell_closed_wait, tell_event
from orchestra.cli.render.text import safe_json
from orchestra.codec.values import thaw
from orchestra.history.describe import event_json
from orchestra.ids import Instant, RunId, iso
from orchestra.model import events as ev
from orchestra.model.headline import headline
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import CheckpointFailed, Notice, TurnRecorded

_STACK_INDENT: Final = 11
_WAITING: Final = 100_000
"""How many notices may wait to be shown; then the runs wait for the reader."""
_CLOSING_SECONDS: Final = 3.0


class Display(Protocol):
    """Shows runs while they play."""

    @property
    def runs(self) -> list[RunId]:
        """The runs that were shown."""

    def notice(self, notice: Notice, /) -> None:
        """Something was recorded."""

    def expect(self, workflow: Workflow) -> None:
        """Runs of this workflow will be played."""

    def say(self, text: str) -> None:
        """Something about the whole process."""

    def __enter__(self) -> "Display": ...

    def __exit__(self, *error: object) -> None: ...


class Quiet:
    """Shows nothing, and remembers the newest state of each run."""

    def __init__(self) -> None:
        self.states: dict[RunId, State] = {}

    @property
    def runs(self) -> list[RunId]:
        """The runs that were shown."""
        return list(self.states)

    def notice(self, notice: Notice, /) -> None:
        """Something was recorded."""
        if isinstance(notice, TurnRecorded):
            self.states[notice.run] = notice.state
            self.show_turn(notice)
        elif isinstance(notice, CheckpointFailed):
            self.show_failure(notice)

    def show_turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""

    def show_failure(self, notice: CheckpointFailed) -> None:
        """A turn could not be recorded."""
        sys.stderr.write(f"{notice.run}: snapshot {notice.seq} was not saved: {notice.error}\n")

    def expect(self, workflow: Workflow) -> None:
        """Runs of this workflow will be played."""

    def say(self, text: str) -> None:
        """Something about the whole process."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *error: object) -> None:
        return None


class JsonLines(Quiet):
    """One JSON object per event, one event per line."""

    def show_turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""
        for event in notice.events:
            _write_line(line_json(notice, event))

    def show_failure(self, notice: CheckpointFailed) -> None:
        """A turn could not be recorded."""
        _write_line({"kind": notice.kind, "run": notice.run, "seq": notice.seq, "what": notice.error})


def _write_line(document: dict[str, Any]) -> None:
    out = own_stdout()
    out.write(safe_json(json.dumps(document, ensure_ascii=False, allow_nan=False)) + "\n")
    out.flush()


class Lines(Quiet):
    """A line for every event that matters, with the time since the run was first seen."""

    def __init__(self, out: Screen | None = None, *, named: bool = False) -> None:
        super().__init__()
        self._out = out or screen()
        self._named = named  # several runs are shown, so each line says whose it is
        self._since: dict[RunId, Instant] = {}
        self._progress = ProgressFold()
        self._stacks: dict[tuple[RunId, str], str] = {}

    def show_turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""
        since = self._since.setdefault(notice.run, notice.header.at)
        for event in notice.events:
            if not self._progress.is_news(notice.run, headline(event, notice.state), event.at):
                continue
            for line in sentences(event, notice.state):
                self._print(notice.run, Instant(event.at - since), line)
            if isinstance(event, ev.TaskFailed):
                self._print_stack(notice.run, event)
        self._out.out.flush()

    def _print_stack(self, run: RunId, event: ev.TaskFailed) -> None:
        """Where it failed, unless that was told of its last attempt."""
        if self._stacks.get((run, event.task)) != event.failure.stack:
            self._stacks[run, event.task] = event.failure.stack
            self._out.lines(stack_spans(event.failure, _STACK_INDENT))

    def _print(self, run: RunId, passed: Instant, line: list[Span]) -> None:
        name: list[Span] = [(f"{run}  ", "dim")] if self._named else []
        self._out.line((f"{clock(passed)}  ", "dim"), *name, *line)

    def show_failure(self, notice: CheckpointFailed) -> None:
        """A turn could not be recorded."""
        self._out.line(("not saved: ", "bad"), f"{notice.run}@{notice.seq}: {notice.error}")

    def say(self, text: str) -> None:
        """Something about the whole process."""
        self._out.line((text, "warn"))
        self._out.out.flush()


class _Opened:
    """Answers as they are handed over, with their bytes; one that is too large for it stays in the store."""

    def value(self, value: Value, /) -> object:
        """The data of a frozen value."""
        return "a long text" if value.encoded is None else thaw(value)


def sentences(event: ev.Event, state: State) -> Iterator[list[Span]]:
    """An event as a line, or none; what explains it stands behind it."""
    wait = state.waits.get(event.wait) if isinstance(event, ev.WaitClosed) else None
    found = tell_event(headline(event, state)) if wait is None else tell_closed_wait(wait, _Opened())
    if found is None:
        return
    line = list(found.line)
    if isinstance(event, ev.DecisionMade):
        line += reason_spans(event.decision)
    if isinstance(event, ev.WaitOpened) and event.choices:
        line.append((f" [{', '.join(event.choices)}]", "dim"))
    yield line


def clock(microseconds: int) -> str:
    """Time that has passed, always as wide: `00:03.4`, `12:00.0`, `1:02:03`."""
    tenths = max(microseconds, 0) // 100_000
    minutes, tenths = divmod(tenths, 600)
    if minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02}:{tenths // 10:02}"
    return f"{minutes:02}:{tenths // 10:02}.{tenths % 10}"


def line_json(notice: TurnRecorded, event: ev.Event) -> dict[str, Any]:
    """An event of a turn, with where the run stands after it."""
    state = notice.state
    return {
        "run": notice.run,
        "seq": notice.header.seq,
        "at": iso(event.at),
        **event_json(headline(event, state)),
        "status": state.status,
        "phase": state.cursor.phase,
        "details": _details(event),
    }


def _details(event: ev.Event) -> dict[str, Any]:
    match event:
        case ev.DecisionMade(decision=decision):
            names = ("kind", "description", "rationale", "confidence", "alternatives")
            return {name: _plain(getattr(decision, name)) for name in names}
        case ev.TaskFailed(failure=failure):
            return {"task": event.task, **pick(failure, "error", "message", "recoverable")}
        case ev.WaitOpened():
            return {**pick(event, "wait", "waits_for", "text"), "choices": list(event.choices)}
        case ev.OutputWritten(output=output):
            return {"path": event.path, "digest": output.digest.hex(), "size": output.size}
        case ev.EvaluationCompleted(verdict=verdict):
            return {
                "verdict": verdict.kind,
                "score": verdict.score,
                "feedback": verdict.feedback,
                "issues": [attrs.asdict(each) for each in event.issues],
            }
        case ev.TaskCompleted() | ev.AgentLaunched() | ev.TaskPlanned() | ev.TaskRetired():
            return {"task": event.task}
        case ev.TextEmitted():
            return {"text": event.text}
        case _:
            return {}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


class BackgroundDisplay:
    """Hands everything to another display, in order, on a thread. States never change, so that is safe."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._show, name="display", daemon=True)
        self._runs: dict[RunId, None] = {}
        self._broken = False

    @property
    def runs(self) -> list[RunId]:
        """The runs that were shown."""
        return list(self._runs)

    def notice(self, notice: Notice, /) -> None:
        """Something was recorded."""
        self._runs.setdefault(notice.run)
        self._put(lambda: self._display.notice(notice))

    def expect(self, workflow: Workflow) -> None:
        """Runs of this workflow will be played."""
        self._put(lambda: self._display.expect(workflow))

    def say(self, text: str) -> None:
        """Something about the whole process."""
        self._put(lambda: self._display.say(text))

    def _put(self, show: Callable[[], None]) -> None:
        if not self._broken:
            self._queue.put(show)

    def _show(self) -> None:
        while (show := self._queue.get()) is not None:
            try:
                show()
            except OSError:  # nobody reads any more; whoever prints the summary says so
                self._broken = True
                return

    def __enter__(self) -> "BackgroundDisplay":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive() and not self._broken:
            self._queue.put(None)
            self._thread.join(_CLOSING_SECONDS)


def display_for(*, as_json: bool, quiet: bool, several: bool, store: str | None = None) -> Display:
    """The display that fits what was asked for and where it is shown."""
    if quiet and not as_json:
        return Quiet()
    if screen().lively and not as_json:
        from orchestra.cli.render.live import LiveDisplay

        return LiveDisplay(store=store)
    return BackgroundDisplay(JsonLines() if as_json else Lines(named=several))
