"""The plays in which something happens: a failure and a rollback, a question to a person, a fork."""

from __future__ import annotations

from benchmarks.demo import review, texts
from benchmarks.demo.stage import Stage
from benchmarks.demo.texts import OFFLINE_SECURITY, SECURITY, STRUCTURE, TESTS
from orchestra.ids import AgentId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Blocker, Failure
from orchestra.ports.store import RowQuery

STACK = """Traceback (most recent call last):
  File "agents/security.py", line 88, in run
    advisories = await scanner.query(packages)
  File "agents/scanner.py", line 41, in query
    raise TimeoutError("the advisory server did not answer within 120 s")
TimeoutError: the advisory server did not answer within 120 s
"""


async def rolled_back(stage: Stage) -> RunId:
    """A specialist fails twice, the run fails, goes back to its last good snapshot and ends well."""
    await stage.begin(review.CHANGE, "analysis", files=14)
    await review.select(stage, (STRUCTURE, SECURITY, TESTS))
    await review.work(stage, (STRUCTURE, TESTS))
    await _fails(stage, attempt=1, final=False)
    await stage.turn(stage.launched(SECURITY, attempt=2))
    await stage.turn(*stage.milestone(SECURITY, 0), after=120.0)
    failure = await _fails(stage, attempt=2, final=True)
    reason = "security could not be judged"
    await stage.turn(
        ev.RunEnded(at=stage.clock.now(), outcome="failed", reason=reason, failure=failure), after=40.0
    )
    await _goes_back(stage)
    await review.work(stage, (OFFLINE_SECURITY,))
    await stage.turn(stage.confident(0.78))
    await stage.next_phase("report", ["structure", "security", "tests"])
    await review.report(stage)
    return await stage.end()


async def waiting(stage: Stage) -> RunId:
    """A specialist needs an answer that only a person can give; the run is left waiting for it."""
    await stage.begin(f"{review.CHANGE}, and drop the old movement table", "analysis", files=15)
    await review.select(stage, (STRUCTURE, SECURITY, TESTS))
    for number in range(2):
        for part in (STRUCTURE, SECURITY, TESTS):
            await stage.turn(*stage.milestone(part, number), after=5.0)
    await stage.turn(*stage.completed(TESTS))
    await _asks(stage)
    return await stage.end()


async def forked(stage: Stage, base: RunId) -> RunId:
    """What if the evidence had been accepted: a fork of a finished run, before its first verdict."""
    seq = _before_verdict(stage, base)
    decision = stage.decided(
        "acceptance",
        "Accept the findings with the evidence they have",
        "To see what the review would have looked like without the extra round: it saves about 5,000 "
        "tokens and leaves one finding without a line.",
        0.7,
        "send the finding back, as the first run did",
    )
    stage.active = await stage.manager.fork(
        base, seq, stage.new_run(), reason="no second round", more=(decision,)
    )
    phase = stage.active.state.cursor.phase
    assert phase is not None, "BUG: the fork begins inside a phase"
    stage.phase = phase
    await stage.turn(stage.launched(review.APOLLO, attempt=2, role="apollo"))
    await review.accepted(stage, 0.76)
    await stage.next_phase("report", ["verdict"])
    await review.report(stage)
    return await stage.end()


async def _fails(stage: Stage, *, attempt: int, final: bool) -> Failure:
    at = stage.clock.now()
    failure = Failure(
        error="TimeoutError",
        message="the advisory server did not answer within 120 s",
        at=at,
        stack=STACK,
        recoverable=not final,
        details=stage.frozen({"attempt": attempt, "packages": 212, "waited_seconds": 120}),
    )
    failed = ev.TaskFailed(at=at, task=TaskId(SECURITY.task), failure=failure, final=final)
    choice = "Stop: the second attempt failed like the first" if final else "Try security once more in 30 s"
    why = (
        "Without an answer about known advisories the review would be half a review."
        if final
        else "The server answered yesterday; a time-out is usually over by the next attempt."
    )
    await stage.turn(
        failed, stage.decided("retry", choice, why, 0.8, "skip security", "ask a person"), after=30.0
    )
    return failure


async def _goes_back(stage: Stage) -> None:
    """Back to the last phase boundary without a failure; finished results are kept."""
    stage.clock.forward(60)
    decision = stage.decided(
        "rollback",
        "Go back to the start of the analysis, keep what is done, use the offline specialist",
        "Structure and tests do not depend on the advisory server. The offline specialist knows "
        "advisories up to last month, which is enough for a change without new dependencies.",
        0.81,
        "wait for the server",
        "skip security",
    )
    await stage.manager.rollback(
        stage.active,
        reason="the advisory server stays unreachable",
        kept=(TaskId(STRUCTURE.task), TaskId(TESTS.task)),
        confidence_factor=0.9,
        more=(decision,),
    )
    kept = [*stage.shared(STRUCTURE), *stage.shared(TESTS)]
    await stage.turn(*kept, stage.planned(OFFLINE_SECURITY), stage.launched(OFFLINE_SECURITY))


async def _asks(stage: Stage) -> None:
    at = stage.clock.now()
    blocker = Blocker(by="a person", reason="whether the table is evidence for auditors", at=at)
    await stage.turn(
        ev.MilestoneReached(
            at=at, agent=AgentId(SECURITY.agent), blockers=(blocker,), step="waiting for an answer"
        ),
        ev.WaitOpened(
            at=at,
            wait="keep-stock-moves",
            waits_for="question",
            text="The change drops the table stock_moves. Is it the only record of stock movements "
            "that has to be kept for auditors?",
            agent=AgentId(SECURITY.agent),
            task=TaskId(SECURITY.task),
            choices=("Yes, keep it", "No, the ledger has them all", "I do not know"),
            details=stage.frozen({"table": "stock_moves", "rows": 1_284_003, "oldest": "2019-02-11"}),
        ),
        stage.decided(
            "escalation",
            "Ask a person before the table is judged safe to drop",
            "Whether a record has to be kept is not written anywhere in the repository, and a wrong guess "
            "cannot be undone.",
            0.95,
            "assume that the ledger is complete",
            "reject the change",
        ),
    )


def _before_verdict(stage: Stage, run: RunId) -> int:
    """The last snapshot before the first verdict of a run."""
    rows = stage.store.rows(RowQuery(run=run, triggers=("evaluation_completed",), content=False))
    assert len(rows) > len(texts.CRITERIA), "BUG: the run has no verdict to fork before"
    return rows[len(texts.CRITERIA)].seq - 1
