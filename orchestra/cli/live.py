"""The live display on a terminal: the picture of every run, drawn ten times a second in a thread of its own.

The loop only hands over states, which never change, so drawing can neither slow it nor see half a turn.
"""

import sys
from time import monotonic
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestra.cli.clock import now
from orchestra.cli.displays import Quiet, clock
from orchestra.cli.frame import Shown, frame
from orchestra.cli.screen import Line
from orchestra.ids import RunId
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import CheckpointFailed, TurnRecorded

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

    def turn(self, notice: TurnRecorded) -> None:
        """A turn was recorded."""
        self._since.setdefault(notice.run, monotonic())

    def failed(self, notice: CheckpointFailed) -> None:
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
                Shown(
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
