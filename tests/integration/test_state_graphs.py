"""State graphs: the snapshot is the state. CHECKLIST 004.6 to 004.33, through the public API."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra import CheckpointSettings, Orchestra
from orchestra.codec.values import thaw
from orchestra.errors import (
    BadSetting,
    BadWorkflow,
    NotResumable,
    StoreFailed,
    UnknownRun,
    UnknownStore,
)
from orchestra.history.references import resolve
from orchestra.ids import RunId
from orchestra.model.workflow import Policy
from orchestra.ports.store import RowQuery, RunQuery
from orchestra.recording import RetentionSettings, open_store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.faulty import Fault, FaultPlan, FaultyStore
from tests.unit.engine.support import (
    Theatre,
    does,
    flow,
    kinds,
    nothing,
    path,
    phase,
    policy,
    returns,
    triggers,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


def _line(*names: str) -> Any:
    """Phases in a row, each with one assignment that has its name."""
    made = [phase(name, does(name), next=names[at + 1 : at + 2]) for at, name in enumerate(names)]
    return flow(*made, policy=policy("fail"))


class Counting:
    """Agents by name that count their calls; `fail` names the one that fails, as long as it is there."""

    def __init__(self, *names: str) -> None:
        self.calls = dict.fromkeys(names, 0)
        self.fail = ""

    def functions(self) -> dict[str, Any]:
        async def agent(ctx: Any) -> str:
            self.calls[ctx.name] += 1
            if ctx.name == self.fail:
                raise RuntimeError("broken")
            return str(ctx.name)

        return dict.fromkeys(self.calls, agent)


async def test_the_snapshot_is_the_state(theatre: Theatre) -> None:
    """004.6, 004.7, 004.15, 004.17: run id, node, time and data are in it, and nothing is wrapped around."""
    ending = await theatre.run(_line("a", "b"), {"a": nothing, "b": nothing})
    async with theatre.house() as house:
        snapshot = await house.manager.look(RunId("run"))
    assert snapshot.state == ending.state
    assert (snapshot.state.run, snapshot.state.cursor.phase) == ("run", "b")
    assert snapshot.state.updated_at == snapshot.header.at


async def test_states_do_not_change(theatre: Theatre) -> None:
    """004.16, 004.17, 004.34: every state of the way is still what it was."""
    await theatre.run(_line("a", "b"), {"a": nothing, "b": nothing})
    async with theatre.house() as house:
        for turn in theatre.turns:
            held = await house.manager.look(RunId("run"), turn.header.seq)
            assert held.state == turn.state
    with pytest.raises(AttributeError):
        theatre.turns[0].state.status = "completed"  # type: ignore[misc]


@pytest.mark.parametrize(("interval", "wanted"), [(0, []), (1, [1, 2, 3, 4]), (2, [2, 4]), (9, [])])
async def test_the_interval_counts_nodes_that_succeeded(
    theatre: Theatre, interval: int, wanted: list[int]
) -> None:
    """004.2, 004.8, 004.9, 004.10: saved after the node, every so many, 0 is off."""
    settings = CheckpointSettings(interval=interval)
    functions = dict.fromkeys("abcd", nothing)
    await theatre.run(_line(*"abcd"), functions, settings=settings)
    found = [turn.state.completed_tasks for turn in theatre.turns if "interval" in turn.header.triggers]
    assert found == wanted


async def test_resuming_goes_on_at_the_next_node(theatre: Theatre) -> None:
    """004.1, 004.3, 004.11: what is done is never repeated."""
    count = Counting("a", "b", "c")
    count.fail = "b"
    assert (await theatre.run(_line("a", "b", "c"), count.functions())).kind == "failed"
    count.fail = ""
    ending = await theatre.resume(count.functions())
    assert (ending.kind, path(ending.state)) == ("completed", ["a", "b", "c"])
    assert count.calls == {"a": 1, "b": 2, "c": 1}


async def test_a_save_that_fails_stops_the_run(theatre: Theatre) -> None:
    """004.12, 004.14: by its own error, with the run and what to do next."""
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=2, kind=StoreFailed)]))
    async with Orchestra(store, functions={"a": nothing, "b": nothing}, project=theatre.folder) as house:
        with pytest.raises(StoreFailed):
            await house.run(_line("a", "b"), run="run")
        assert (await house.resume("run")).kind == "completed"


@pytest.mark.parametrize("preserve", [False, True])
async def test_a_completed_run_may_be_deleted(theatre: Theatre, preserve: bool) -> None:
    """004.4, 004.13, 000.40: at the exit, on success only, unless it is to be preserved."""
    retention = RetentionSettings(delete_on_completion=True, preserve=preserve)
    settings = CheckpointSettings(retention=retention)
    count = Counting("a", "b")
    count.fail = "b"
    await theatre.run(_line("a", "b"), count.functions(), settings=settings)
    assert theatre.store.run(RunId("run")) is not None
    count.fail = ""
    async with theatre.house(count.functions(), settings=settings) as house:
        ending = await house.resume("run")
    assert ending.kind == "completed"
    assert (theatre.store.run(RunId("run")) is not None) == preserve


async def test_a_store_saves_loads_lists_and_deletes(theatre: Theatre) -> None:
    """004.18, 004.19."""
    for run in ("one", "two"):
        await theatre.run(_line("a"), {"a": nothing}, run=run)
    async with theatre.house() as house:
        archive = house.manager.archive
        assert resolve(archive, "one").run == "one"
        theatre.store.delete(RunId("one"))
        with pytest.raises(UnknownRun, match="one"):
            await house.manager.look(RunId("one"))
        assert resolve(archive, "two").run == "two"


async def test_stores_are_known_by_name() -> None:
    """004.20, 004.23: an unknown one is an error where it is named."""
    with open_store("memory:", create=True) as store:
        assert store.place
    with pytest.raises(UnknownStore):
        open_store("nowhere:at-all", create=True)
    with pytest.raises(UnknownStore):
        Orchestra("nowhere:at-all")


async def test_what_is_not_stored_cannot_be_resumed(theatre: Theatre) -> None:
    """004.25."""
    off = CheckpointSettings(enabled=False)
    async with theatre.house({"a": nothing}, settings=off) as house:
        assert (await house.run(_line("a"), run="run")).kind == "completed"
        with pytest.raises(BadSetting, match="not stored"):
            await house.resume("run")
    async with theatre.house({"a": nothing}) as house:
        with pytest.raises(UnknownRun):
            await house.resume("nobody")


async def test_saves_and_resumes_are_told(theatre: Theatre) -> None:
    """004.5, 004.26: whoever listens hears of every save, with run and node, and of the resumption."""
    count = Counting("a", "b")
    count.fail = "b"
    await theatre.run(_line("a", "b"), count.functions())
    count.fail = ""
    seen = len(theatre.turns)
    await theatre.resume(count.functions())
    first = theatre.turns[seen]
    assert kinds(first.events)[0] == "run_resumed"
    assert (first.run, first.header.phase) == ("run", "b")
    rows = theatre.store.rows(RowQuery(run=RunId("run")))
    assert [turn.header.seq for turn in theatre.turns] == [row.seq for row in rows]


async def test_a_run_at_its_exit_is_complete(theatre: Theatre) -> None:
    """004.27."""
    await theatre.run(_line("a"), {"a": nothing})
    with pytest.raises(NotResumable, match="completed"):
        await theatre.resume({"a": nothing})


async def test_the_graph_is_checked_first(tmp_path: Path) -> None:
    """004.28: unknown nodes are refused before anything runs, all mistakes at once."""
    file = tmp_path / "flow.yaml"
    file.write_text(
        "name: bad\nagents: {a: {command: [echo]}}\nphases:\n"
        "  one: {specialists: {x: {agent: nobody}}, next: [{to: nowhere}]}\n"
    )
    async with Orchestra(MemoryStore(), project=tmp_path) as house:
        with pytest.raises(BadWorkflow) as caught:
            await house.run(file)
        assert not house.manager.archive.store.runs(RunQuery())
    assert "nobody" in str(caught.value)
    assert "nowhere" in str(caught.value)


async def test_limits_and_dead_ends_fail_the_run(theatre: Theatre) -> None:
    """004.22, 004.24, 004.28: too many iterations, no edge that holds; the path is recorded."""
    endless = flow(phase("a", next=["b"]), phase("b", next=["a"]), policy=Policy(max_iterations=7))
    ending = await theatre.run(endless, {}, run="endless")
    assert (ending.kind, path(ending.state)) == ("failed", list("abababa"))
    dead = flow(phase("a", does("a"), next=[("b", "false")]), phase("b"))
    ending = await theatre.run(dead, {"a": nothing}, run="dead")
    assert ending.state.failure is not None
    assert "no transition of a holds" in ending.state.failure.message


async def test_cancellation_from_outside_leaves_a_run_to_resume(theatre: Theatre) -> None:
    """004.28."""
    started = anyio.Event()

    async def hangs(ctx: Any) -> None:
        started.set()
        await anyio.sleep_forever()

    async with theatre.house({"a": nothing, "b": hangs}) as house, anyio.create_task_group() as group:
        group.start_soon(lambda: house.run(_line("a", "b"), run="run"))
        await started.wait()
        group.cancel_scope.cancel()
    ending = await theatre.resume({"a": nothing, "b": nothing})
    assert (ending.kind, path(ending.state)) == ("completed", ["a", "b"])
    assert ending.state.metrics.recoveries == 1


async def test_cycles_are_counted(theatre: Theatre) -> None:
    """004.29: from the second visit on, node, visits and iteration are known."""
    loop = flow(phase("a", does("a"), next=[("a", "visits.a < 3"), "end"]))
    ending = await theatre.run(loop, {"a": nothing})
    visits = [(each.phase, each.visit) for each in ending.state.path]
    assert visits == [("a", 1), ("a", 2), ("a", 3)]
    assert (ending.state.cursor.visit, ending.state.cursor.ordinal) == (3, 3)


async def test_starts_ends_edges_and_the_exit_are_on_record(theatre: Theatre) -> None:
    """004.30, 004.31, 004.32: in order, each edge with its result up to the first that holds."""
    graph = flow(
        phase("a", does("a"), next=[("b", "false"), ("c", "true"), ("b", "true")]), phase("b"), phase("c")
    )
    ending = await theatre.run(graph, {"a": nothing})
    told = [kind for kind in kinds(theatre.events) if kind.startswith(("phase", "decision", "run_ended"))]
    assert told == [
        "phase_started",
        "phase_completed",
        "decision_made",
        "phase_started",
        "phase_completed",
        "run_ended",
    ]
    (made,) = ending.state.decisions
    assert made.details is not None
    details = thaw(made.details)
    assert details["from"] == "a"
    assert [(each["to"], each["outcome"]) for each in details["evaluated"]] == [
        ("b", "does not hold"),
        ("c", "holds"),
    ]
    assert "completed" in triggers(theatre.store)[-1]


async def test_a_graph_from_a_file_with_several_exits(tmp_path: Path) -> None:
    """004.24, 004.33: nodes, edges with predicates, an entry and exits, from YAML with agents in files."""
    (tmp_path / "node.py").write_text("async def agent(ctx):\n    return ctx.inputs['way']\n")
    file = tmp_path / "graph.yaml"
    file.write_text(
        "name: graph\ninputs: {way: {type: text}}\ncontext: {way: {reducer: replace}}\n"
        "agents: {node: node.py}\nphases:\n"
        "  entry:\n    specialists: {ask: {agent: node, into: way}}\n"
        "    next: [{to: left, when: context.way == 'left'}, {to: right}]\n"
        "  left: {specialists: {go: {agent: node}}, next: [{to: end}]}\n"
        "  right: {specialists: {go: {agent: node}}}\n"
    )
    async with Orchestra(MemoryStore(), project=tmp_path) as house:
        found = [path((await house.run(file, {"way": way})).state) for way in ("left", "right")]
    assert found == [["entry", "left"], ["entry", "right"]]


async def test_a_function_can_be_a_node(theatre: Theatre) -> None:
    """004.33: async ones in the loop, plain ones in a thread."""

    def plain(ctx: Any) -> int:
        ctx.save({"at": 1})
        return 2

    ending = await theatre.run(_line("a", "b"), {"a": plain, "b": returns(3)})
    assert ending.kind == "completed"
