"""Other agents of the workflow as tools: an errand is an assignment of its own, and is not done twice."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.errors import BadWorkflow
from tests.llm.talk import MODEL, Talk, calls, decisions, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
FLOW: Final = """
name: talk
agents:
  lead: {path: lead.md%s}
  finder: %s
phases:
  work:
    specialists:
      lead: {task: "Find out about tea."}
policy: {retry: {attempts: 2, backoff: 1ms}, concurrency: %d, recovery: {on_failure: [restart, fail]}}
"""
ASK: Final = {"calls": [{"name": "finder", "arguments": {"task": "Where does tea grow?"}}]}
LEAD: Final = [ASK, {"text": "Tea grows in Assam, I am told."}]
FOUND: Final = [{"text": "In Assam."}]
PYTHON: Final = '''
"""Knows where things grow."""
from orchestra import Result
%s

async def agent(ctx):
    return %s
'''


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _script(lead: Any = LEAD, finder: Any = FOUND) -> dict[str, Any]:
    return {
        "conversations": [
            {"name": "lead", "match": "You lead", "turns": lead},
            {"name": "finder", "match": "You find", "turns": finder},
        ]
    }


def _write(
    talk: Talk, options: str = "", *, finder: str = "finder.md", tools: str = "agent:finder", at_once: int = 8
) -> None:
    talk.write(
        flow__yaml=FLOW % (f", {options}" if options else "", finder, at_once),
        lead__md=f"---\nname: lead\nmodel: {MODEL}\ntools: [{tools}]\n---\nYou lead.\n",
        finder__md=f"---\nname: finder\ndescription: Finds things out.\nmodel: {MODEL}\n---\nYou find.\n",
    )


def _result(ending: Ending, task: str = "work/lead") -> Any:
    assert ending.kind == "completed", ending.state.failure
    value = ending.state.tasks[task].result
    assert value is not None
    return thaw(value)


async def test_an_errand_is_an_assignment_on_the_record(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk)
        ending = await talk.play()
        assert _result(ending) == "Tea grows in Assam, I am told."
        assert _result(ending, "work/lead:finder") == "In Assam."
        errand = ending.state.tasks["work/lead:finder"]
        assert (errand.by, errand.attempts, errand.description) == ("finder", 1, "Where does tea grow?")
        assert errand.call in ending.state.tool_calls
        assert calls(ending.state) == [("finder", "done", "In Assam.")]
        (chosen,) = [each for each in ending.state.decisions if each.kind == "errand"]
        assert chosen.description == "Give finder an errand: lead:finder"
        assert chosen.rationale == "lead asks for it: Where does tea grow?"
        assert chosen.alternatives == ("refuse the call",)
        assert {each.task for each in ending.state.messages.values()} == {"work/lead", "work/lead:finder"}
        assert "Finds things out." in str(talk.provider.ledger.begun()[0])


async def test_an_errand_begins_also_when_only_one_may_work_at_once(open_with: Opener) -> None:
    both = {"calls": [*ASK["calls"], {"name": "finder", "arguments": {"task": "And coffee?"}}]}
    async with open_with(_script([both, LEAD[1]])) as talk:
        _write(talk, at_once=1)
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert [name for name in ending.state.tasks if ":" in name] == [
            "work/lead:finder",
            "work/lead:finder.2",
        ]


async def test_a_python_agent_is_a_tool_that_says_how_sure_it_is(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk, finder="finder.py")
        talk.write(finder__py=PYTHON % ("", 'Result(output="In " + ctx.task[-5:-1], confidence=0.5)'))
        ending = await talk.play()
        assert calls(ending.state) == [("finder", "done", {"result": "In grow", "confidence": 0.5})]
        assert "Knows where things grow." in str(talk.provider.ledger.begun()[0])


async def test_an_errand_that_fails_is_told_to_the_model(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk, finder="finder.py")
        talk.write(finder__py=PYTHON % ("", "1 / 0"))
        ending = await talk.play()
        told = "finder brought no result: ZeroDivisionError: division by zero"
        assert calls(ending.state) == [("finder", "failed", told)]
        errand = ending.state.tasks["work/lead:finder"]
        assert (errand.status, errand.failures) == ("skipped", 2)
        assert "failure_handling" in decisions(ending.state)


async def test_a_finished_errand_is_found_again_and_not_done_again(open_with: Opener) -> None:
    ask_twice = [{"calls": [*ASK["calls"], {"name": "note", "arguments": {}}]}, LEAD[1]]
    lost = '''
from pathlib import Path
from orchestra.agents.llm.tools import ServerLost

def note() -> str:
    """Be lost once, as a server that died."""
    place = Path(__file__).parent / "lost"
    if not place.exists():
        place.touch()
        raise ServerLost("gone")
    return "noted"
'''
    async with open_with(_script(ask_twice)) as talk:
        _write(talk, tools="agent:finder, tools.py")
        talk.write(tools__py=lost)
        ending = await talk.play()
        assert _result(ending) == "Tea grows in Assam, I am told."
        assert ending.state.tasks["work/lead"].attempts == 2
        assert [name for name in ending.state.tasks if ":" in name] == ["work/lead:finder"]
        assert ending.state.tasks["work/lead:finder"].attempts == 1
        assert len(talk.provider.ledger.completed()) == 3


async def test_a_risky_errand_begins_once_it_is_allowed(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk, "risky: agent:finder")
        ending = await talk.play()
        assert ending.kind == "waiting"
        assert "work/lead:finder" not in ending.state.tasks
        assert (await talk.play()).kind == "waiting"
        ending = await talk.play({"choice": "approve", "arguments": {"task": "Where does coffee grow?"}})
        assert _result(ending, "work/lead:finder") == "In Assam."
        assert ending.state.tasks["work/lead:finder"].description == "Where does coffee grow?"


async def test_an_errand_that_asks_a_person_goes_on_inside_itself(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk, finder="finder.py")
        talk.write(finder__py=PYTHON % ("", 'await ctx.ask("Where?")'))
        assert (await talk.play()).kind == "waiting"
        assert (await talk.play()).kind == "waiting"
        ending = await talk.play("In Assam.")
        assert calls(ending.state) == [("finder", "done", "In Assam.")]
        assert [name for name in ending.state.tasks if ":" in name] == ["work/lead:finder"]
        assert decisions(ending.state).count("errand") == 1


async def test_an_errand_of_a_changed_question_is_not_gone_on_with(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk, finder="finder.py")
        talk.write(finder__py=PYTHON % ("", 'await ctx.ask("Where?")'))
        assert (await talk.play()).kind == "waiting"
        talk.write(finder__py=PYTHON % ("", '"In Assam."'))
        ending = await talk.play(accept_changes=True)
        assert _result(ending) == "Tea grows in Assam, I am told."
        statuses = {name: task.status for name, task in ending.state.tasks.items() if ":" in name}
        assert statuses == {"work/lead:finder": "retired", "work/lead:finder.2": "completed"}


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("agent:fnider", "there is no agent `fnider` for the tool `agent:fnider`; did you mean `finder`"),
        ("agent:lead", "also not of one it calls: `lead` → `lead`"),
        ("agent:finder, tools.py:finder", "two tools would be called `finder`"),
    ],
)
async def test_who_cannot_be_a_tool_is_a_mistake(open_with: Opener, tools: str, said: str) -> None:
    async with open_with(_script()) as talk:
        _write(talk, tools=tools)
        talk.write(tools__py='def finder() -> str:\n    """Find."""\n    return ""\n')
        with pytest.raises(BadWorkflow, match=said):
            await talk.play()


async def test_agents_that_call_one_another_are_a_mistake(open_with: Opener) -> None:
    async with open_with(_script()) as talk:
        _write(talk, finder='{path: finder.md, tools: ["agent:lead"]}')
        with pytest.raises(BadWorkflow, match=r"flow\.yaml:\d+:\d+: an agent cannot be a tool of its own"):
            await talk.play()
