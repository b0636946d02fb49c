"""The play that ends well: three specialists, a second look, an evaluation that asks for more, a report."""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchmarks.demo import texts
from benchmarks.demo.stage import Stage
from benchmarks.demo.texts import CRITERIA, REPORT, STRUCTURE, STRUCTURE_AGAIN, TESTS_REVISED, WRITER, Part
from orchestra.ids import AgentId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Effect, Issue, Score, Verdict

CHANGE = "Reserve stock inside one transaction"
EVALUATION = "evaluation-1"
APOLLO = Part(
    agent="apollo",
    task="evaluate",
    description="Score the findings by correctness, evidence and clarity.",
    steps=((0.5, "scoring"),),
    words=(),
    result={"summary": "The findings are ready for the author.", "findings": []},
    confidence=0.88,
    tokens=4_400,
)


async def play(stage: Stage) -> RunId:
    """Play the whole review; the id of the run."""
    await stage.begin(CHANGE, "analysis", files=14)
    await analysis(stage)
    await stage.next_phase("evaluation", ["structure", "security", "tests"])
    await evaluation(stage)
    await stage.next_phase("report", ["verdict"])
    await report(stage)
    return await stage.end()


async def analysis(stage: Stage) -> None:
    """Three specialists side by side, then one of them again."""
    parts = (texts.STRUCTURE, texts.SECURITY, texts.TESTS)
    await select(stage, parts)
    await work(stage, parts)
    await second_look(stage)


async def select(stage: Stage, parts: Sequence[Part]) -> None:
    """Atlas chooses the specialists and launches them."""
    await stage.turn(
        stage.decided(
            "agent_selection",
            "Send three specialists: structure, security and tests",
            "The change touches 14 files in three packages and one migration. Documentation is untouched, "
            "so its specialist would have nothing to read.",
            0.92,
            "one generalist for everything",
            "structure and tests only",
        ),
        *(stage.planned(part) for part in parts),
    )
    await stage.turn(*(stage.launched(part) for part in parts))


async def work(stage: Stage, parts: Sequence[Part]) -> None:
    """Specialists make progress in turn, each ending when its steps are done."""
    for number in range(max(len(part.steps) for part in parts) + 1):
        for part in parts:
            if number < len(part.steps):
                await stage.turn(*stage.milestone(part, number), after=5.0)
            elif number == len(part.steps):
                await stage.turn(*stage.completed(part), after=3.0)


async def second_look(stage: Stage) -> None:
    """The confidence of one result is too low, so Atlas has it looked at again."""
    await stage.turn(
        stage.confident(STRUCTURE.confidence),
        stage.decided(
            "workflow_adjustment",
            "Mercury structure confidence (0.73) below threshold (0.75)",
            "Two call sites live in generated code that was not read. A second look costs about 4,000 "
            "tokens; a wrong boundary would cost a redesign.",
            0.84,
            "accept the result as it is",
            "ask a person",
            "lower the threshold to 0.70",
        ),
        stage.planned(STRUCTURE_AGAIN),
        stage.launched(STRUCTURE_AGAIN),
    )
    await work(stage, (STRUCTURE_AGAIN,))
    await stage.turn(stage.confident(0.86))


async def evaluation(stage: Stage) -> None:
    """Apollo scores the findings, asks for evidence once, and accepts."""
    await stage.turn(stage.planned(APOLLO), stage.launched(APOLLO, role="apollo"))
    await scored(stage, 1, texts.FIRST_ROUND)
    await stage.turn(stage.verdict(EVALUATION, Verdict(kind="revise", score=0.76, feedback=_ASK)))
    await revision(stage)
    await scored(stage, 2, texts.SECOND_ROUND)
    await accepted(stage, 0.88)


async def accepted(stage: Stage, score: float) -> None:
    """Apollo accepts and is done."""
    verdict = Verdict(kind="accept", score=score, feedback="Ready for the author.")
    await stage.turn(stage.verdict(EVALUATION, verdict), *stage.completed(APOLLO), stage.confident(score))


