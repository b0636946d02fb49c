"""Workflows in layers: what depends on nothing first, then what depends on it. CHECKLIST 003.2 to 003.41."""

import random
from pathlib import Path
from typing import Any

import pytest

from orchestra import CheckpointSettings, Orchestra
from orchestra.checkpoint.retention.plan import prune_run
from orchestra.engine.orders import Order
from orchestra.errors import BadReference, DamageError, DefinitionChanged, StoreFailed, UnknownSnapshot
from orchestra.history.references import resolve
from orchestra.ids import RunId, uuid_of
from orchestra.model.workflow import Input, Workflow
from orchestra.ports.agent import Result
from orchestra.ports.sink import CheckpointFailed, CheckpointLarge, CheckpointSaved, Notice
from orchestra.ports.store import RowQuery
from orchestra.recording import RetentionSettings
from orchestra.stores.memory import MemoryStore
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.clock import START
from orchestra.testing.faulty import Damage, Fault, FaultPlan, FaultyStore
from tests.outcome import outcome_digest
from tests.unit.engine.support import (
    Failing,
    Theatre,
    context,
    does,
    flow,
    nothing,
    path,
    phase,
    policy,
    returns,
    statuses,
)

pytestmark = pytest.mark.anyio
RUN = RunId("run")
LAYERS = 4


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


class Notices:
    """Everything a sink is told."""

    def __init__(self) -> None:
        self.all: list[Notice] = []

    def notice(self, notice: Notice) -> None:
        self.all.append(notice)


def _layers(count: int = LAYERS, stop: int | None = None) -> Workflow:
    """Layers of two tasks each; after layer `stop` there is one that fails."""
    names = [f"layer{number}" for number in range(count)]
    made = []
    for number, name in enumerate(names):
        tasks = [does("left", into="found"), does("right", into="found")]
        if number == stop:
            tasks.append(does("stop"))
        made.append(phase(name, *tasks, next=names[number + 1 : number + 2]))
    return flow(*made, context={"found": "append"}, inputs=[Input(name="word")], policy=policy("fail"))


async def _left(ctx: Any) -> Result:
    await ctx.decide(f"go left in {ctx.phase}", rationale="it is shorter")
    return Result(output=f"{ctx.phase} left {ctx.inputs['word']}", confidence=0.9)


def _cast(**more: Any) -> dict[str, Any]:
    return {"left": _left, "right": returns("right"), **more}


async def test_every_layer_leaves_a_snapshot(theatre: Theatre) -> None:
    """003.2, 003.3, 003.33: after each layer, with its number, also when nobody asked for more."""
    await theatre.run(_layers(), _cast(), {"word": "x"})
    ends = [turn for turn in theatre.turns if "phase_completed" in turn.header.triggers]
    assert len(ends) == LAYERS
    assert all(turn.header.marked for turn in ends)
    assert [turn.state.completed_tasks for turn in ends] == [2, 4, 6, 8]


async def test_a_resumed_run_has_all_it_had(theatre: Theatre) -> None:
    """003.1, 003.4, 003.18, 003.25: tasks, decisions and context come back exactly."""
    stop = Failing(1)
    failed = await theatre.run(_layers(stop=2), _cast(stop=stop), {"word": "x"})
    async with theatre.house() as house:
        held = await house.manager.look(RUN)
    assert held.state == failed.state
    ending = await theatre.resume(_cast(stop=stop))
    assert ending.kind == "completed"
    assert list(ending.state.decisions)[: len(failed.state.decisions)] == list(failed.state.decisions)
    found = context(ending.state)["found"]
    assert found == [text for number in range(LAYERS) for text in (f"layer{number} left x", "right")]


async def test_after_layer_two_comes_layer_three(theatre: Theatre) -> None:
    """003.6, 003.7, 003.26: from the snapshot of a layer, named by its own id, only what is left runs."""
    calls: list[str] = []

    async def noting(ctx: Any) -> str:
        calls.append(ctx.task_id)
        return str(ctx.phase)

    functions = {"left": noting, "right": noting}
    await theatre.run(_layers(), functions, {"word": "x"})
    ends = [turn for turn in theatre.turns if "phase_completed" in turn.header.triggers]
    calls.clear()
    async with theatre.house(functions) as house:
        row = theatre.store.rows(RowQuery(run=RUN, first=ends[1].header.seq, last=ends[1].header.seq))[0]
        named = resolve(house.manager.archive, str(uuid_of(row.digest)))
        ending = await house.resume(await house.fork(named.run, named.seq))
    assert ending.kind == "completed"
    assert path(ending.state) == [f"layer{number}" for number in range(LAYERS)]
    assert calls == ["layer2/left", "layer2/right", "layer3/left", "layer3/right"]


