"""How a run is shown while it plays: as lines, as JSON, live on a terminal, or not at all.

A display is a sink: it is told about every turn on the loop's thread and must return at once.
"""

import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Self

import attrs

from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.screen import Screen, Span, json_text, pick, screen
from orchestra.cli.render.story import ProgressFold, reason_spans, stack_spans, tell_closed_wait, tell_event
from orchestra.codec.values import thaw
from orchestra.history.describe import event_json
from orchestra.ids import Instant, RunId, iso
from orchestra.model import events as ev
from orchestra.model.headline import headline
from orchestra.model.snapshot import Header, Headline
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import CheckpointFailed, Notice, TurnRecorded

STACK_INDENT: Final = 11
_WAITING: Final = 100_000
"""How many notices may wait to be shown; then the runs wait for the reader."""
_CLOSING_SECONDS: Final = 3.0


class Display:
    """Shows runs while they play. This one shows nothing, and remembers the newest state of each run."""

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
        self.say(f"{notice.run}: snapshot {notice.seq} was not saved: {notice.error}")

    def expect(self, workflow: Workflow) -> None:
        """Runs of this workflow will be played."""

    def say(self, text: str) -> None:
        """Something about the whole process."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class JsonLines(Display):
    """One JSON object per event, one event per line."""

    def show_turn(self, notice: TurnRecorded) -> None:
        for event in notice.events:
            line = headline(event, notice.state)
            _write_line(line_json(notice.header, line, event.at) | {"details": _details(event)})

    def show_failure(self, notice: CheckpointFailed) -> None:
        _write_line({**pick(notice, "kind", "run", "seq"), "what": notice.error})


def _write_line(document: dict[str, Any]) -> None:
    out = own_stdout()
    out.write(json_text(document))
    out.flush()


class Lines(Display):
    """A line for every event that matters, with the time since the run was first seen."""

    def __init__(self, out: Screen | None = None, *, named: bool = False) -> None:
        super().__init__()
        self._out = out or screen()
        self._named = named  # several runs are shown, so each line says whose it is
        self._since: dict[RunId, Instant] = {}
        self._progress = ProgressFold()
        self._stacks: dict[tuple[RunId, str], str] = {}

    def show_turn(self, notice: TurnRecorded) -> None:
        since = self._since.setdefault(notice.run, notice.header.at)
        for event in notice.events:
            if not self._progress.is_news(notice.run, headline(event, notice.state), event.at):
                continue
            name = f"{notice.run}  " if self._named else ""
            if line := _sentence(event, notice.state):
                self._out.line((f"{clock(event.at - since)}  ", "dim"), (name, "dim"), *line)
            if isinstance(event, ev.TaskFailed):
                self._print_stack(notice.run, event)
        self._out.out.flush()

    def _print_stack(self, run: RunId, event: ev.TaskFailed) -> None:
        """Where it failed, unless that was told of its last attempt."""
        if self._stacks.get((run, event.task)) != event.failure.stack:
            self._stacks[run, event.task] = event.failure.stack
            self._out.lines(stack_spans(event.failure, STACK_INDENT))

    def show_failure(self, notice: CheckpointFailed) -> None:
        self._out.line(("not saved: ", "bad"), f"{notice.run}@{notice.seq}: {notice.error}")

    def say(self, text: str) -> None:
        self._out.line((text, "warn"))
        self._out.out.flush()


def _handed_over(value: Value) -> object:
    """An answer as it comes with its bytes; one that is too large for that stays in the store."""
    return "a long text" if value.encoded is None else thaw(value)


def _sentence(event: ev.Event, state: State) -> list[Span]:
    """An event as a line, empty if it is not told; what explains it stands behind it."""
    wait = state.waits.get(event.wait) if isinstance(event, ev.WaitClosed) else None
    found = tell_event(headline(event, state)) if wait is None else tell_closed_wait(wait, _handed_over)
    if found is None:
        return []
    line = list(found.line)
    if isinstance(event, ev.DecisionMade):
        line += reason_spans(event.decision)
    if isinstance(event, ev.WaitOpened) and event.choices:
        line.append((f" [{', '.join(event.choices)}]", "dim"))
    return line


def clock(microseconds: int) -> str:
    """Time that has passed, always as wide: `00:03.4`, `12:00.0`, `1:02:03`."""
    tenths = max(microseconds, 0) // 100_000
    minutes, tenths = divmod(tenths, 600)
    if minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02}:{tenths // 10:02}"
    return f"{minutes:02}:{tenths // 10:02}.{tenths % 10}"


def line_json(header: Header, event: Headline, at: Instant) -> dict[str, Any]:
    """An event of a turn, with where the run stands after it."""
    where = pick(header, "status", "phase")
    return {**pick(header, "run", "seq"), "at": iso(at), **event_json(event), **where, "details": {}}


def _details(event: ev.Event) -> dict[str, Any]:
    match event:
        case ev.DecisionMade(decision=decision):
            told = pick(decision, "kind", "description", "rationale", "confidence")
            return told | {"alternatives": list(decision.alternatives)}
        case ev.TaskFailed(failure=failure):
            return {"task": event.task, **pick(failure, "error", "message", "recoverable")}
        case ev.WaitOpened():
            return {**pick(event, "wait", "waits_for", "text"), "choices": list(event.choices)}
        case ev.OutputWritten(output=output):
            return {"path": event.path, "digest": output.digest.hex(), "size": output.size}
        case ev.EvaluationCompleted(verdict=verdict):
            issues = [attrs.asdict(each) for each in event.issues]
            return {"verdict": verdict.kind, **pick(verdict, "score", "feedback"), "issues": issues}
        case ev.TaskCompleted() | ev.AgentLaunched() | ev.TaskPlanned() | ev.TaskRetired():
            return {"task": event.task}
        case ev.TextEmitted():
            return {"text": event.text}
        case ev.MessageStreamed():
            return {**pick(event, "message", "of", "text")}
        case _:
            return {}


class BackgroundDisplay(Display):
    """Hands everything to another display, in order, on a thread. States never change, so that is safe."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._show, name="display", daemon=True)
        self._runs: dict[RunId, None] = {}
        self._broken = False

    @property
    def runs(self) -> list[RunId]:
        return list(self._runs)

    def notice(self, notice: Notice, /) -> None:
        self._runs.setdefault(notice.run)
        self._put(lambda: self._display.notice(notice))

    def expect(self, workflow: Workflow) -> None:
        self._put(lambda: self._display.expect(workflow))

    def say(self, text: str) -> None:
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

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive() and not self._broken:
            self._queue.put(None)
            self._thread.join(_CLOSING_SECONDS)


def display_for(*, as_json: bool, quiet: bool, several: bool, store: str | None = None) -> Display:
    """The display that fits what was asked for and where it is shown."""
    if quiet and not as_json:
        return Display()
    if screen().lively and not as_json:
        from orchestra.cli.render.live import LiveDisplay

        return LiveDisplay(store=store)
    return BackgroundDisplay(JsonLines() if as_json else Lines(named=several))
