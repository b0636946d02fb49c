"""How a run is shown while it plays: as lines, as JSON, live on a terminal, or not at all.

A display is a sink: it is told about every turn on the loop's thread and must return at once.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any, Final, Protocol

from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.json_lines import line_json
from orchestra.cli.render.screen import Screen, Span, screen
from orchestra.cli.render.story import ProgressFold, because, over, stack_spans, tell_event
from orchestra.cli.render.text import safe_json
from orchestra.codec.values import thaw
from orchestra.ids import Instant, RunId
from orchestra.model import events as ev
from orchestra.model.headline import headline
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import CheckpointFailed, Notice, TurnRecorded

_STACK_INDENT: Final = 11


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
            self.turn(notice)
        elif isinstance(notice, CheckpointFailed):
            self.failed(notice)

    def turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""

    def failed(self, notice: CheckpointFailed) -> None:
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

    def turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""
        for event in notice.events:
            _write_line(line_json(notice, event))

    def failed(self, notice: CheckpointFailed) -> None:
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

    def turn(self, notice: TurnRecorded) -> None:
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

    def failed(self, notice: CheckpointFailed) -> None:
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
    found = tell_event(headline(event, state)) if wait is None else over(wait, _Opened())
    if found is None:
        return
    line = list(found.line)
    if isinstance(event, ev.DecisionMade):
        line += because(event.decision)
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


def display_for(*, as_json: bool, quiet: bool, several: bool, store: str | None = None) -> Display:
    """The display that fits what was asked for and where it is shown."""
    if quiet and not as_json:
        return Quiet()
    if screen().lively and not as_json:
        from orchestra.cli.render.live import LiveDisplay

        return LiveDisplay(store=store)
    from orchestra.cli.render.background import BackgroundDisplay

    return BackgroundDisplay(JsonLines() if as_json else Lines(named=several))
