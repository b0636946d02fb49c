"""Large values are stored or refused with their size; what is acknowledged can always be read again."""

import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.plain_data import take_plain
from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.address import Addresser
from orchestra.codec.values import contribution, freeze, freeze_leniently, thaw
from orchestra.engine.redact import Redactor
from orchestra.errors import OrchestraError, SnapshotTooLarge, ValueTooLarge
from orchestra.ids import AgentId, PhaseId, TaskId, run_id
from orchestra.limits import LARGE_VALUE_BYTES, MB, VALUE_BYTES
from orchestra.model import events as ev
from orchestra.model.records import Decision
from orchestra.model.reducers import Appended
from orchestra.model.state import WorkflowRef
from orchestra.model.tree import Vec
from orchestra.ports.sink import CheckpointLarge, Notice
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import START, FakeClock
from tests.property.recording import managed, opened
from tests.unit.engine.support import Theatre, does, flow, phase, policy

RUN = run_id("huge")
NOW = START


async def begun(manager: CheckpointManager) -> ActiveRun:
    """A run with one agent at work."""
    started = ev.RunStarted(at=NOW, run=RUN, workflow=WorkflowRef(name="w"))
    planned = ev.TaskPlanned(at=NOW, task=TaskId("t"), agent=AgentId("a"), phase=PhaseId("p"))
    launched = ev.AgentLaunched(at=NOW, task=TaskId("t"), agent=AgentId("a"))
    return await manager.begin(started, planned, launched)


def result(manager: CheckpointManager, value: object) -> ev.Event:
    """The task is done, with that result."""
    return ev.TaskCompleted(at=NOW, task=TaskId("t"), result=freeze(value, manager.addresser))


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["memory", "sqlite", "files"])
@pytest.mark.parametrize("size", [LARGE_VALUE_BYTES - 9, LARGE_VALUE_BYTES + 1, MB, 16 * MB])
async def test_large_results_are_stored(scheme: str, size: int, tmp_path: Path) -> None:
    value = {"text": "x" * size}
    with opened(scheme, tmp_path) as store:
        async with managed(store) as manager:
            active = await begun(manager)
            await manager.record(active, [result(manager, value)])
            await manager.release(active)
        async with managed(store) as reader:
            task = (await reader.look(RUN)).state.tasks["t"]
            assert task.result is not None
            assert reader.archive.value(task.result) == value


BEYOND: dict[str, Callable[[], object]] = {
    "a text": lambda: "x" * (VALUE_BYTES + 1),
    "a text of wide characters": lambda: "€" * (VALUE_BYTES + 1),
    "bytes": lambda: bytes(VALUE_BYTES + 1),
    "a list": lambda: ["x" * MB] * 1000,
    "a dictionary": lambda: {str(number): text for number, text in enumerate(["x" * MB] * 1000)},
    "a tree": lambda: {"deep": [({"b": [bytes(MB)] * 500},)] * 2},
}


def _peak_of_refusing(value: object, *steps: Callable[[Any], object]) -> int:
    """How many bytes were taken up while each step refused a value."""
    tracemalloc.start()
    try:
        for step in steps:
            with pytest.raises(ValueTooLarge, match="takes more than 104,857,600 bytes"):
                step(value)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BEYOND)
def test_a_value_above_the_limit_is_refused_before_anything_is_made_of_it(name: str) -> None:
    value = BEYOND[name]()
    freezers = [partial(freeze, addresser=Addresser()), partial(freeze_leniently, addresser=Addresser())]
    assert _peak_of_refusing(value, *freezers) < 4 * MB


@pytest.mark.parametrize("name", BEYOND)
def test_a_value_above_the_limit_is_refused_before_secrets_are_looked_for(name: str) -> None:
    value = BEYOND[name]()
    step = Redactor(["a secret"]).value if isinstance(value, str | bytes) else take_plain
    assert _peak_of_refusing(value, step) < 4 * MB


def test_a_value_just_above_the_limit_once_it_is_encoded() -> None:
    with pytest.raises(ValueTooLarge):
        freeze(bytes(VALUE_BYTES), Addresser())


@pytest.mark.anyio
async def test_an_agent_that_brings_too_much_is_told_and_fails(tmp_path: Path) -> None:
    """What it hands in on the way, as its result and beside its failure: none of it is worked on."""
    told: list[str] = []

    async def large(ctx: Any) -> Any:
        try:
            await ctx.save(["x" * MB] * 1000)
        except Exception as error:
            told.append(str(error))
        if ctx.attempt == 1:
            return {"all": ["x" * MB] * 1000}
        ctx.fail("it is too much", details={"all": ["x" * MB] * 1000})

    theatre = Theatre(tmp_path)
    tracemalloc.start()
    twice = policy("restart", "fail", attempts=2)
    ending = await theatre.run(flow(phase("job", does("large")), policy=twice), {"large": large})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    failures = [event.failure for event in theatre.events if isinstance(event, ev.TaskFailed)]
    assert ending.kind == "failed"
    assert [each.error for each in failures] == ["ValueTooLarge", "Failed"]
    assert failures[1].details is not None
    assert "ValueTooLarge" in thaw(failures[1].details)["$unstorable"]
    assert len(told) == 2
    assert "takes more than 104,857,600 bytes" in told[0]
    assert peak < 64 * MB


