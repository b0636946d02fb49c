"""Changes by hand: forks with other values keep valid work and do the rest again."""

from typing import Any

import pytest

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.errors import BadInput, BadOrder
from orchestra.model.workflow import Input, Policy, RecoveryPolicy, Retry, Workflow
from orchestra.ports.store import RowQuery, RunQuery
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
    result,
    statuses,
)

pytestmark = pytest.mark.anyio


class Noting:
    """An agent that notes what it was given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def __call__(self, ctx: Any) -> Any:
        self.seen.append((ctx.name, ctx.task, ctx.private))
        await ctx.save(f"saved by {ctx.task}")
        return f"{ctx.name} of {ctx.task}"


def _flow() -> Workflow:
    work = phase(
        "work",
        does("same", "note", task="always"),
        does("asks", "note", task="for {{ inputs.who }}"),
        does("after", "note", needs=("same",), task="{{ context.word }}"),
        does("stop", "stop", needs=("after",)),
    )
    return flow(
        phase("first", does("start", "note", task="begin", into="word"), next=["work"]),
        work,
        context={"word": "replace"},
        inputs=[Input(name="who")],
        policy=policy("fail"),
    )


async def _failed(theatre: Theatre) -> tuple[Noting, dict[str, Any]]:
    note = Noting()
    functions: dict[str, Any] = {"note": note, "stop": Failing(1)}
    ending = await theatre.run(_flow(), functions, {"who": "me"})
    assert ending.kind == "failed"
    note.seen.clear()
    return note, functions


async def test_a_fork_without_changes_repeats_nothing(theatre: Theatre) -> None:
    note, functions = await _failed(theatre)
    async with theatre.house(functions) as house:
        ending = await house.resume(await house.fork("run", new="other"))
    assert (ending.kind, note.seen) == ("completed", [])
    assert ending.state.run == "other"
    assert ending.state.origin is not None
    assert ending.state.origin.run == "run"


async def test_other_inputs_redo_the_visit_they_reach(theatre: Theatre) -> None:
    """Phases that are over stay; nothing is handed back that was saved for other inputs."""
    note, functions = await _failed(theatre)
    async with theatre.house(functions) as house:
        ending = await house.resume(await house.fork("run", values={"inputs.who": "you"}))
    assert ending.kind == "completed"
    assert ("asks", "for you", None) in note.seen
    assert all(private is None for _, _, private in note.seen)
    assert "start" not in [name for name, _, _ in note.seen]
    assert result(ending.state, "work/asks") == "asks of for you"


async def test_another_context_redoes_the_visit(theatre: Theatre) -> None:
    note, functions = await _failed(theatre)
    async with theatre.house(functions) as house:
        ending = await house.resume(await house.fork("run", values={"context.word": "changed"}))
    assert ending.kind == "completed"
    assert ("after", "changed", None) in note.seen
    assert context(ending.state) == {"word": "changed"}


async def test_an_assignment_under_way_gets_its_task_anew(theatre: Theatre) -> None:
    """One that was launched and not finished must not start with the task of the other inputs."""
    note = Noting()
    functions: dict[str, Any] = {"note": note, "stop": Failing(0)}
    await theatre.run(_flow(), functions, {"who": "me"})
    note.seen.clear()
    launched = next(
        turn.header.seq
        for turn in theatre.turns
        for event in turn.events
        if event.kind == "agent_launched" and event.task == "work/asks"
    )
    async with theatre.house(functions) as house:
        ending = await house.resume(await house.fork("run", launched, values={"inputs.who": "you"}))
    assert ("asks", "for you", None) in note.seen
    assert ("asks", "for me", None) not in note.seen
    assert ending.kind == "completed"


async def test_a_fork_has_attempts_of_its_own_at_what_its_origin_had_not_done(theatre: Theatre) -> None:
    tried: list[tuple[str, int]] = []

    async def broken(ctx: Any) -> None:
        tried.append((ctx.run, ctx.attempt))
        raise RuntimeError("it is broken")

    workflow = flow(phase("work", does("broken")), policy=policy("restart", "fail", attempts=2))
    async with theatre.house({"broken": broken}) as house:
        await house.run(workflow, run="run")
        under_way = next(
            turn.header.seq for turn in theatre.turns if turn.state.tasks["work/broken"].failures
        )
        for seq in (None, under_way):
            ending = await house.resume(await house.fork("run", seq, new=f"fork-{seq}"), workflow=workflow)
            assert ending.state.tasks["work/broken"].failures == 2
    runs = ("run", "fork-None", f"fork-{under_way}")
    assert tried == [(run, attempt) for run in runs for attempt in (1, 2)]


async def test_a_list_that_became_shorter_loses_its_last_results(theatre: Theatre) -> None:
    async def each(ctx: Any) -> str:
        return str(ctx.item)

    work = phase("work", does("each", foreach="inputs.items", into="found"), does("stop", needs=("each",)))
    workflow = flow(work, context={"found": "append"}, inputs=[Input(name="items")], policy=policy("fail"))
    functions: dict[str, Any] = {"each": each, "stop": Failing(1)}
    await theatre.run(workflow, functions, {"items": ["a", "b", "c"]})
    async with theatre.house(functions) as house:
        ending = await house.resume(await house.fork("run", values={"inputs.items": ["a", "x"]}))
    assert ending.kind == "completed"
    assert context(ending.state) == {"found": ["a", "x"]}
    assert statuses(ending.state)["work/each[2]"] == "retired"


async def test_a_condition_is_looked_at_again(theatre: Theatre) -> None:
    """What was skipped is done when it holds now, and the other way round."""
    work = phase(
        "work",
        does("yes", "note", when="inputs.who == 'you'", into="found"),
        does("no", "note", when="inputs.who == 'me'", into="found"),
        does("stop"),
    )
    workflow = flow(work, context={"found": "append"}, inputs=[Input(name="who")], policy=policy("fail"))
    functions: dict[str, Any] = {"note": Noting(), "stop": Failing(1)}
    await theatre.run(workflow, functions, {"who": "me"})
    async with theatre.house(functions) as house:
        ending = await house.resume(await house.fork("run", values={"inputs.who": "you"}))
    assert ending.kind == "completed"
    assert context(ending.state) == {"found": ["yes of "]}
    assert statuses(ending.state)["work/no"] == "skipped"


async def test_a_substitutes_result_is_not_taken_for_valid(theatre: Theatre) -> None:
    note = Noting()
    work = phase(
        "work",
        does("a", "broken", task="for {{ inputs.who }}", substitute="note", on_failure=("substitute",)),
        does("stop"),
    )
    workflow = flow(work, inputs=[Input(name="who")], policy=policy("fail"))
    functions: dict[str, Any] = {"note": note, "broken": Failing(9), "stop": Failing(1)}
    await theatre.run(workflow, functions, {"who": "me"})
    async with theatre.house(functions) as house:
        same = await house.resume(await house.fork("run"))
        other = await house.resume(await house.fork("run", values={"inputs.who": "you"}))
    assert (same.kind, other.kind) == ("completed", "completed")
    assert [task for _, task, _ in note.seen] == ["for me", "for you"]


@pytest.mark.parametrize("path", ["inputs.nobody", "context.nothing", "tasks.a", "who", ""])
async def test_only_what_there_is_can_be_set(theatre: Theatre, path: str) -> None:
    _, functions = await _failed(theatre)
    async with theatre.house(functions) as house:
        with pytest.raises(BadOrder, match=r"inputs\.who, context\.word"):
            await house.fork("run", values={path: 1})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"inputs.count": "many"}, "a whole number is needed"),
        ({"inputs.mode": "loud"}, "it is one of"),
        ({"inputs.path": "nowhere"}, "there is nothing at"),
    ],
)
async def test_an_input_is_set_as_it_would_be_given(
    theatre: Theatre, values: dict[str, Any], why: str
) -> None:
    """What no run could have started with, no fork begins with."""
    given: dict[str, Any] = {"count": 1, "mode": "soft", "path": "."}
    choices = tuple(freeze(each, Addresser()) for each in ("soft", "mild"))
    inputs = [
        Input(name="count", type="integer"),
        Input(name="mode", type="text", choices=choices),
        Input(name="path", type="path"),
    ]
    seen = list[Any]()

    async def agent(ctx: Any) -> None:
        seen.append(dict(ctx.inputs))

    await theatre.run(flow(phase("work", does("a", "agent")), inputs=inputs), {"agent": agent}, given)
    async with theatre.house({"agent": agent}) as house:
        with pytest.raises(BadInput, match=why):
            await house.fork("run", 0, values=values)
        assert len(house.manager.archive.store.runs(RunQuery())) == 1
        await house.resume(await house.fork("run", 0, values={"inputs.count": "3", "inputs.mode": "mild"}))
    assert seen == [given, {"count": 3, "mode": "mild", "path": "."}]


async def test_a_secret_input_is_not_set_but_handed_over(theatre: Theatre) -> None:
    seen = list[Any]()

    async def agent(ctx: Any) -> None:
        seen.append(ctx.inputs["token"])

    inputs = [Input(name="token", type="text", secret=True)]
    work = flow(phase("work", does("a", "agent")), inputs=inputs)
    await theatre.run(work, {"agent": agent}, {"token": "first-secret-1"})
    async with theatre.house({"agent": agent}) as house:
        with pytest.raises(BadOrder, match="secret and never stored"):
            await house.fork("run", 0, values={"inputs.token": "other-secret-2"})
        await house.resume(await house.fork("run", 0), inputs={"token": "other-secret-2"})
    assert seen == ["first-secret-1", "other-secret-2"]
    assert not any(b"other-secret-2" in row.header for row in theatre.store.rows(RowQuery()))


async def test_a_fork_in_the_middle_of_a_phase_has_a_way_back(theatre: Theatre) -> None:
    """Where it began counts as a boundary: there is no other before its next phase."""
    calls = list[int]()

    async def agent(ctx: Any) -> str:
        calls.append(1)
        if len(calls) in (2, 3):
            raise ValueError("not yet")
        return "done"

    rules = Policy(
        retry=Retry(attempts=2, backoff_us=1000),
        recovery=RecoveryPolicy(on_failure=("restart", "rollback", "fail")),
    )
    work = flow(phase("work", does("a", "agent")), policy=rules)
    assert (await theatre.run(work, {"agent": agent})).kind == "completed"
    async with theatre.house({"agent": agent}) as house:
        ending = await house.resume(await house.fork("run", 0))
    assert (ending.kind, len(calls)) == ("completed", 4)
    assert [each.to_seq for each in ending.state.rollbacks] == [0]


async def test_where_nothing_is_left_to_do_nothing_can_be_changed(theatre: Theatre) -> None:
    functions: dict[str, Any] = {"note": Noting(), "stop": Failing(0)}
    assert (await theatre.run(_flow(), functions, {"who": "me"})).kind == "completed"
    async with theatre.house(functions) as house:
        with pytest.raises(BadOrder, match="earlier snapshot"):
            await house.fork("run", values={"inputs.who": "you"})


async def test_a_fork_leaves_its_origin_as_it_was(theatre: Theatre) -> None:
    _, functions = await _failed(theatre)
    async with theatre.house(functions) as house:
        before = await house.manager.look("run")  # type: ignore[arg-type]
        await house.resume(await house.fork("run", values={"inputs.who": "you"}))
        after = await house.manager.look("run")  # type: ignore[arg-type]
    assert after.digest == before.digest
    assert path(after.state) == ["first", "work"]


async def test_what_is_completed_has_nothing_to_fork(theatre: Theatre) -> None:
    await theatre.run(flow(phase("work", does("a"))), {"a": nothing})
    async with theatre.house({"a": nothing}) as house:
        with pytest.raises(BadOrder, match="nothing is left to do at run@1; fork from an earlier snapshot"):
            await house.fork("run")
        assert (await house.resume(await house.fork("run", 0))).kind == "completed"
