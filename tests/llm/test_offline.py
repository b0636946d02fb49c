"""The model of this process in a conversation: its answers count as whole, and it can judge."""

from pathlib import Path

import pytest

from orchestra import Orchestra
from orchestra.codec.values import thaw
from tests.llm.talk import calls, texts

pytestmark = pytest.mark.anyio

FLOW = """
name: talk
agents: {talk: talk.md}
phases: {work: {specialists: {talk: Do it}}}
"""
AGENT = "---\nmodel: test\ntools: [list_files]\n---\nYou are a clerk.\n"


async def test_the_test_model_is_asked_once_for_each_step(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "talk.md").write_text(AGENT)
    async with Orchestra("memory:", project=tmp_path) as house:
        ending = await house.run(tmp_path / "flow.yaml")
    assert ending.kind == "completed", ending.state.failure
    assert [(role, status) for role, status, _ in texts(ending.state)] == [
        ("system", "complete"),
        ("user", "complete"),
        ("assistant", "complete"),
        ("assistant", "complete"),
    ]
    assert calls(ending.state) == [("list_files", "done", [])]
    (task,) = ending.state.tasks.values()
    assert task.result is not None
    assert "Do it" in thaw(task.result)


async def test_an_evaluator_scores_every_criterion(tmp_path: Path) -> None:
    judged = "{specialists: {talk: Do it}, evaluate: {agent: talk, rubric: {truth: 2, style: 1, length: 1}}}"
    (tmp_path / "flow.yaml").write_text(FLOW.replace("{specialists: {talk: Do it}}", judged))
    (tmp_path / "talk.md").write_text(AGENT)
    async with Orchestra("memory:", project=tmp_path) as house:
        ending = await house.run(tmp_path / "flow.yaml")
    assert ending.kind == "completed", ending.state.failure
    (evaluation,) = ending.state.evaluations.values()
    assert [each.criterion for each in evaluation.scores] == ["truth", "style", "length"]
    judged_by = [each for each in ending.state.messages.values() if each.agent == "apollo:talk"]
    kinds = [part.kind for each in judged_by if each.role == "assistant" for part in each.parts]
    assert kinds[-1] == "answer"  # no tool that could be called


async def test_a_rollback_keeps_the_conversation_with_the_result_it_led_to(tmp_path: Path) -> None:
    (tmp_path / "talk.md").write_text(AGENT)
    (tmp_path / "flaky.py").write_text(
        "from pathlib import Path\n\n\n"
        "async def agent(ctx):\n"
        f"    again = Path({str(tmp_path / 'again')!r})\n"
        "    if not again.exists():\n"
        "        again.touch()\n"
        "        raise RuntimeError('once')\n"
        "    return 'whole'\n"
    )
    (tmp_path / "flow.yaml").write_text(
        "name: flow\nagents: {talk: talk.md, flaky: flaky.py}\nphases:\n  work:\n    specialists:\n"
        "      talk: Do it\n      flaky: {task: Fail once, on_failure: [rollback, fail]}\n"
        "policy: {retry: {attempts: 1}}\n"
    )
    async with Orchestra("memory:", project=tmp_path) as house:
        ending = await house.run(tmp_path / "flow.yaml")
    assert ending.kind == "completed", ending.state.failure
    assert ending.state.rollbacks[0].kept == ("work/talk",)
    said = [each for each in ending.state.messages.values() if each.task == "work/talk"]
    asked = ending.state.tasks["work/talk"].attempts, ending.state.metrics.api_calls
    assert [each.role for each in said].count("assistant") == asked[1]
    assert said[-1].status == "complete"
    assert asked[0] == 1
