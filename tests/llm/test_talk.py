"""Conversations with a scripted provider: what is recorded, what is asked again, what is never repeated."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.errors import BadOrder, BadWorkflow
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

def fails(why: str) -> str:
    """Fail."""
    raise ValueError(why)

def big(size: int) -> str:
    """Say much."""
    return "x" * size

async def hangs() -> str:
    """Never end."""
    import anyio
    await anyio.sleep_forever()
'''
SCHEMA = "output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}"
NOTE = {"calls": [{"name": "note", "arguments": {"text": "one"}}]}


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _result(ending: Ending) -> Any:
    assert ending.kind == "completed", ending.state.failure
    value = ending.state.tasks["work/talk"].result
    assert value is not None
    return thaw(value)


def _noted(talk: Talk) -> list[str]:
    file = talk.folder / "noted"
    return file.read_text().splitlines() if file.exists() else []


async def test_a_conversation_is_on_the_record(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "All is noted."}]) as talk:
        talk.agent(tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "All is noted."
        assert texts(ending.state) == [
            ("system", "complete", "You are a clerk."),
            ("user", "complete", "Do what is to be done."),
            ("assistant", "complete", ""),
            ("assistant", "complete", "All is noted."),
        ]
        assert calls(ending.state) == [("note", "done", "noted one")]
        usage = talk.provider.ledger.usage()
        metrics = ending.state.metrics
        assert (metrics.tokens_in, metrics.tokens_out) == (usage.input, usage.output)
        assert metrics.api_calls == 2


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "rate_limit", "retry_after_ms": 1},
        {"kind": "server_error", "retry_after_ms": 1},
        {"kind": "overloaded", "retry_after_ms": 1},
    ],
    ids=lambda fault: str(fault["kind"]),
)
async def test_a_provider_that_is_down_is_asked_again(open_with: Opener, fault: Any) -> None:
    async with open_with([{"text": "There.", "faults": [fault]}]) as talk:
        talk.agent()
        ending = await talk.play()
        assert _result(ending) == "There."
        assert [status for _, status, _ in texts(ending.state)][2:] == ["error", "complete"]
        (wait,) = ending.state.waits.values()
        assert (wait.kind, wait.status) == ("rate_limit", "closed")
        assert ending.state.metrics.api_calls == 1, "only answers are counted"


async def test_a_stream_that_breaks_off_is_kept_and_asked_again(
    open_with: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    said = "a text of several pieces, which is long enough"
    async with open_with([{"text": said, "faults": [{"kind": "drop", "after": 3}]}]) as talk:
        talk.agent()
        ending = await talk.play()
        assert _result(ending) == said
        (_, _, (_, status, partial_text), (_, last, whole)) = texts(ending.state)
        assert (status, last, whole) == ("error", "complete", said)
        assert partial_text
        assert said.startswith(partial_text)


async def test_a_fallback_model_takes_over_on_the_record(open_with: Opener) -> None:
    fault = {"kind": "no_model", "times": 1}
    async with open_with([{"text": "From the other.", "faults": [fault]}]) as talk:
        talk.agent("model: [openai-chat:gone, openai-chat:there]")
        ending = await talk.play()
        assert _result(ending) == "From the other."
        assert decisions(ending.state).count("model_fallback") == 1
        assert [each.model for each in ending.state.messages.values()][2:] == [
            "openai-chat:gone",
            "openai-chat:there",
        ]


async def test_without_another_model_the_failure_says_what_it_was(open_with: Opener) -> None:
    async with open_with([{"text": "never", "faults": [{"kind": "context_length", "times": None}]}]) as talk:
        talk.agent()
        ending = await talk.play()
        assert ending.kind == "failed"
        failure = ending.state.tasks["work/talk"].failure
        assert failure is not None
        assert failure.error == "ContextOverflow"
        assert not failure.recoverable


# --- tools


@pytest.mark.parametrize(
    ("call", "options", "told"),
    [
        ({"name": "fails", "arguments": {"why": "no"}}, "", "ValueError: no"),
        ({"name": "hangs", "arguments": {}}, "tool_timeout: 0.01", "hangs took longer than 0.01 s"),
    ],
    ids=["raises", "never ends"],
)
async def test_a_tool_that_fails_is_told_to_the_model(
    open_with: Opener, call: Any, options: str, told: str
) -> None:
    async with open_with([{"calls": [call]}, {"text": "I see."}]) as talk:
        talk.agent(options, tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "I see."
        assert calls(ending.state) == [(call["name"], "failed", told)]


async def test_what_a_tool_says_too_much_is_cut(open_with: Opener) -> None:
    call = {"name": "big", "arguments": {"size": 1_000_000}}
    async with open_with([{"calls": [call]}, {"text": "So much."}]) as talk:
        talk.agent(tools=TOOLS)
        ((_, _, result),) = calls((await talk.play()).state)
        assert len(result) < 51_000
        assert result.endswith("[cut here: of 1,000,000 characters 50,000 are shown]")


async def test_a_tool_that_does_not_exist_is_told_to_the_model(open_with: Opener) -> None:
    async with open_with([{"calls": [{"name": "nothing", "arguments": {}}]}, {"text": "Then not."}]) as talk:
        talk.agent(tools=TOOLS)
        assert _result(await talk.play()) == "Then not."


# --- approvals


async def test_a_risky_tool_runs_only_once_it_is_allowed(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done."}]) as talk:
        talk.agent("risky: note", tools=TOOLS)
        ending = await talk.play()
        assert ending.kind == "waiting"
        assert _noted(talk) == []
        (wait,) = ending.state.waits.values()
        assert wait.text == "May talk call note?"
        assert wait.details is not None
        assert thaw(wait.details)["arguments"] == {"text": "one"}
        for _ in range(3):  # whoever resumes it does not run the tool
            assert (await talk.play()).kind == "waiting"
        assert _noted(talk) == []
        ending = await talk.play("approve")
        assert (_result(ending), _noted(talk)) == ("Done.", ["one"])
        assert len(talk.provider.ledger.completed()) == 2


@pytest.mark.parametrize(
    "answer", ["yes please", {"choice": "yes"}, {"choice": "approve", "tool": "x"}, True, None]
)
async def test_what_is_not_plainly_an_answer_is_none(open_with: Opener, answer: Any) -> None:
    async with open_with([NOTE, {"text": "never"}]) as talk:
        talk.agent("risky: note", tools=TOOLS)
        await talk.play()
        with pytest.raises(BadOrder, match="the choices are approve, refuse"):
            await talk.play(answer)
        assert _noted(talk) == []


@pytest.mark.parametrize("answer", ["refuse", {"choice": "refuse", "arguments": {"text": "two"}}])
async def test_a_call_that_is_refused_is_told_to_the_model(open_with: Opener, answer: Any) -> None:
    async with open_with([NOTE, {"text": "As you like."}]) as talk:
        talk.agent("risky: note", tools=TOOLS)
        await talk.play()
        ending = await talk.play(answer)
        assert (_result(ending), _noted(talk)) == ("As you like.", [])
        assert calls(ending.state) == [("note", "refused", "a person refused this call")]


async def test_a_person_may_change_what_a_tool_is_called_with(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done."}]) as talk:
        talk.agent("risky: note", tools=TOOLS)
        await talk.play()
        ending = await talk.play({"choice": "approve", "arguments": {"text": "two"}})
        assert (_result(ending), _noted(talk)) == ("Done.", ["two"])
        assert calls(ending.state) == [("note", "done", "noted two")]


# --- budgets


async def test_a_limit_is_looked_at_before_the_request(open_with: Opener) -> None:
    async with open_with([NOTE, NOTE, NOTE, {"text": "never"}]) as talk:
        talk.agent("limits: {requests: 2}", tools=TOOLS)
        ending = await talk.play()
        assert ending.kind == "failed"
        assert decisions(ending.state).count("budget") == 1
        assert len(talk.provider.ledger.begun()) == 2


async def test_a_person_may_let_it_go_on_over_a_limit(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done."}]) as talk:
        talk.agent("limits: {requests: 1, on_limit: ask}", tools=TOOLS)
        assert (await talk.play()).kind == "waiting"
        assert _result(await talk.play("proceed")) == "Done."


# --- a changed prompt


async def test_a_changed_prompt_is_noticed_when_the_run_goes_on(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done."}]) as talk:
        talk.agent("risky: note", tools=TOOLS)
        await talk.play()
        talk.agent("risky: note", tools=TOOLS, body="You are another clerk.")
        ending = await talk.play("approve", accept_changes=True)
        assert _result(ending) == "Done."
        assert decisions(ending.state).count("conversation_changed") == 1


# --- secrets


async def test_a_key_in_a_tools_result_reaches_neither_model_nor_record(open_with: Opener) -> None:
    leak = f'def leak() -> str:\n    """Leak."""\n    return "the key is {KEY}"\n'
    async with open_with([{"calls": [{"name": "leak", "arguments": {}}]}, {"text": f"It is {KEY}."}]) as talk:
        talk.agent(tools=leak)
        ending = await talk.play()
        assert KEY not in str(_result(ending))
        ((_, _, result),) = calls(ending.state)
        assert KEY not in result
        assert not any(KEY in text for _, _, text in texts(ending.state))


# --- cassettes


async def test_answers_that_were_recorded_are_played_for_nothing(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done."}]) as talk:
        talk.agent(tools=TOOLS)
        cassette = talk.folder / "answers.jsonl"
        first = await talk.play(record=cassette)
        again = Talk(folder=talk.folder, provider=talk.provider)
        ending = await again.play(replay=cassette)
        assert _result(ending) == _result(first) == "Done."
        assert len(talk.provider.ledger.begun()) == 2, "nobody was asked the second time"
        assert ending.state.metrics.cost_micros == 0
        assert KEY not in cassette.read_text()


async def test_a_prompt_that_was_not_recorded_says_what_changed(open_with: Opener) -> None:
    async with open_with([{"text": "Done."}]) as talk:
        talk.agent()
        cassette = talk.folder / "answers.jsonl"
        await talk.play(record=cassette)
        talk.agent(body="You are another clerk.")
        ending = await Talk(folder=talk.folder, provider=talk.provider).play(replay=cassette)
        assert ending.kind == "failed"
        failure = ending.state.tasks["work/talk"].failure
        assert failure is not None
        assert failure.error == "NotOnCassette"
        assert "You are another clerk." in failure.message


# --- rounds


async def test_in_another_round_the_model_sees_what_it_said(open_with: Opener) -> None:
    async with open_with([{"text": "A draft."}, {"text": "Better."}]) as talk:
        talk.agent()
        talk.write(
            flow__yaml="""
