"""The writer: one thread through which every write of a process goes to its store.

Rows of many runs that arrive while a commit is under way share the next one (group commit); what the runs of
one loop hand in within one round of it comes to the thread together. The queue is bounded in bytes: who would
exceed it waits. A caller whose task is cancelled does not interrupt a commit.

The rows of a process that holds one run only are committed on the caller's own thread while the disk is quick
and nobody else writes: handing them over and back costs a third of the commit. A slow commit, or another
writer in the way, sends the next ones through the thread again: two at first, up to 64 where they stay slow.
"""

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar

import anyio
import attrs
from anyio.lowlevel import checkpoint_if_cancelled

from orchestra.errors import OrchestraError, StoreBusy
from orchestra.limits import (
    DETOUR_COMMITS,
    FIRST_DETOUR_COMMITS,
    LOOP_TURN_SECONDS,
    QUICK_COMMIT_SECONDS,
    WRITE_BATCH_ROWS,
    WRITE_QUEUE_BYTES,
)
from orchestra.model.frozen import changer
from orchestra.ports.store import Commit, Row, Store

T = TypeVar("T")
_numbered: Final = changer(Row, "no")
_Future: TypeAlias = "asyncio.Future[Any]"


@attrs.define(eq=False)
class _Job:
    """A commit, or a function to call, and who waits for it."""

    loop: asyncio.AbstractEventLoop
    commit: Commit | None = None
    function: Callable[[], Any] | None = None
    future: _Future = attrs.field(init=False)
    size: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.future, self.size = self.loop.create_future(), 0 if self.commit is None else self.commit.row.size


_Outcomes: TypeAlias = list[tuple[_Job, Any]]


