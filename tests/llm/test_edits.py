"""A conversation is cut and changed by hand: what was said before stays, what follows is asked anew."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.cli.dispatch import run_command_line
from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.errors import BadOrder
from orchestra.ids import run_id
from orchestra.model.state import State
from tests.fault.support.work import manager_of
from tests.llm.provider import provider_in_thread
from tests.llm.talk import KEY, Talk, calls, decisions, open_talk, texts

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
TOOLS = '''
from pathlib import Path

def note(text: str) -> str:
    """Note something."""
    with open(Path(__file__).parent / "noted", "a") as file:
        file.write(text + "\\n")
    return "noted " + text
'''
NOTE = {"calls": [{"name": "note", "arguments": {"text": "one"}}]}
SCRIPT = [NOTE, [{"text": "It is two.", "when": "two"}, {"text": "It is one."}]]
USER, ASKS, ANSWERS = 'messages["work/talk#1"]', 'messages["work/talk#2"]', 'messages["work/talk#3"]'


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


async def _fork(talk: Talk, at: int, **values: Any) -> Ending:
    """Fork the run at a snapshot, with something set, and play the fork."""
    async with Orchestra(talk.store, project=talk.folder) as house:
        name = await house.fork("talk", at, values=values)
        return await house.resume(name)


def _states(talk: Talk) -> list[State]:
    """The state at every snapshot of the run."""
    archive = manager_of(talk.store).archive
    run = run_id("talk")
    return [archive.snapshot(archive.row(run, n)).state for n in range(archive.newest(run).seq + 1)]


def _at(talk: Talk, holds: Callable[[State], bool]) -> int:
    """The first snapshot at which something holds."""
    return next(number for number, state in enumerate(_states(talk)) if holds(state))


def _noted(talk: Talk) -> list[str]:
    file = talk.folder / "noted"
    return file.read_text().splitlines() if file.exists() else []


def _result(ending: Ending) -> Any:
    assert ending.kind == "completed", ending.state.failure
    value = ending.state.tasks["work/talk"].result
    assert value is not None
    return thaw(value)


def _is_noted(state: State) -> bool:
    return any(each.status == "done" for each in state.tool_calls.values())


def _call(state: State) -> str:
    (name,) = state.tool_calls
    return name


async def test_a_tools_result_is_set(open_with: Opener) -> None:
    """The model hears the other result; the tool does not run again, nor is the first answer paid again."""
    async with open_with(SCRIPT) as talk:
        talk.agent(tools=TOOLS)
        first = await talk.play()
        at = _at(talk, _is_noted)
        path = f'tool_calls["{_call(first.state)}"].result'
        ending = await _fork(talk, at, **{path: "noted two"})
        assert (_result(first), _result(ending)) == ("It is one.", "It is two.")
        assert calls(ending.state) == [("note", "done", "noted two")]
        assert _noted(talk) == ["one"]
        assert len(talk.provider.ledger.completed(step=0)) == 1
        assert len(talk.provider.ledger.completed(step=1)) == 2


async def test_a_failed_call_may_have_succeeded_and_the_other_way_round(open_with: Opener) -> None:
    async with open_with(SCRIPT) as talk:
        talk.agent(tools=TOOLS)
        first = await talk.play()
        at = _at(talk, _is_noted)
        path = f'tool_calls["{_call(first.state)}"].error'
        ending = await _fork(talk, at, **{path: "there are two of it"})
        assert calls(ending.state) == [("note", "failed", "there are two of it")]
        assert _result(ending) == "It is two."


async def test_what_a_tool_is_called_with_is_set(open_with: Opener) -> None:
    """The call runs with what stands there now, also where the other one had run, and is asked about anew."""
    async with open_with(SCRIPT) as talk:
        talk.agent("risky: note", tools=TOOLS)
        assert (await talk.play()).kind == "waiting"
        assert _result(await talk.play("approve")) == "It is one."
        at = _at(talk, _is_noted)
        async with Orchestra(talk.store, project=talk.folder) as house:
            path = f"{ASKS}.parts[0].data.arguments"
            name = await house.fork("talk", at, values={path: {"text": "two"}})
            ending = await house.resume(name)
            assert (ending.kind, _noted(talk)) == ("waiting", ["one"]), "the approval was for something else"
            (wait,) = [each for each in ending.state.waits.values() if each.status == "open"]
            assert wait.details is not None
            assert thaw(wait.details)["arguments"] == {"text": "two"}
            await house.answer(name, "approve")
            ending = await house.resume(name)
        assert (_result(ending), _noted(talk)) == ("It is two.", ["one", "two"])


async def test_a_question_about_a_call_that_is_no_more_is_taken_back(open_with: Opener) -> None:
    async with open_with(SCRIPT) as talk:
        talk.agent("risky: note", tools=TOOLS)
        ending = await talk.play()
        at = _at(talk, lambda state: any(each.status == "open" for each in state.waits.values()))
        async with Orchestra(talk.store, project=talk.folder) as house:
            path = f"{ASKS}.parts[0].data.arguments"
            name = await house.fork("talk", at, values={path: {"text": "two"}})
            assert (await house.resume(name)).kind == "waiting"
            await house.answer(name, "approve")  # there is only one question
            ending = await house.resume(name)
        assert (_result(ending), _noted(talk)) == ("It is two.", ["two"])
        assert all(each.status == "closed" for each in ending.state.waits.values())


async def test_an_answer_of_the_model_is_set(open_with: Opener) -> None:
    """In the place of a call stands a text: the run ends with it, and nobody is asked."""
    async with open_with(SCRIPT) as talk:
        talk.agent("risky: note", tools=TOOLS)
        await talk.play()
        ending = await _fork(
            talk, _at(talk, lambda s: bool(s.waits)), **{f"{ASKS}.text": "There is nothing to note."}
        )
        assert (_result(ending), _noted(talk)) == ("There is nothing to note.", [])
        assert len(talk.provider.ledger.begun()) == 1


async def test_what_the_model_is_told_is_set(open_with: Opener) -> None:
    """The prompt and the instructions; that the conversation takes another way is on the record."""
    script = [[{"text": "Two.", "when": "Say two"}, NOTE], {"text": "One."}]
    async with open_with(script) as talk:
        talk.agent(tools=TOOLS)
        assert _result(await talk.play()) == "One."
        at = _at(talk, _is_noted)
        values = {f"{USER}.text": "Say two.", 'messages["work/talk#0"].parts[0].text': "You are terse."}
        ending = await _fork(talk, at, **values)
        assert _result(ending) == "Two."
        assert decisions(ending.state).count("conversation_changed") == 1
        asked = talk.provider.ledger.begun()[-1]["body"]["messages"]
        assert [each["content"] for each in asked] == ["You are terse.", "Say two."]
        said = [text for role, _, text in texts(ending.state) if role in ("system", "user")]
        assert said == ["You are terse.", "Say two."], "each is said once"


async def test_a_message_of_somebody_who_is_done_is_set(open_with: Opener) -> None:
    """The assignment is gone through again, at the price of what follows from the change."""
    async with open_with(SCRIPT) as talk:
        talk.agent(tools=TOOLS)
        flow = (talk.folder / "flow.yaml").read_text()
        flow = flow.replace("\nphases", "\n  idle: idle.py\nphases")
        more = "\n      more: {agent: idle, task: More, needs: [talk]}\npolicy"
        talk.write(flow__yaml=flow.replace("\npolicy", more))
        talk.write(idle__py="def agent(ctx):\n    return ctx.needs\n")
        first = await talk.play()
        at = _at(talk, lambda state: [each.status for each in state.tasks.values()].count("completed") > 0)
        ending = await _fork(talk, at, **{f'tool_calls["{_call(first.state)}"].result': "noted two"})
        assert _result(ending) == "It is two."
        follows = ending.state.tasks["work/more"].result
        assert follows is not None
        assert thaw(follows) == {"talk": "It is two."}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ('messages["work/talk#9"].text', "x", "there is no message 'work/talk#9'"),
        ('tool_calls["work/talk#x"].result', "x", "there is no tool call 'work/talk#x'"),
        ("messages[0].text", "x", "there is no message 0"),
        ('messages["work/talk#1', "x", "is no path"),
        (f"{ASKS}.text", 5, "of a message can be set"),
        (f"{ASKS}.status", "error", "of a message can be set"),
        (f"{ASKS}.parts[7].text", "x", "of a message can be set"),
        (f"{ASKS}.parts[0].text", "x", "is no text but tool_call"),
        (f"{ASKS}.parts[0].data.arguments", "x", "of a message can be set"),
    ],
)
async def test_what_cannot_be_set(open_with: Opener, path: str, value: Any, words: str) -> None:
    async with open_with(SCRIPT) as talk:
        talk.agent(tools=TOOLS)
        await talk.play()
        with pytest.raises(BadOrder, match=words.replace("[", r"\[")):
            await _fork(talk, _at(talk, _is_noted), **{path: value})


async def test_a_fork_at_any_message_ends_as_the_run_did(open_with: Opener) -> None:
    """Cut anywhere, also between a call and its result or in a stream, no history is bricked."""
    two = {"calls": [{"name": "note", "arguments": {"text": each}} for each in ("one", "two")]}
    async with open_with([two, {"text": "Now the last.", **NOTE}, {"text": "All."}]) as talk:
        talk.agent(tools=TOOLS)
        await talk.play()
        for at, state in enumerate(_states(talk)):
            if not state.messages or state.status == "completed":
                continue
            forked = await _fork(talk, at)
            assert _result(forked) == "All.", at
            assert [status for _, status, _ in calls(forked.state)] == ["done"] * 3


async def test_a_run_goes_back_to_any_message(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Now the last.", **NOTE}, {"text": "All."}]) as talk:
        talk.agent("risky: note", tools=TOOLS)
        assert (await talk.play()).kind == "waiting"
        assert (await talk.play("approve")).kind == "waiting"
        async with Orchestra(talk.store, project=talk.folder) as house:
            for at in range(1, len(_states(talk))):
                await house.rollback("talk", to=at)
                ending = await house.resume("talk")
                while not _is_noted(ending.state):  # it went back to before the end of the first call
                    (wait,) = [each for each in ending.state.waits.values() if each.status == "open"]
                    await house.answer("talk", wait.choices[0])
                    ending = await house.resume("talk")
                assert ending.kind == "waiting", at
                assert [status for _, status, _ in calls(ending.state)] == ["done", "waiting"], at
            await house.answer("talk", "approve")
            assert _result(await house.resume("talk")) == "All."


SAYS = [[{"text": "Two = 2.", "when": "a=two"}, {"text": "One."}]]


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ORCHESTRA_STORE", f"sqlite:{tmp_path}/talk.db")
    monkeypatch.chdir(tmp_path)

    def terminal(*arguments: str) -> str:
        assert run_command_line(arguments) == 0, capsys.readouterr()
        return capsys.readouterr().out

    with provider_in_thread(SAYS) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("chat"))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        Talk(folder=tmp_path, provider=provider).agent()  # type: ignore[arg-type]
        terminal("run", "flow.yaml", "--run-id", "talk", "--quiet")
        told = json.loads(terminal("chat", "talk", "--json"))["messages"]
        value = f'{USER}.text="a=two"'
        terminal("fork", told[1]["snapshot"], "--id", "other", "--run", "--quiet", "--set", value)
    assert "Two = 2." in terminal("show", "other", "tasks.work/talk.result")
    assert USER in terminal("log", "other")
