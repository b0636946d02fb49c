"""One thread writes: in order, together where it can, bounded, and never interrupted half-way."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from orchestra.checkpoint import writer as writer_module
from orchestra.checkpoint.writer import StoreWriter
from orchestra.errors import HeadMoved, OrchestraError, RunExists, StoreBusy, StoreFull
from orchestra.ports.store import Commit, Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.samples import SampleRun

pytestmark = pytest.mark.anyio


class Gate(MemoryStore):
    """A store that waits to be let through, and remembers what came together."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.entered = threading.Event()
        self.batches: list[int] = []
        self.threads: set[str] = set()

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        self.entered.set()
        assert self.open.wait(30)
        self.batches.append(len(commits))
        self.threads.add(threading.current_thread().name)
        return super().commit(commits, patient=patient)


async def entered(store: Gate) -> None:
    """Until the writer stands in the store."""
    await anyio.to_thread.run_sync(store.entered.wait)


async def test_what_arrives_meanwhile_shares_one_commit() -> None:
    store = Gate()
    writer = StoreWriter(store)
    runs = [SampleRun(store, f"run-{number}") for number in range(10)]
    numbers: list[int] = []

    async def commit(run: SampleRun) -> None:
        numbers.append((await writer.commit(run.commit())).no)

    async with anyio.create_task_group() as group:
        group.start_soon(commit, runs[0])
        await entered(store)
        for run in runs[1:]:
            group.start_soon(commit, run)
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert store.batches == [1, 9]
    assert sorted(numbers) == list(range(1, 11))
    assert store.threads == {"orchestra-writer"}


async def test_each_commit_has_its_own_outcome() -> None:
    store = Gate()
    store.open.set()
    writer = StoreWriter(store)
    good, bad = SampleRun(store, "good"), SampleRun(store, "bad")
    first = bad.commit()
    assert (await writer.commit(first)).no == 1
    assert (await writer.commit(first)).no == 1, "the same again is no other"
    with pytest.raises((HeadMoved, RunExists)):
        await writer.commit(bad.commit(status="failed"))
    assert (await writer.commit(good.commit())).no == 2
    await writer.close()


async def test_a_call_comes_after_the_commits_before_it() -> None:
    """Those after it share a transaction with those before, so they come before it as well."""
    store = Gate()
    writer = StoreWriter(store)
    runs = [SampleRun(store, f"run-{number}") for number in range(4)]
    seen: list[int] = []

    async def commit(run: SampleRun) -> None:
        await writer.commit(run.commit())

    async def call() -> None:
        seen.append(await writer.call(store.last_no))

    async with anyio.create_task_group() as group:
        for job in (commit, commit, call, commit, call):
            if job is call:
                group.start_soon(call)
            else:
                group.start_soon(commit, runs.pop())
            await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert seen == [3, 3]


async def test_what_many_runs_hand_in_at_once_is_committed_at_once() -> None:
    store = Gate()
    store.open.set()
    writer = StoreWriter(store)
    writer.runs = 20
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(writer.commit, SampleRun(store, f"run-{number}").commit())
    assert store.batches == [20]
    last = asyncio.ensure_future(writer.commit(SampleRun(store, "last").commit()))
    await anyio.lowlevel.checkpoint()
    await writer.close()  # what was gathered is written before
    assert (await last).no == store.last_no() == 21


async def test_a_failure_reaches_everyone_who_waits_for_it() -> None:
    class Full(Gate):
        def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
            super().commit([])
            raise StoreFull(place=self.place, needed="1 MB")

    store = Full()
    writer = StoreWriter(store)
    runs = [SampleRun(store, f"run-{number}") for number in range(3)]
    errors: list[Exception] = []

    async def commit(run: SampleRun) -> None:
        try:
            await writer.commit(run.commit())
        except StoreFull as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(commit, run)
        await entered(store)
        store.open.set()
    assert len(errors) == 3
    with pytest.raises(ZeroDivisionError):
        await writer.call(lambda: 1 // 0)
    await writer.close()


async def test_a_cancelled_caller_does_not_interrupt_a_commit() -> None:
    store = Gate()
    writer = StoreWriter(store)
    run = SampleRun(store, "a")
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(writer.commit, run.commit())
            await entered(store)
            scope.cancel()
            store.open.set()
    await writer.close()
    assert store.last_no() == 1


async def test_the_queue_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "WRITE_QUEUE_BYTES", 100)
    store = Gate()
    writer = StoreWriter(store)
    runs = [SampleRun(store, f"run-{number}") for number in range(6)]

    async def commit(run: SampleRun) -> None:
        await writer.commit(run.commit(size=40))

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(commit, run)
        await entered(store)
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert max(store.batches) <= 2
    assert sum(store.batches) == 6


async def test_something_larger_than_the_queue_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "WRITE_QUEUE_BYTES", 100)
    store = Gate()
    store.open.set()
    writer = StoreWriter(store)
    assert (await writer.commit(SampleRun(store, "a").commit(size=1000))).no == 1
    await writer.close()


async def test_a_cancelled_task_ends_once_its_commit_is_durable() -> None:
    store = Gate()
    writer = StoreWriter(store)
    writer.runs = 2
    task = asyncio.ensure_future(writer.commit(SampleRun(store, "run").commit()))
    await entered(store)
    task.cancel()
    await anyio.wait_all_tasks_blocked()
    assert not task.done()
    store.open.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.last_no() == 1
    await writer.close()