class StoreWriter:
    """Writes to one store from one thread."""

    def __init__(
        self,
        store: Store,
        monotonic: Callable[[], float] = perf_counter,
        *,
        pack: Callable[[Commit], Commit] = lambda commit: commit,
    ) -> None:
        """`pack` makes commits what is stored, on the thread that stores them."""
        # How quick the disk is belongs to the machine, not to the run's clock.
        self._store, self._monotonic, self._pack = store, monotonic, pack
        self.runs = 0  # how many runs this process holds
        self._jobs = 0  # commits and calls that are queued or under way
        self._detour = 0  # how many commits still go through the thread after a slow one
        self._longer = FIRST_DETOUR_COMMITS  # how many it will be after the next slow one
        self._queue: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._gathered: list[_Job] = []  # in this round of the loop
        self._home: asyncio.AbstractEventLoop | None = None  # the loop whose jobs are gathered
        self._thread: threading.Thread | None = None
        self._queued = 0
        self._paused = -LOOP_TURN_SECONDS  # when the loop last had a turn before a commit on its thread
        self._waiting: deque[_Future] = deque()

    async def commit(self, commit: Commit) -> Row:
        """Append one row; returns it as it is stored once it is durable. Raises what the store says."""
        if self.runs == 1 and not self._jobs:
            await self._pause()
            row = self._commit_here(commit)
            if row is not None:
                return row
        while self._queued and self._queued + commit.row.size > WRITE_QUEUE_BYTES:
            room: _Future = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            await room
        stored: Row = await self._outcome(_Job(asyncio.get_running_loop(), commit=commit))
        return stored

    async def _pause(self) -> None:
        """Others get their turn, if they had none for a while; a cancelled caller stops before the commit."""
        now = self._monotonic()
        if now - self._paused >= LOOP_TURN_SECONDS:
            self._paused = now
            await asyncio.sleep(0)
        else:
            await checkpoint_if_cancelled()

    def _commit_here(self, commit: Commit) -> Row | None:
        """Commit here and now; None when that could take long. Raises what the store says."""
        if self._detour or self._jobs or self.runs != 1:
            self._detour = max(0, self._detour - 1)
            return None
        packed = self._pack(commit)
        started = self._monotonic()
        try:
            outcome = self._store.commit((packed,), patient=False)[0]
        except StoreBusy:
            self._take_detour()
            return None
        if self._monotonic() - started > QUICK_COMMIT_SECONDS:
            self._take_detour()
        else:
            self._longer = FIRST_DETOUR_COMMITS
        if isinstance(outcome, OrchestraError):
            raise outcome
        return _numbered(packed.row, no=outcome)

    def _take_detour(self) -> None:
        """Send the next commits through the thread: a few, and twice as many each time that did not help."""
        self._detour = min(self._longer, DETOUR_COMMITS)
        self._longer = min(2 * self._longer, DETOUR_COMMITS)

    async def call(self, function: Callable[[], T]) -> T:
        """Run a blocking function of the store on the writer's thread, after all commits handed in before."""
        found: T = await self._outcome(_Job(asyncio.get_running_loop(), function=function))
        return found

    async def close(self) -> None:
        """Finish what is queued and end the thread. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._hand_over()
            self._queue.put(None)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join)

    async def _outcome(self, job: _Job) -> Any:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="orchestra-writer", daemon=True)
            self._thread.start()
        self._queued += job.size
        self._jobs += 1
        self._gather(job)
        try:
            return await job.future
        except asyncio.CancelledError as cancelled:
            return await _outlast(job, cancelled)
        finally:
            self._queued -= job.size
            self._jobs -= 1
            while self._waiting:
                waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_result(None)

    def _gather(self, job: _Job) -> None:
        """Hand a job over together with others of this round, unless there can be none."""
        if self.runs < 2 or (self._home is not None and self._home is not job.loop):
            self._queue.put([job])
            return
        self._gathered.append(job)
        if self._home is None:
            self._home = job.loop
            job.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        jobs, self._gathered, self._home = self._gathered, [], None
        if jobs:
            self._queue.put(jobs)

    def _work(self) -> None:
        while (jobs := self._queue.get()) is not None:
            self._take_waiting(jobs)
            outcomes: _Outcomes = []
            commits = [job for job in jobs if job.commit is not None]
            for start in range(0, len(commits), WRITE_BATCH_ROWS):
                outcomes += self._commit_all(commits[start : start + WRITE_BATCH_ROWS])
            outcomes += [(job, _call(job)) for job in jobs if job.commit is None]
            _deliver(outcomes)

    def _take_waiting(self, jobs: list[_Job]) -> None:
        """Add what else is waiting; whoever hands in one job after another waits for each."""
        with suppress(Empty):
            while len(jobs) < WRITE_BATCH_ROWS:
                more = self._queue.get_nowait()
                if more is None:
                    self._queue.put(None)
                    return
                jobs += more

    def _commit_all(self, batch: list[_Job]) -> _Outcomes:
        outcomes: _Outcomes = []
        packed: list[tuple[_Job, Commit]] = []
        for job in batch:
            assert job.commit is not None, "BUG: only commits are packed"
            try:
                packed.append((job, self._pack(job.commit)))
            except BaseException as error:  # its job hears of it alone
                outcomes.append((job, error))
        try:
            answers: list[Any] = list(self._store.commit([commit for _, commit in packed]))
        except BaseException as error:
            answers = [error] * len(packed)
        for (job, commit), answer in zip(packed, answers, strict=True):
            outcomes.append((job, _numbered(commit.row, no=answer) if isinstance(answer, int) else answer))
        return outcomes


async def _outlast(job: _Job, cancelled: asyncio.CancelledError) -> Any:
    """What came of a job whose caller was cancelled meanwhile.

    A scope that was cancelled says so again at the next opportunity, and until then the caller may use what
    is durable now. Entering a shield beforehand, for every job, would cost more than the rest of the way.
    """
    if job.future.cancelled():
        job.future = job.loop.create_future()  # the first went with the cancellation
    with anyio.CancelScope(shield=True):
        outcome = await job.future
    if anyio.current_effective_deadline() != -math.inf:
        raise cancelled  # by its task and not by a scope: it is not said again
    return outcome


def _call(job: _Job) -> Any:
    """What a function of the store gave or raised."""
    assert job.function is not None, "BUG: a job is a commit or a function"
    try:
        return job.function()
    except BaseException as error:
        return error


def _deliver(outcomes: _Outcomes) -> None:
    """Hand the outcomes to the loops that wait for them, waking each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, _Outcomes] = {}
    for job, outcome in outcomes:
        by_loop.setdefault(job.loop, []).append((job, outcome))
    for loop, mine in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed meanwhile; nobody waits any more
            loop.call_soon_threadsafe(_settle, mine)


def _settle(outcomes: _Outcomes) -> None:
    for job, outcome in outcomes:
        if job.future.done():
            continue
        if isinstance(outcome, BaseException):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)
