"""A display in a thread of its own: whoever reads slowly, or not at all, does not hold the runs up."""

import queue
import threading
from collections.abc import Callable
from typing import Final

from orchestra.cli.render.displays import Display
from orchestra.ids import RunId
from orchestra.model.workflow import Workflow
from orchestra.ports.sink import Notice

_WAITING: Final = 100_000
"""How many notices may wait to be shown; then the runs wait for the reader."""
_CLOSING_SECONDS: Final = 3.0


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
