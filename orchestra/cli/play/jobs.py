"""Playing runs in this process: jobs side by side, signals, what each came to, and the exit code."""

import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import attrs

from orchestra.agents.python.runner import agent_in
from orchestra.app.heap import calm_heap
from orchestra.cli import exit_codes
from orchestra.cli.exit_codes import DAMAGE, FAILED, INTERRUPTED, OK, USAGE, WAITING
from orchestra.cli.play.lifeline import Lifeline
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.displays import Display
from orchestra.cli.render.screen import json_text, screen
from orchestra.cli.render.summary import place_of, print_summary, summary_json
from orchestra.cli.store import option, with_store
from orchestra.engine.atlas import Ending, EndingKind
from orchestra.engine.orders import Order
from orchestra.errors import DefinitionChanged, OrchestraError
from orchestra.model.state import skipped_text

CODES: Final[dict[EndingKind, int]] = {
    "completed": OK,
    "failed": FAILED,
    "cancelled": FAILED,
    "waiting": WAITING,
    "paused": WAITING,
    "interrupted": INTERRUPTED,
}
_GRAVITY: Final = (INTERRUPTED, DAMAGE, FAILED, USAGE, WAITING)
_DRAIN_SECONDS: Final = 4.0
_HARD_SECONDS: Final = 0.8
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SOURCE: Final = re.compile(r"agents\.([^.]+)\.source was \S+ and is \S+")
"""A changed file, of which the definition holds the digest; two of those say nothing to a person."""
_UNACCEPTABLE: Final = re.compile(
    r"phase \S+ is gone|context\.\S+ holds what \w+ made, which \w+ cannot go on with"
)
"""What the engine refuses in any case: see `orchestra.engine.start.check_changes`."""


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
        return INTERRUPTED if self.error is None else FAILED


def exit_code(codes: Sequence[int]) -> int:
    """The exit code of several jobs: the gravest."""
    return next((code for code in _GRAVITY if code in codes), OK)


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


@attrs.define
class Conductor:
    """Does what signals ask for: the first stops all runs in order, Ctrl-C after that at once."""

    pool: OrchestraPool
    scope: anyio.CancelScope
    display: Display
    lifeline: Lifeline
    store: str | None  # is named in commands
    stopping: bool = False

    async def listen(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Wait for signals."""
        with anyio.open_signal_receiver(*_STOPS, signal.SIGUSR1) as arriving:
            self.lifeline.limit_stop(_STOPS, _DRAIN_SECONDS, _HARD_SECONDS, self._last_words)
            task_status.started()
            async for number in arriving:
                if number == signal.SIGUSR1:
                    for orchestra in self.pool.orchestras:
                        for run in orchestra.playing:
                            with suppress(OrchestraError):
                                await orchestra.order(run, Order(kind="snapshot", reason="SIGUSR1"))
                elif self.stopping and number != signal.SIGINT:
                    continue  # `timeout` and supervisors send theirs to the whole group, so it comes twice
                elif self.stopping:
                    self.scope.cancel()
                else:
                    self.stopping = True
                    again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
                    with suppress(OSError):  # after a hang-up nobody listens
                        self.display.say(f"stopping: what is done is kept{again}")
                    self.pool.drain()

    def _last_words(self) -> None:
        self.display.__exit__(None, None, None)
        held = agent_in(sys._current_frames().get(threading.main_thread().ident or 0))
        why = "an agent did not stop"
        if held is not None:
            why = f"{held.task} of {held.run} blocks the event loop; such work belongs in a plain function"
        command = f"orchestra resume {' '.join(self.display.runs)}{option(self.store)}"
        sys.stderr.write(f"{why}; resume with `{command}`\n")


def conclude(
    jobs: Sequence[Job],
    pool: OrchestraPool,
    display: Display,
    *,
    store: str | None,
    outputs: str,
    as_json: bool,
) -> None:
    """Say what each job came to."""
    for job in jobs:
        if isinstance(job.error, OrchestraError) and not job.counts:
            display.say(f"{job.name} was not resumed: {with_store(str(job.error), store)}")
        elif isinstance(job.error, OrchestraError):
            report(job.error, as_json, store)
        elif job.ending is not None and type(display) is Display:
            _tell_quietly(job.ending, outputs)
        elif job.ending is not None and as_json:
            decided = pool.count_decisions(job.ending.state)
            own_stdout().write(json_text(summary_json(job.ending, decided, outputs, store)))
        elif job.ending is not None:
            out, decided = screen(), pool.count_decisions(job.ending.state)
            out.line()
            print_summary(out, job.ending, decided, outputs=outputs, store=store)


def _tell_quietly(ending: Ending, outputs: str) -> None:
    own_stdout().write(f"{ending.kind} {ending.run}\n")
    if without := skipped_text(ending.state.skipped_tasks):
        screen(sys.stderr).line(f"{ending.run}: {without}")
    if (why := ending.state.failure) is not None:
        screen(sys.stderr).line(f"{ending.run} failed: {why.error}: {why.message}")
    places = [place_of(ending.state, outputs, path) for path in ending.state.outputs]
    own_stdout().writelines(f"{each}\n" for each in places if Path(each).is_file())


def report(error: OrchestraError, as_json: bool, store: str | None = None) -> int:
    """Say what went wrong; how a definition has changed is told line by line."""
    if as_json or not isinstance(error, DefinitionChanged):
        return exit_codes.report(error, as_json, store)
    out, run, changes = screen(sys.stderr), error.data["run"], str(error.data["changes"]).split("; ")
    out.line(("error: ", "bad"), f"The workflow of run {run} has changed since it was started:")
    for change in changes:
        out.line("  ", ("~ ", "warn"), _SOURCE.sub(r"what the agent \1 runs on has changed", change))
    if any(_UNACCEPTABLE.fullmatch(change) for change in changes):
        out.line(
            "The run cannot go on with that, not even with --accept-changes: restore the old file, "
            f"or begin again with the new one: orchestra fork {run}@0 --workflow FILE{option(store)}."
        )
    else:
        out.line("Resume with --accept-changes to go on with the new one, or restore the old file.")
    return error.exit_code