async def test_one_who_waits_for_room_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "WRITE_QUEUE_BYTES", 100)
    store = Gate()
    writer = StoreWriter(store)
    first, second, third = (SampleRun(store, name) for name in ("a", "b", "c"))
    async with anyio.create_task_group() as group:
        group.start_soon(writer.commit, first.commit(size=90))
        await entered(store)
        async with anyio.create_task_group() as impatient:
            impatient.start_soon(writer.commit, second.commit(size=90))
            await anyio.wait_all_tasks_blocked()
            impatient.cancel_scope.cancel()
        group.start_soon(writer.commit, third.commit(size=90))
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert store.last_no() == 2


async def test_closing_finishes_what_is_queued_and_may_be_repeated() -> None:
    store = Gate()
    writer = StoreWriter(store)
    await writer.close()
    run = SampleRun(store, "a")
    async with anyio.create_task_group() as group:
        group.start_soon(writer.commit, run.commit())
        await entered(store)
        group.start_soon(writer.close)
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert store.last_no() == 1
    assert await writer.call(store.last_no) == 1
    await writer.close()


async def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "WRITE_BATCH_ROWS", 3)
    store = Gate()
    writer = StoreWriter(store)
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(writer.commit, SampleRun(store, f"run-{number}").commit())
        await entered(store)
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert max(store.batches) == 3
    assert sum(store.batches) == 8


# --- a process with one run commits on its own thread


class Quick(MemoryStore):
    """A store that notes who commits, and is busy when told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.by: list[tuple[str, bool]] = []
        self.busy = False

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        self.by.append((threading.current_thread().name, patient))
        if self.busy and not patient:
            raise StoreBusy(place=self.place, seconds=0)
        return super().commit(commits, patient=patient)


def alone(store: Store) -> StoreWriter:
    """The writer of a process that holds one run."""
    writer = StoreWriter(store)
    writer.runs = 1
    return writer


async def test_alone_it_commits_at_once_and_never_waits_for_others() -> None:
    store = Quick()
    writer = alone(store)
    begun = SampleRun(store, "a")
    begun.accept(commit := begun.commit(), (await writer.commit(commit)).no)
    assert store.by == [(threading.current_thread().name, False)]
    begun.head = None
    with pytest.raises((HeadMoved, RunExists)):
        await writer.commit(begun.commit(status="failed"))
    await writer.close()


async def test_a_busy_store_is_left_to_the_thread_for_a_while() -> None:
    store = Quick()
    writer = alone(store)
    begun = SampleRun(store, "a")
    store.busy = True
    for _ in range(2):
        begun.accept(commit := begun.commit(), (await writer.commit(commit)).no)
    assert [patient for _, patient in store.by] == [False, True, True]
    assert {name for name, patient in store.by if patient} == {"orchestra-writer"}
    await writer.close()


async def test_a_slow_commit_sends_the_next_ones_to_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "QUICK_COMMIT_SECONDS", -1.0)
    monkeypatch.setattr(writer_module, "DETOUR_COMMITS", 2)
    store = Quick()
    writer = alone(store)
    begun = SampleRun(store, "a")
    for _ in range(4):
        begun.accept(commit := begun.commit(), (await writer.commit(commit)).no)
    assert [patient for _, patient in store.by] == [False, True, True, False]
    await writer.close()


async def test_a_detour_grows_while_commits_stay_slow_and_is_short_again_after_a_quick_one() -> None:
    now, step = 0.0, 1.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    store = Quick()
    writer = StoreWriter(store, clock)
    writer.runs = 1
    begun = SampleRun(store, "a")
    pattern: list[str] = []
    for each, commits in ((1.0, 8), (0.0, 3), (1.0, 4)):
        step = each
        for _ in range(commits):
            begun.accept(commit := begun.commit(), (await writer.commit(commit)).no)
        pattern.append("".join("." if patient else "|" for _, patient in store.by))
        store.by.clear()
    assert pattern == ["|..|....", "|||", "|..|"]
    await writer.close()


def _ticking(ticks: Iterator[int], step: float) -> float:
    return next(ticks) * step


async def test_others_get_a_turn_now_and_then() -> None:
    ticks = iter(range(10_000))
    store = Quick()
    begun = SampleRun(store, "a")
    for step, expected in ((0.0, 1), (0.0015, 5)):
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.lowlevel.checkpoint()

        writer = StoreWriter(store, partial(_ticking, ticks, step))
        writer.runs = 1
        async with anyio.create_task_group() as group:
            group.start_soon(other)
            for _ in range(5):
                begun.accept(commit := begun.commit(), (await writer.commit(commit)).no)
            group.cancel_scope.cancel()
        assert turns == expected
        await writer.close()


async def test_it_waits_its_turn_behind_what_is_queued() -> None:
    store = Gate()
    writer = alone(store)
    runs = [SampleRun(store, name) for name in ("a", "b")]
    writer.runs = 2
    async with anyio.create_task_group() as group:
        group.start_soon(writer.commit, runs[0].commit())
        await entered(store)
        writer.runs = 1
        group.start_soon(writer.commit, runs[1].commit())
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    await writer.close()
    assert store.threads == {"orchestra-writer"}


async def test_a_caller_cancelled_beforehand_commits_nothing() -> None:
    store = Quick()
    writer = alone(store)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await writer.commit(SampleRun(store, "a").commit())
    assert scope.cancelled_caught
    assert store.by == []
    await writer.close()