async def test_decisions_of_agents_and_people_are_in_it(theatre: Theatre) -> None:
    """003.16, 003.37: both kinds, with the messages around them."""

    async def asks(ctx: Any) -> Any:
        return await ctx.ask("Ship it?", ["yes", "no"])

    workflow = flow(phase("one", does("left"), does("asks")), inputs=[Input(name="word")])
    functions = {"left": _left, "asks": asks}
    await theatre.run(workflow, functions, {"word": "x"})
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="answer", value="yes"))
        ending = await house.resume("run")
    assert [made.description for made in ending.state.decisions] == ["go left in one"]
    (wait,) = ending.state.waits.values()
    assert (wait.text, wait.status) == ("Ship it?", "closed")


async def test_every_save_is_told(theatre: Theatre) -> None:
    """003.5, 003.19: with an id, which the store knows."""
    notices = Notices()
    async with Orchestra(theatre.store, functions=_cast(), sinks=[notices], project=theatre.folder) as house:
        await house.run(_layers(), {"word": "x"}, run="run")
    saved = [each for each in notices.all if isinstance(each, CheckpointSaved)]
    rows = theatre.store.rows(RowQuery(run=RUN))
    assert [each.digest for each in saved] == [row.digest for row in rows]


async def test_a_failed_save_need_not_stop_the_work(
    theatre: Theatre, caplog: pytest.LogCaptureFixture
) -> None:
    """000.18, 003.20, 003.29: it is told of which run, which goes on; the snapshots follow when they can."""
    notices = Notices()
    faults = [Fault(methods={"commit"}, nth=nth, kind=StoreFailed) for nth in (2, 3)]
    store = FaultyStore(MemoryStore(), FaultPlan(faults))
    settings = CheckpointSettings(on_save_error="continue")
    async with Orchestra(
        store, functions=_cast(), sinks=[notices], settings=settings, project=theatre.folder
    ) as house:
        ending = await house.run(_layers(), {"word": "x"}, run="run")
        assert (await house.manager.look(RUN)).state == ending.state
    assert ending.kind == "completed"
    failed = [each for each in notices.all if isinstance(each, CheckpointFailed)]
    assert [(each.run, each.unsaved) for each in failed] == [(RUN, 1), (RUN, 2)]
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.partition(" was not saved")[0] for line in said] == [
        f"run {RUN}: snapshot {each.seq}" for each in failed
    ]


async def test_the_last_save_is_tried_once_more(theatre: Theatre) -> None:
    """003.20: what could not be saved at the very end is not given up before the run is."""
    inner = MemoryStore()
    counting = FaultPlan()
    async with Orchestra(FaultyStore(inner, counting), functions=_cast(), project=theatre.folder) as house:
        await house.run(_layers(), {"word": "x"}, run="first")
    last = counting.calls["commit"] - 1
    store = FaultyStore(inner, FaultPlan([Fault(methods={"commit"}, nth=last, kind=StoreFailed)]))
    settings = CheckpointSettings(on_save_error="continue")
    async with Orchestra(store, functions=_cast(), settings=settings, project=theatre.folder) as house:
        ending = await house.run(_layers(), {"word": "x"}, run="run")
        assert (await house.manager.look(RUN)).state == ending.state


async def test_pruning_keeps_the_newest(theatre: Theatre) -> None:
    """003.4, 003.21, 003.28, 003.40: five by default for each phase, never the head or the last good one."""
    await theatre.run(_layers(24), _cast(), {"word": "x"})
    async with theatre.house() as house:
        archive = house.manager.archive
        before = [row for row in theatre.store.rows(RowQuery(run=RUN)) if not row.pruned]
        prune_run(archive, RUN, RetentionSettings(days=None, per_phase=None, per_run=3), now=START)
        after = [row for row in theatre.store.rows(RowQuery(run=RUN)) if not row.pruned]
        assert len(after) < len(before)
        assert (await house.manager.look(RUN)).state.status == "completed"
        assert resolve(archive, "run@last-good").seq in [row.seq for row in after]