name: talk
agents:
  clerk: {path: clerk.md}
  judge: judge.py
phases:
  work:
    specialists:
      talk: {agent: clerk, task: "Do what is to be done."}
    evaluate: {agent: judge, rubric: {depth: 1}, revise: 1}
""",
            judge__py="""
async def agent(ctx):
    await ctx.score("depth", 0.1 if ctx.round == 1 else 0.9, feedback="Deeper.")
""",
        )
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        result = ending.state.tasks["work/talk~2"].result
        assert result is not None
        assert thaw(result) == "Better.", "the provider heard its first answer: this is its second turn"


async def test_money_does_not_bound_a_model_without_a_price(open_with: Opener) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent("limits: {cost: 1.0}")
        with pytest.raises(BadWorkflow, match="has no price that is known: set `tokens` beside `cost`"):
            await talk.play()
        talk.agent("limits: {cost: 1.0, tokens: 100000}")
        assert _result(await talk.play()) == "never"


# --- names of risky tools


@pytest.mark.parametrize("risky", ["Write", "write_file", '"*"', "'*'"])
async def test_a_risky_tool_may_be_named_as_it_is_in_the_list(open_with: Opener, risky: str) -> None:
    call = {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "a"}}]}
    async with open_with([call, {"text": "Done."}]) as talk:
        talk.agent(f"risky: {risky}", matter="tools: Write")
        assert (await talk.play()).kind == "waiting", "it must not be run without an approval"


async def test_a_module_may_be_risky(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done."}]) as talk:
        talk.agent("risky: tools.py", tools=TOOLS)
        assert (await talk.play()).kind == "waiting"
        assert _noted(talk) == []


@pytest.mark.parametrize("option", ["limits: {on_limit: sotp}", "on_unknown: again"])
async def test_a_course_that_there_is_not_is_a_mistake(open_with: Opener, option: str) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent(option)
        with pytest.raises(BadWorkflow):
            await talk.play()


async def test_a_risky_tool_that_there_is_not_is_a_mistake(open_with: Opener) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent("risky: noet", tools=TOOLS)
        with pytest.raises(BadWorkflow, match="no tool of this agent is called `noet`; did you mean `note`"):
            await talk.play()


async def test_a_module_of_tools_that_is_not_python_is_a_mistake(open_with: Opener) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent(tools="def (")
        with pytest.raises(BadWorkflow, match=r"tools\.py:1"):
            await talk.play()


async def test_an_answer_of_the_wrong_shape_is_asked_for_again(open_with: Opener) -> None:
    async with open_with([{"output": {"n": "none"}}, {"output": {"n": 1}}]) as talk:
        talk.agent(matter=SCHEMA)
        assert _result(await talk.play()) == {"n": 1}


async def test_a_model_that_never_fits_is_not_played_from_the_record(open_with: Opener) -> None:
    async with open_with([{"output": {"n": "none"}, "repeat": True}]) as talk:
        talk.agent(matter=SCHEMA, attempts=2)
        ending = await talk.play()
        assert ending.kind == "failed"
        failure = ending.state.tasks["work/talk"].failure
        assert failure is not None
        assert failure.error == "UnusableAnswer"
        assert len(talk.provider.ledger.completed()) == 4, "the last of three was asked again, not replayed"