@pytest.mark.anyio
async def test_a_snapshot_above_the_limit_is_refused_and_the_run_goes_on() -> None:
    class Heard:
        def __init__(self) -> None:
            self.large: list[int] = []

        def notice(self, notice: Notice, /) -> None:
            if isinstance(notice, CheckpointLarge):
                self.large.append(notice.size)

    heard = Heard()
    settings = CheckpointSettings(size_limit_bytes=2 * MB, size_warning_bytes=MB, compression=False)
    manager = CheckpointManager(
        MemoryStore(), clock=FakeClock(), owner="me", settings=settings, sinks=[heard]
    )
    async with manager:
        active = await begun(manager)
        with pytest.raises(SnapshotTooLarge, match=r"add \d{7} bytes and the limit is 2097152"):
            await manager.record(active, [result(manager, bytes(3 * MB))])
        assert active.seq == 0
        assert (await manager.record(active, [result(manager, bytes(MB))])).header.seq == 1
        assert len(heard.large) == 1
        assert (await manager.look(RUN, 0)).state.tasks["t"].status == "running"


# --- what is acknowledged can be read

TEXT = "words and more of them, "


def _emitted(size: int) -> list[ev.Event]:
    return [ev.TextEmitted(at=NOW, agent=AgentId("a"), text=(TEXT * (size // len(TEXT) + 1))[:size])]


def _contributions(manager: CheckpointManager, count: int) -> list[ev.Event]:
    values = [freeze(f"{n:09}" * 3000, manager.addresser) for n in range(count)]
    return [ev.ContextContributed(at=NOW, name="all", contribution=Appended(items=Vec(values)))]


def _decided(description: str, agent: str = "a") -> list[ev.Event]:
    decision = Decision(at=NOW, agent=AgentId(agent), kind="k", description=description)
    return [ev.DecisionMade(at=NOW, decision=decision)]


async def _readable(turns: list[list[ev.Event]]) -> None:
    """Every turn that is acknowledged can be read again, also after the next seal; others are refused."""
    store = MemoryStore()
    async with managed(store) as manager:
        active = await begun(manager)
        fillers: list[list[ev.Event]] = [[ev.Spent(at=NOW)] for _ in range(35)]
        for turn in turns + fillers:
            try:
                await manager.record(active, turn)
            except OrchestraError:
                continue
        assert active.seq >= 35
    async with managed(store) as reader:
        for seq in range(active.seq):
            assert (await reader.look(RUN, seq)).header.seq == seq
        assert (await reader.look(RUN)).state == active.state


@pytest.mark.anyio
async def test_text_of_17_megabytes() -> None:
    await _readable([_emitted(17 * MB)])


@pytest.mark.anyio
async def test_text_that_grows_to_17_megabytes() -> None:
    await _readable([_emitted(3 * MB) for _ in range(6)])


@pytest.mark.anyio
async def test_many_values_in_one_turn() -> None:
    manager = CheckpointManager(MemoryStore(), clock=FakeClock(), owner="me")
    await _readable([_contributions(manager, 700)])


@pytest.mark.anyio
async def test_long_names() -> None:
    await _readable(
        [
            _decided("x" * 2 * MB),
            _decided("x", agent="a" * 2 * MB),
            [ev.PhaseStarted(at=NOW, phase=PhaseId("p" * 2 * MB))],
            [ev.SnapshotRequested(at=NOW, why="periodic", note="n" * 2 * MB)],
        ]
    )


UNREADABLE: dict[str, Any] = {
    "text with a lone surrogate": ev.TextEmitted(at=NOW, agent=AgentId("a"), text="lone \ud800 surrogate"),
    "a note with a lone surrogate": ev.SnapshotRequested(at=NOW, why="periodic", note="\udfff"),
    "a phase with a lone surrogate": ev.PhaseStarted(at=NOW, phase=PhaseId("\ud800")),
    "a count past every bound": ev.Spent(at=NOW, tokens_in=1 << 1100),
    "a count that is a fraction": ev.Spent(at=NOW, tokens_in=1.5),  # type: ignore[arg-type]
    "a count that is text": ev.Spent(at=NOW, tokens_in="7"),  # type: ignore[arg-type]
    "a peak that is true": ev.Spent(at=NOW, memory_peak_bytes=True),
    "a confidence in words": ev.ConfidenceReported(at=NOW, value="high"),  # type: ignore[arg-type]
    "no confidence": ev.ConfidenceReported(at=NOW, value=None),  # type: ignore[arg-type]
    "text that is bytes": ev.TextEmitted(at=NOW, agent=AgentId("a"), text=b"x"),  # type: ignore[arg-type]
    "a wait of no kind": ev.WaitOpened(at=NOW, wait="w", waits_for="nonsense"),  # type: ignore[arg-type]
    "choices in a list": ev.WaitOpened(at=NOW, wait="w", waits_for="question", choices=["a"]),  # type: ignore[arg-type]
    "half an instant": ev.WaitOpened(at=NOW, wait="w", waits_for="timer", until=1.5),  # type: ignore[arg-type]
    "a result that is not frozen": ev.TaskCompleted(at=NOW, task=TaskId("t"), result={"a": 1}),  # type: ignore[arg-type]
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", UNREADABLE)
async def test_events_that_could_not_be_read_again(name: str) -> None:
    """Whatever an agent makes of the types, a turn is refused by name or comes back: never neither."""
    await _readable([[UNREADABLE[name]]])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "total",
    [[2**1024 - 1] * 3, [2**1023, 0.5], [1e308, 1e308], [-(2**1024) + 1] * 2],
    ids=["large", "mixed", "floats", "negative"],
)
async def test_sums_past_every_bound(total: list[float]) -> None:
    given = [contribution("sum", each, Addresser()) for each in total]
    await _readable([[ev.ContextContributed(at=NOW, name="s", contribution=each)] for each in given])
