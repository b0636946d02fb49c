"""`Orchestra` as a program uses it: text for ids, keywords for inputs, plain values for answers."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra import Context, Orchestra, agent, workflow
from orchestra.errors import (
    AmbiguousReference,
    BadInput,
    BadOrder,
    BadWorkflow,
    DefinitionChanged,
    UnknownPath,
    UnknownRun,
)
from orchestra.workflow import to

pytestmark = pytest.mark.anyio


@agent
async def greet(ctx: Context) -> str:
    await ctx.decide(f"Greet {ctx.task}", rationale="it was asked for")
    return f"Hello {ctx.task}"


@agent
async def wonder(ctx: Context) -> Any:
    return await ctx.ask("Greet?", choices=["yes", "no"])


HELLO = workflow("hello").phase("greet", greet("{{ inputs.who }}", into="said"))
ASKING = workflow("asking").phase("ask", wonder(into="said"))
LOOP = (
    workflow("loop")
    .context("all", "append")
    .context("none", "append")
    .phase(
        "many",
        greet("{{ visit }}{{ item }}", foreach=["a", "b"], into="all"),
        greet("{{ visit }}", name="single"),
        next=[to("many", when="visits.many < 2"), to("once")],
    )
    .phase("once", greet("once", name="single"))
)


@pytest.fixture
def house(tmp_path: Path) -> Orchestra:
    return Orchestra("memory:", project=tmp_path)


async def test_values_come_out_plain(house: Orchestra) -> None:
    async with house as orchestra:
        ending = await orchestra.run(HELLO, who="world")
        assert (ending.kind, ending.status, ending.phase) == ("completed", "completed", "greet")
        assert ending.result("greet") == ending.results["greet/greet"] == "Hello world"
        assert dict(ending.context) == {"said": "Hello world"}
        assert ending.inputs == {"who": "world"}
        assert (ending.outputs, ending.questions, ending.failure) == ({}, {}, None)
        assert [each.description for each in ending.decisions] == ["Greet world"]


async def test_a_result_is_that_of_the_newest_visit_and_lists_items(house: Orchestra) -> None:
    async with house as orchestra:
        ending = await orchestra.run(LOOP)
        assert ending.result("greet") == ["Hello 2a", "Hello 2b"]
        assert ending.result("single") == ending.result("once/single") == "Hello once"
        assert ending.result("many/single") == "Hello 2"
        assert ending.result("many/greet[1]") == "Hello 1b"
        assert ending.context["all"] == ["Hello 1a", "Hello 1b", "Hello 2a", "Hello 2b"]
        assert ending.context["none"] == []
        with pytest.raises(UnknownPath, match="no such specialist has begun; there are greet, single"):
            ending.result("nobody")


async def test_large_values_are_read_from_the_store(house: Orchestra) -> None:
    large = "x" * 100_000

    @agent
    async def write(ctx: Context) -> list[str]:
        return [large]

    async with house as orchestra:
        ending = await orchestra.run(workflow("large").phase("a", write(into="text")))
        assert ending.result("write") == ending.context["text"] == [large]
        assert (await orchestra.state(ending.run)).context["text"] == [large]


async def test_a_phase_without_next_goes_on_with_the_one_below(house: Orchestra) -> None:
    made = workflow("two").phase("a", greet("a")).phase("b", greet("b"))
    async with house as orchestra:
        ending = await orchestra.run(made)
        assert sorted(ending.results) == ["a/greet", "b/greet"]


async def test_mistakes_are_told_before_anything_runs(house: Orchestra) -> None:
    async with house as orchestra:
        with pytest.raises(BadWorkflow, match=r"test_orchestra.py:\d+: there is no agent `nobody`"):
            await orchestra.run(workflow("x").phase("a", greet(substitute="nobody")))
        with pytest.raises(BadInput, match="'hwo' of hello cannot be used: there is no such input; did you"):
            await orchestra.run(HELLO, hwo="world")
        assert await orchestra.runs() == []


async def test_inputs_are_keywords_or_a_mapping(house: Orchestra) -> None:
    made = workflow("x").phase("a", greet("{{ inputs.wait }} {{ inputs.who }}"))
    async with house as orchestra:
        ending = await orchestra.run(made, {"wait": 3}, who="x")
        assert ending.result("greet") == "Hello 3 x"


async def test_a_question_is_answered_and_the_run_goes_on(house: Orchestra) -> None:
    async with house as orchestra:
        ending = await orchestra.run(ASKING)
        assert ending.kind == "waiting"
        (name, question), *_ = (await orchestra.questions(ending.run)).items()
        assert (question.text, question.choices) == ("Greet?", ("yes", "no"))
        with pytest.raises(BadOrder, match="the choices are yes, no"):
            await orchestra.answer(ending.run, "maybe")
        await orchestra.answer(ending.run, "yes", question=name)
        assert (await orchestra.resume(ending.run)).context["said"] == "yes"
        assert (await orchestra.state(ending.run)).questions == {}


async def test_runs_are_paused_marked_cancelled_and_let_go(house: Orchestra) -> None:
    async with house as orchestra:
        run = (await orchestra.run(ASKING)).run
        await orchestra.snapshot(run, note="before")
        await orchestra.pause(run, reason="lunch")
        assert (await orchestra.state(run)).status == "paused"
        with pytest.raises(BadOrder, match="no process plays the run"):
            await orchestra.unpause(run)
        await orchestra.cancel(run, reason="enough")
        assert (await orchestra.state(run)).status == "cancelled"
        marked = [each for each in await orchestra.snapshots(run) if "user_requested" in each.triggers]
        assert len(marked) == 1


async def test_a_run_that_is_played_here_is_paused_and_let_go(house: Orchestra) -> None:
    began, go_on = anyio.Event(), anyio.Event()

    @agent
    async def hold(ctx: Context) -> None:
        began.set()
        await go_on.wait()

    endings: list[Any] = []
    made = workflow("x").phase("a", hold()).phase("b", greet("b"))
    async with house as orchestra, anyio.create_task_group() as group:

        async def play() -> None:
            endings.append(await orchestra.run(made, run="held", wait=True))

        group.start_soon(play)
        await began.wait()
        await orchestra.pause("held")
        assert (await orchestra.state("held")).status == "paused"
        go_on.set()
        await orchestra.unpause("held")
    assert [each.kind for each in endings] == ["completed"]


async def test_a_failed_assignment_is_tried_again(house: Orchestra) -> None:
    made = workflow("x").policy(retry={"attempts": 1}, recovery={"on_failure": "fail"})
    tries: list[int] = []

    @agent
    async def once(ctx: Context) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("not yet")
        return "done"

    async with house as orchestra:
        ending = await orchestra.run(made.phase("a", once()))
        assert ending.kind == "failed"
        assert ending.failure is not None
        await orchestra.retry(ending.run, "once")
        assert (await orchestra.resume(ending.run)).result("once") == "done"


async def test_going_back_and_forking(house: Orchestra) -> None:
    made = workflow("x").phase("greet", greet("{{ inputs.who }}")).phase("ask", wonder())
    async with house as orchestra:
        run = (await orchestra.run(made, who="you")).run
        plan = await orchestra.rollback_plan(run, 0)
        assert plan.to == 0
        await orchestra.rollback(run, to=0, reason="again")
        assert (await orchestra.state(run)).phase == "greet"
        ending = await orchestra.resume(run)
        assert ending.kind == "waiting"
        fork = await orchestra.fork(run, 0, values={"inputs.who": "me"}, reason="for me")
        assert (await orchestra.resume(fork)).result("greet") == "Hello me"


async def test_history_is_read_by_references(house: Orchestra) -> None:
    async with house as orchestra:
        one = await orchestra.run(HELLO, who="world", run="hello_1")
        await orchestra.run(HELLO, who="you", run="hello_2")
        await orchestra.run(ASKING, run="asking_1")
        assert [each.run for each in await orchestra.runs(workflow="hello")] == ["hello_2", "hello_1"]
        assert [each.run for each in await orchestra.runs(status="waiting")] == ["asking_1"]
        assert len(await orchestra.runs(status=["waiting", "completed"], limit=2)) == 2
        story = await orchestra.history("hello_1")
        decided = [entry.decision for entry in story if entry.event.kind == "decision_made"]
        assert decided == await orchestra.decisions("hello_1") == list(one.decisions)
        numbers = [each.seq for each in await orchestra.snapshots("hello_1")]
        assert numbers == list(range(len(numbers)))
        assert [each.seq for each in await orchestra.snapshots("hello_1", limit=1)] == numbers[-1:]
        assert (await orchestra.snapshots("hello_1", triggers=["completed"]))[0].seq == numbers[-1]
        assert (await orchestra.state("hello_1@0")).context["said"] is None
        assert (await orchestra.blame("hello_1", "context.said")).who == "greet"
        changed = {each.path[0] for each in (await orchestra.compare("hello_1", "hello_2")).changes}
        assert {"context", "inputs"} <= changed
        with pytest.raises(UnknownRun):
            await orchestra.history("nobody")
        with pytest.raises(AmbiguousReference):
            await orchestra.state("hello_")
        with pytest.raises(UnknownPath):
            await orchestra.blame("hello_1", "context said")


async def test_a_run_recorded_without_a_workflow_can_be_read(tmp_path: Path) -> None:
    from orchestra.recording import SystemClock, WorkflowRef, events, new_run_id
    from orchestra.stores.memory import MemoryStore

    store, clock = MemoryStore(), SystemClock()
    async with Orchestra(store, project=tmp_path) as orchestra:
        run = new_run_id("by hand", clock.now(), b"k7")
        began = events.RunStarted(at=clock.now(), run=run, workflow=WorkflowRef(name="by-hand"))
        await orchestra.manager.release(await orchestra.manager.begin(began))
        found = await orchestra.state(run)
        assert (dict(found.context), found.inputs, found.phase) == ({}, {}, None)


async def test_another_process_hands_the_workflow_in_again(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    async with Orchestra(url, project=tmp_path) as orchestra:
        run = (await orchestra.run(ASKING)).run
    async with Orchestra(url, project=tmp_path) as orchestra:
        await orchestra.answer(run, "no")
        assert (await orchestra.resume(run, workflow=ASKING)).result("wonder") == "no"


async def test_a_changed_function_is_noticed_when_a_run_is_resumed(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"

    @agent(name="wonder")
    async def other(ctx: Context) -> str:
        return "changed"

    changed = workflow("asking").phase("ask", other(into="said"))
    async with Orchestra(url, project=tmp_path) as orchestra:
        run = (await orchestra.run(ASKING)).run
        with pytest.raises(DefinitionChanged, match=r"agents\.wonder\.source"):
            await orchestra.resume(run, workflow=changed)
        await orchestra.answer(run, "no")
        assert (await orchestra.resume(run, workflow=changed, accept_changes=True)).result(
            "wonder"
        ) == "changed"


async def test_two_workflows_with_agents_of_one_name_do_not_meet(house: Orchestra) -> None:
    @agent(name="greet")
    async def other(ctx: Context) -> str:
        return "Other"

    async with house as orchestra:
        one = await orchestra.run(HELLO, who="you")
        two = await orchestra.run(workflow("other").phase("greet", other()))
        assert (one.result("greet"), two.result("greet")) == ("Hello you", "Other")


async def test_a_class_and_a_plain_function_are_agents_too(house: Orchestra) -> None:
    @agent
    def plain(ctx: Any) -> str:
        return f"plain {ctx.task}"

    class Kept:
        async def run(self, ctx: Context) -> str:
            return f"class {ctx.task}"

    kept = agent(Kept)
    async with house as orchestra:
        ending = await orchestra.run(workflow("x").phase("a", plain("a"), kept("b")))
        assert (ending.result("plain"), ending.result("Kept")) == ("plain a", "class b")