async def scored(stage: Stage, round: int, scores: Sequence[tuple[float, str]]) -> None:
    """One turn for each criterion of a round."""
    for (criterion, weight), (score, rationale) in zip(CRITERIA, scores, strict=True):
        low = score < 0.7
        issue = Issue(description=rationale, severity="medium", where="tests")
        await stage.turn(
            ev.CriterionScored(
                at=stage.clock.now(),
                evaluation=EVALUATION,
                agent=AgentId("apollo"),
                phase=stage.phase,
                score=Score(criterion=criterion, score=score, weight=weight, rationale=rationale),
                round=round,
                issues=(issue,) if low else (),
                feedback="Name the line and show a failing example. " if low else "",
            ),
            after=4.0,
        )


async def revision(stage: Stage) -> None:
    """The findings go back to a specialist once."""
    await stage.turn(
        stage.decided(
            "revision",
            "Send the test finding back once: evidence scored 0.62, 0.70 is needed",
            "The finding is right, but nobody could act on it: it names a folder and shows no failing "
            "example. One specialist can mend that without touching the others' results.",
            0.9,
            "accept with a remark",
            "run the whole analysis again",
        ),
        stage.planned(TESTS_REVISED),
        stage.launched(TESTS_REVISED),
    )
    await work(stage, (TESTS_REVISED,))


async def report(stage: Stage) -> None:
    """The writer streams the report, the outputs are stored and the review is posted."""
    at = stage.clock.now()
    note = "before the report is written"
    await stage.turn(ev.SnapshotRequested(at=at, why="user_requested", note=note))
    await stage.turn(stage.planned(WRITER), stage.launched(WRITER))
    await stage.turn(*stage.milestone(WRITER, 0))
    await streamed(stage)
    await stage.turn(*stage.milestone(WRITER, 2))
    await delivered(stage)
    await posted(stage)
    await stage.turn(ev.PhaseCompleted(at=stage.clock.now(), phase=stage.phase, deliverables=("review.md",)))
    await stage.turn(
        stage.confident(WRITER.confidence),
        ev.RunEnded(at=stage.clock.now(), outcome="completed", reason="the review was posted"),
    )


async def streamed(stage: Stage) -> None:
    """The report as a message that grows."""
    await stage.turn(
        ev.MessagePosted(
            at=stage.clock.now(),
            message="report",
            role="assistant",
            agent=AgentId(WRITER.agent),
            status="streaming",
            step_number=2,
        ),
        *stage.milestone(WRITER, 1),
    )
    for number, text in enumerate(REPORT, start=1):
        last = number == len(REPORT)
        await stage.turn(
            ev.MessageStreamed(
                at=stage.clock.now(), message="report", text=text, status="complete" if last else "streaming"
            ),
            after=1.0,
        )


async def delivered(stage: Stage) -> None:
    """The outputs and the writer's result."""
    findings = [each for part in (texts.SECURITY, TESTS_REVISED, STRUCTURE) for each in part.findings]
    await stage.turn(
        stage.written("review.md", "".join(REPORT), "text/markdown", WRITER),
        stage.written("findings.json", json.dumps(findings, indent=2), "application/json", WRITER),
        *stage.completed(WRITER),
    )


async def posted(stage: Stage) -> None:
    """The review is posted: an effect on the outside world, recorded before and after."""
    effect = Effect(
        name="post the review",
        task=TaskId(WRITER.task),
        risky=True,
        intent=stage.frozen({"to": "the change under review", "from": "review.md"}),
        intended_at=stage.clock.now(),
    )
    await stage.turn(ev.EffectIntended(at=effect.intended_at, effect="post-review", details=effect))
    outcome = stage.frozen({"comments": 3})
    await stage.turn(
        ev.EffectSettled(at=stage.clock.now(), effect="post-review", status="done", outcome=outcome)
    )


_ASK = "Evidence is thin: name the line and show a failing example for the missing test."
