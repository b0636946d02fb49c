"""Playing runs in this process: jobs side by side, signals, and the exit code that follows."""

import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import anyio
import attrs

from orchestra.agents.python.runner import agent_in
from orchestra.app.heap import calm_heap
from orchestra.app.orchestra import Orchestra
from orchestra.cli import exit_codes
from orchestra.cli.play.lifeline import Lifeline
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.render.displays import Display
from orchestra.cli.store import option
from orchestra.engine.atlas import Ending, EndingKind
from orchestra.engine.orders import Order
from orchestra.errors import OrchestraError
from orchestra.ids import RunId

CODES: Final[dict[EndingKind, int]] = {
    "completed": exit_codes.OK,
    "failed": exit_codes.FAILED,
    "cancelled": exit_codes.FAILED,
    "waiting": exit_codes.WAITING,
    "paused": exit_codes.WAITING,
    "interrupted": exit_codes.INTERRUPTED,
}
_GRAVITY: Final = (
    exit_codes.INTERRUPTED,
    exit_codes.DAMAGE,
    exit_codes.FAILED,
    exit_codes.USAGE,
    exit_codes.WAITING,
)
_DRAIN_SECONDS: Final = 4.0
_HARD_SECONDS: Final = 0.8
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.define
class Job:
    """Something to play, and how it ended."""

    play: Callable[[], Awaitable[Ending]]
    name: str
    counts: bool = True  # towards the exit code; resumed runs beside the one that was asked for do not
    ending: Ending | None = None
    error: Exception | None = None

    @property
    def code(self) -> int:
        """Its exit code."""
        if self.ending is not None:
            return CODES[self.ending.kind]
        if isinstance(self.error, OrchestraError):
            return self.error.exit_code
        return exit_codes.INTERRUPTED if self.error is None else exit_codes.FAILED


def exit_code(codes: Sequence[int]) -> int:
    """The exit code of several jobs: the gravest."""
    return next((code for code in _GRAVITY if code in codes), exit_codes.OK)


async def perform(
    pool: OrchestraPool, jobs: Sequence[Job], display: Display, lifeline: Lifeline, store: str | None
) -> int:
    """Play all jobs, and return the exit code of those that count; `store` is named in commands."""
    calm_heap()
    async with anyio.create_task_group() as group:
        conductor = Conductor(pool, group.cancel_scope, display, lifeline, store)
        await group.start(conductor.listen)
        async with anyio.create_task_group() as work:
            for job in jobs:
                work.start_soon(_play, job)
        group.cancel_scope.cancel()
    for job in jobs:
        if job.error is not None and not isinstance(job.error, OrchestraError):
            raise job.error
    return exit_code([job.code for job in jobs if job.counts])


async def _play(job: Job) -> None:
    try:
        job.ending = await job.play()
    except Exception as error:  # one run that cannot go on takes no other down
        job.error = error


class Conductor:
    """Does what signals ask for: the first stops all runs in order, Ctrl-C after that at once."""

    def __init__(
        self,
        pool: OrchestraPool,
        scope: anyio.CancelScope,
        display: Display,
        lifeline: Lifeline,
        store: str | None,
    ) -> None:
        self._pool, self._scope, self._display, self._lifeline = pool, scope, display, lifeline
        self._store = store
        self._stopping = False

    async def listen(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Wait for signals."""
        with anyio.open_signal_receiver(*_STOPS, signal.SIGUSR1) as arriving:
            self._lifeline.limit_stop(_STOPS, _DRAIN_SECONDS, _HARD_SECONDS, self._last_words)
            task_status.started()
            async for number in arriving:
                if number == signal.SIGUSR1:
                    await self._snapshots()
                elif self._stopping and number != signal.SIGINT:
                    continue  # `timeout` and supervisors send theirs to the whole group, so it comes twice
                elif self._stopping:
                    self._scope.cancel()
                else:
                    self._stop(number)

    def _stop(self, number: int) -> None:
        self._stopping = True
        again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
        with suppress(OSError):  # after a hang-up nobody listens
            self._display.say(f"stopping: what is done is kept{again}")
        self._pool.drain()

    def _last_words(self) -> None:
        self._display.__exit__(None, None, None)
        held = agent_in(sys._current_frames().get(threading.main_thread().ident or 0))
        why = "an agent did not stop"
        if held is not None:
            why = f"{held.task} of {held.run} blocks the event loop; such work belongs in a plain function"
        command = f"orchestra resume {' '.join(self._display.runs)}{option(self._store)}"
        sys.stderr.write(f"{why}; resume with `{command}`\n")

    async def _snapshots(self) -> None:
        for orchestra in self._pool.orchestras:
            for run in orchestra.playing:
                await _snapshot(orchestra, run)


async def _snapshot(orchestra: Orchestra, run: RunId) -> None:
    with suppress(OrchestraError):
        await orchestra.order(run, Order(kind="snapshot", reason="SIGUSR1"))