async def test_intents_are_marked_as_such(theatre: Theatre) -> None:
    """003.22, 003.38: what is only planned or under way never counts as done."""
    await theatre.run(_layers(2), _cast(), {"word": "x"})
    first = theatre.turns[0].state
    assert statuses(first) == {"layer0/left": "running", "layer0/right": "running"}
    assert first.completed_tasks == 0
    assert all(task.result is None for task in first.tasks.values())


async def test_snapshots_are_small_and_large_ones_are_told(tmp_path: Path) -> None:
    """003.10, 003.23, 003.24: far below 100 KB for a typical workflow; above 500 KB there is a warning."""
    notices = Notices()

    async def big(ctx: Any) -> bytes:
        return random.Random(1).randbytes(700_000)

    with SqliteStore(tmp_path / "orchestra.db", create=True) as store:
        async with Orchestra(store, functions=_cast(big=big), sinks=[notices], project=tmp_path) as house:
            await house.run(_layers(10), {"word": "x"}, run="run")
            typical = [each.size for each in notices.all if isinstance(each, CheckpointSaved)]
            assert max(typical) < 100_000
            assert not [each for each in notices.all if isinstance(each, CheckpointLarge)]
            await house.run(flow(phase("one", does("big"))), run="large")
    large = [each for each in notices.all if isinstance(each, CheckpointLarge)]
    assert [each.run for each in large] == ["large"]


async def test_another_graph_is_noticed_and_may_be_accepted(theatre: Theatre) -> None:
    """003.12, 003.17, 003.27, 003.36: the graph is kept; another one goes on as well as it can."""
    stop = Failing(1)
    await theatre.run(_layers(stop=2), _cast(stop=stop), {"word": "x"})
    async with theatre.house(_cast(stop=stop)) as house:
        held = await house.manager.look(RUN)
        assert (await house.workbench.stored_definition(held.state)).workflow == _layers(stop=2)
        with pytest.raises(DefinitionChanged, match="layer4 is new"):
            await house.resume("run", workflow=_layers(5, stop=2))
        ending = await house.resume("run", workflow=_layers(5, stop=2), accept_changes=True)
    assert ending.kind == "completed"
    assert path(ending.state)[-1] == "layer4"


@pytest.mark.parametrize(
    ("reference", "error"),
    [("run@99", UnknownSnapshot), ("run@layer9", BadReference), ("run@phase:layer9", UnknownSnapshot)],
)
async def test_a_snapshot_that_is_not_there_is_an_error(
    theatre: Theatre, reference: str, error: type[Exception]
) -> None:
    """003.34."""
    await theatre.run(_layers(2), _cast(), {"word": "x"})
    async with theatre.house() as house:
        with pytest.raises(error):
            resolve(house.manager.archive, reference)
        with pytest.raises(UnknownSnapshot):
            await house.fork("run", 99)


async def test_a_damaged_snapshot_is_an_error(theatre: Theatre) -> None:
    """003.35: it is never read as something else."""
    await theatre.run(_layers(2), _cast(), {"word": "x"})
    damaged = FaultyStore(theatre.store, FaultPlan([Damage()]))
    async with Orchestra(damaged, functions=_cast(), project=theatre.folder) as house:
        with pytest.raises(DamageError):
            await house.manager.look(RUN)
        with pytest.raises(DamageError):
            await house.resume("run")


async def test_layers_may_also_be_needs(theatre: Theatre) -> None:
    """003.3, 003.39: the same graph inside one phase, told by needs; both ways come to the same."""
    needs = flow(
        phase(
            "all",
            does("c", needs=("a", "b"), task="{{ needs.a }}{{ needs.b }}", into="found"),
            does("a"),
            does("b"),
        ),
        context={"found": "append"},
    )

    async def says(ctx: Any) -> str:
        return ctx.task or str(ctx.name)

    functions = dict.fromkeys("abc", says)
    one = await theatre.run(needs, functions, run="one")
    two = await theatre.run(needs, functions, run="two")
    assert context(one.state) == {"found": ["ab"]}
    assert outcome_digest(one.state) == outcome_digest(two.state)


async def test_a_store_made_earlier_goes_on_being_used(tmp_path: Path) -> None:
    """003.11, 003.41: opened again, it has the runs it had."""
    for run in ("one", "two"):
        async with Orchestra(f"sqlite:{tmp_path}/o.db", functions={"a": nothing}, project=tmp_path) as house:
            await house.run(flow(phase("p", does("a"))), run=run)
    async with Orchestra(f"sqlite:{tmp_path}/o.db", project=tmp_path) as house:
        for run in ("one", "two"):
            assert (await house.manager.look(RunId(run))).state.status == "completed"
