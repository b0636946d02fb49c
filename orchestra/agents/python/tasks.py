"""Work that can be given up: an agent's coroutine in a task of its own, or its function in a thread.

Cancelling is asking. An agent that swallows the cancellation must not hold the run, so whoever waits here
stops waiting after a grace time. A coroutine is then dropped: it is never resumed, which is as good as
stopped. A thread cannot be stopped by anybody; it is a daemon, so that it does not keep the process alive.

This is the one place that uses asyncio rather than anyio: a task group waits for its tasks however long
they take, which is the opposite of what is needed here.
"""

import abc
import asyncio
import ctypes
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, TypeAlias, TypeVar

import anyio
import attrs

from orchestra.model.frozen import maker

T = TypeVar("T")
_CLOSING_TRIES: Final = 5
_FORCED_SECONDS: Final = 10.0


@attrs.frozen
class Returned:
    """It came to its end."""

    value: Any


_returned: Final = maker(Returned)


@attrs.frozen
class Raised:
    """It ended with an error, of whatever kind."""

    error: BaseException


Outcome: TypeAlias = Returned | Raised


class GivenUp(Exception):
    """It had to stop and did not; the text says what became of it."""


# --- coroutines


class Leashed(abc.ABC):
    """A coroutine in a task of its own, which can be stopped, and given up when it does not stop."""

    __slots__ = ("_begun", "_grace", "_over", "_task", "_timer", "cut")

    def __init__(self, grace: float) -> None:
        self.cut = False  # whether the coroutine is resumed no more
        self._begun = self._over = False
        self._grace = grace
        self._timer: asyncio.TimerHandle | None = None
        self._task = asyncio.get_running_loop().create_task(self._lived())

    @abc.abstractmethod
    def work(self) -> Coroutine[Any, Any, Any]:
        """The coroutine, when it is to begin."""

    @abc.abstractmethod
    def finish(self, outcome: Outcome | GivenUp | None) -> None:
        """Hear once what became of it: its outcome, None when it stopped as it was asked to, or `GivenUp`.

        It is never called before the constructor has returned.
        """

    async def _lived(self) -> None:
        outcome: Outcome
        self._begun = True
        if self._is_stopped():  # before it began
            self._end(None)
            return
        try:
            outcome = _returned(await _steps(self.work(), self))
        except BaseException as error:  # SystemExit would take the whole loop down
            outcome = Raised(error)
        self._end(None if self._is_stopped() else outcome)

    def _is_stopped(self) -> bool:
        return self._timer is not None

    def stop(self) -> None:
        """Ask it to stop. Idempotent."""
        if self._timer is None and not self._over:
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._insist)
            if self._begun:  # a task that is cancelled before never begins, and could not say so
                self._task.cancel()

    def _insist(self) -> None:
        """It went on: it is not resumed any more, and after as long a time not waited for either."""
        self.cut = True
        self._timer = asyncio.get_running_loop().call_later(self._grace, self._give_up)
        self._task.cancel()

    def _give_up(self) -> None:
        self._end(GivenUp("it went on in spite of the cancellation and was dropped"))

    def _end(self, outcome: Outcome | GivenUp | None) -> None:
        if self._over:
            return
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self.cut:
            outcome = GivenUp("it went on in spite of the cancellation and was dropped")
        self.finish(outcome)


LIFE: Final = Leashed._lived.__code__
"""The code in which every such coroutine is run."""


async def run_stoppable(
    start: Callable[[], Coroutine[Any, Any, Any]],
    ask: Callable[[], None],
    grace: float,
    force: Callable[[], None],
) -> Outcome:
    """What became of a coroutine that ends when what it waits for does, which is asked to, then forced."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome] = loop.create_future()
    task = loop.create_task(_lived(start, ended))
    try:
        return await ended
    except asyncio.CancelledError:
        ask()
        if not await _stops(task, grace):
            force()
            if not await _stops(task, _FORCED_SECONDS):
                task.cancel()
                raise GivenUp("it was killed and did not die") from None
        raise


async def _lived(start: Callable[[], Coroutine[Any, Any, Any]], ended: "asyncio.Future[Outcome]") -> None:
    outcome: Outcome
    try:
        outcome = Returned(await start())
    except BaseException as error:  # SystemExit would take the whole loop down
        outcome = Raised(error)
    if not ended.done():
        ended.set_result(outcome)


async def _stops(task: "asyncio.Task[None]", grace: float) -> bool:
    with anyio.CancelScope(shield=True):
        await asyncio.wait((task,), timeout=grace)
    return task.done()


@types.coroutine
def _steps(work: Coroutine[Any, Any, T], leash: Leashed) -> Generator[Any, Any, T]:
    """`await work`, spelled out, with the chance to leave in the middle."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            waits_for = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            found: T = end.value
            return found
        value = error = None
        try:
            value = yield waits_for
        except BaseException as thrown:
            if leash.cut:
                _bury(work)
                raise
            error = thrown


def _bury(work: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine.

    One that refuses even this gets a reference that nobody gives back: destroying it, at the latest when
    the interpreter ends, would resume it once more, perhaps for ever.
    """
    for _ in range(_CLOSING_TRIES):
        try:
            work.close()
        except RuntimeError:  # it awaited something on its way out
            continue
        except BaseException:
            return
        return
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))


# --- threads


async def run_in_thread(
    work: Callable[[], Any], grace: float = 0.0, stop: Callable[[], None] = lambda: None
) -> Outcome:
    """What became of a function; when cancelled, it is asked to `stop`. Raises `GivenUp` if it does not."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome] = loop.create_future()
    over = asyncio.Event()

    def settle(outcome: Outcome) -> None:
        over.set()
        if not ended.done():
            ended.set_result(outcome)

    def body() -> None:
        outcome = _tried(work)
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=copy_context().run, args=(body,), name="agent", daemon=True).start()
    try:
        return await ended
    except asyncio.CancelledError:
        stop()
        with anyio.move_on_after(grace, shield=True):
            await over.wait()
        if not over.is_set():
            raise GivenUp("its thread cannot be stopped and was left behind") from None
        raise


def _tried(work: Callable[[], Any]) -> Outcome:
    try:
        return Returned(work())
    except BaseException as error:
        return Raised(error)
