"""How sure a model says it is, and how many samples agree: what the record says of the answer taken."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.context import Context
from orchestra.agents.llm.roles import SpecialistPlay
from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.errors import BadWorkflow
from orchestra.model.records import Decision
from orchestra.ports.agent import Decided, Judgement, Result
from tests.llm.talk import Talk, open_talk
from tests.unit.agents.support import Recorder, assignment

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
SURE = "confidence: true"


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def says(answer: Any, confidence: float, why: str) -> dict[str, Any]:
    return {"answer": answer, "confidence": confidence, "why": why}


def _told(ending: Ending) -> tuple[Any, float | None, list[Decision]]:
    assert ending.kind == "completed", ending.state.failure
    task = ending.state.tasks["work/talk"]
    assert task.result is not None
    mine = [each for each in ending.state.decisions if each.agent == task.agent]
    return thaw(task.result), task.confidence, mine


async def test_a_model_says_how_sure_it_is_and_why(open_with: Opener) -> None:
    async with open_with([{"output": says("Four.", 0.995, "I counted them.")}]) as talk:
        talk.agent(SURE)
        result, confidence, (decision,) = _told(await talk.play())
        assert (result, confidence) == ("Four.", 0.995)
        assert decision.description == "It says it is 99.5% sure of its answer"
        assert (decision.rationale, decision.confidence) == ("I counted them.", 0.995)


async def test_what_it_says_is_compared_with_the_threshold(open_with: Opener) -> None:
    async with open_with([{"output": says("Four.", 0.4, "A guess.")}]) as talk:
        talk.agent()
        talk.write(
            flow__yaml="""
name: talk
agents:
  clerk: {path: clerk.md, confidence: true}
phases:
  work:
    specialists:
      talk: {agent: clerk, task: "Count.", threshold: 0.8}
    on_low_confidence: [{ask: "Good enough?"}]
"""
        )
        ending = await talk.play()
        assert ending.kind == "waiting"
        (wait,) = ending.state.waits.values()
        assert wait.text == "Good enough? Mercury talk confidence (0.4) below threshold (0.8)."
        assert _told(await talk.play("yes"))[1] == 0.4


async def test_samples_that_all_say_the_same(open_with: Opener) -> None:
    async with open_with([{"output": says("Four.", 0.6, "I counted them.")}]) as talk:
        talk.agent(f"{SURE}, samples: 3")
        result, confidence, (chosen, stated) = _told(await talk.play())
        assert (result, confidence) == ("Four.", 1.0)
        assert chosen.description == "Take the answer that 3 of 3 samples give: Four."
        assert (chosen.confidence, chosen.alternatives) == (1.0, ())
        assert stated.description == "It says it is 60% sure of its answer, the mean of 3 samples"
        assert len(talk.provider.ledger.completed()) == 3


@pytest.mark.parametrize(("options", "asked"), [("samples: 1", 1), ("", 2)])
async def test_samples_in_yaml_go_before_those_of_the_file(
    open_with: Opener, options: str, asked: int
) -> None:
    async with open_with([{"text": "Four."}]) as talk:
        talk.agent(options, matter="samples: 2")
        await talk.play()
        assert len(talk.provider.ledger.completed()) == asked


@pytest.mark.parametrize("option", ["samples: 0", "samples: -1", "compact_at: 0"])
async def test_numbers_that_make_no_sense_are_mistakes(open_with: Opener, option: str) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent(option)
        with pytest.raises(BadWorkflow, match=r"is a whole number from 1 on, not"):
            await talk.play()


# --- which of several answers is taken


async def _conclude(*answers: Any, asks: bool = True) -> tuple[Result | Judgement, list[Decided]]:
    link = Recorder()
    ctx = Context(assignment(), link)
    found = await SpecialistPlay(ctx, None, asks_confidence=asks).conclude(answers)
    return found, [each for each in link.reports if isinstance(each, Decided)]


async def test_the_reason_is_that_of_the_answer_which_is_taken() -> None:
    found, (chosen, stated) = await _conclude(
        says("four", 0.5, "one by one"), says("five", 0.9, "at a glance"), says("four ", 0.7, "twice")
    )
    assert found == Result(output="four", confidence=2 / 3)
    assert chosen.description == "Take the answer that 2 of 3 samples give: four"
    assert (chosen.confidence, chosen.alternatives) == (2 / 3, ("five",))
    assert stated.rationale == "twice", "of those that gave this answer"
    assert stated.confidence == pytest.approx(0.6)


async def test_of_answers_that_are_given_as_often_the_first_is_taken() -> None:
    found, (chosen,) = await _conclude({"n": 2}, {"n": 1}, asks=False)
    assert found == Result(output={"n": 2}, confidence=0.5)
    assert chosen.alternatives == ('{"n": 1}',)
