"""The run that the golden file pins: small, and with something of everything that is stored."""

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.address import Addresser
from orchestra.codec.values import contribution, freeze
from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Decision, Environment, Failure, Output, Part, Score, Verdict
from orchestra.model.state import WorkflowRef
from orchestra.model.value import Value
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock

RUN, FORK = RunId("golden_20261115_143022_k7"), RunId("golden-fork")
FORKED_AT = 9
FIND, ATLAS, STRUCTURE = PhaseId("find"), AgentId("atlas"), AgentId("structure")
_ADDRESSER = Addresser()


def _frozen(value: object) -> Value:
    return freeze(value, _ADDRESSER)


async def record() -> MemoryStore:
    """Record the golden run and its fork into a fresh store."""
    store, clock = MemoryStore(), FakeClock(step=1_000)
    async with CheckpointManager(store, clock=FakeClock(), owner="golden") as manager:
        started = ev.RunStarted(
            at=clock.now(),
            run=RUN,
            workflow=WorkflowRef(name="golden", digest=Digest(bytes(range(32)))),
            inputs=_frozen({"path": ".", "größe": [1, 2.5, None, True, b"\x00", (1, "ä"), {1, 2}]}),
            thresholds=(0.5, 0.75),
            environment=Environment(version="0.1.0", python="3.11", platform="linux", working_dir="/project"),
        )
        active = await manager.begin(started, ev.PhaseStarted(at=clock.now(), phase=FIND))
        await _work(manager, active, clock)
        await manager.rollback(active, 6, reason="the second result was wrong", confidence_factor=0.9)
        ended = ev.RunEnded(at=clock.now(), outcome="completed")
        await manager.record(active, [ev.PhaseCompleted(at=clock.now(), phase=FIND), ended])
        await manager.fork(RUN, FORKED_AT, FORK, reason="another way")
    return store


async def _work(manager: CheckpointManager, active: ActiveRun, clock: FakeClock) -> None:
    for turn in (*_opening(clock.now()), *(_task(number, clock.now()) for number in range(40))):
        await manager.record(active, turn)


def _opening(at: Instant) -> list[list[ev.Event]]:
    decision = Decision(
        at=at,
        agent=ATLAS,
        kind="workflow_adjustment",
        description="Spawned an additional specialist",
        rationale="Mercury structure confidence (0.73) below threshold (0.75)",
        confidence=0.88,
        alternatives=("request_human_review", "proceed_with_low_confidence"),
    )
    large = _frozen({"text": "word " * 10_000})
    output = Output(digest=Digest(b"o" * 32), media_type="text/markdown", size=12, agent=STRUCTURE, at=at)
    first = TaskId("find/1/structure")
    failure = Failure(error="ValueError", message="no module", at=at, stack="…")
    return [
        [
            ev.TaskPlanned(at=at, task=first, agent=STRUCTURE, phase=FIND, description="Measure ."),
            ev.AgentLaunched(at=at, agent=STRUCTURE, task=first, model="small", max_steps=10),
        ],
        [ev.TextEmitted(at=at, agent=STRUCTURE, text="Reading "), ev.DecisionMade(at=at, decision=decision)],
        [
            ev.TextEmitted(at=at, agent=STRUCTURE, text="files"),
            ev.MilestoneReached(at=at, agent=STRUCTURE, progress=0.5, step="parse", private=_frozen([1, 2])),
            ev.MessagePosted(
                at=at, message="m1", role="assistant", parts=(Part(kind="text"),), status="streaming"
            ),
        ],
        [
            ev.MessageStreamed(at=at, message="m1", text="Hello"),
            ev.MessageStreamed(at=at, message="m1", text=", world", status="complete"),
            ev.TaskFailed(at=at, task=first, failure=failure),
        ],
        [
            ev.AgentLaunched(at=at, agent=STRUCTURE, task=first, attempt=2),
            ev.TaskCompleted(at=at, task=first, result=large, confidence=0.73),
            ev.OutputWritten(at=at, path="find/report.md", output=output),
        ],
        [
            ev.ContextContributed(
                at=at, name="findings", contribution=contribution("append", [1, 2], _ADDRESSER)
            ),
            ev.ContextContributed(at=at, name="total", contribution=contribution("sum", 2.5, _ADDRESSER)),
            ev.ContextContributed(
                at=at, name="by_file", contribution=contribution("merge", {"a": 1}, _ADDRESSER)
            ),
            ev.Spent(at=at, agent=STRUCTURE, api_calls=2, tokens_in=100, tokens_out=20, cost_micros=7),
        ],
        [
            ev.CriterionScored(
                at=at,
                evaluation="e1",
                agent=AgentId("apollo"),
                phase=FIND,
                score=Score(criterion="evidence", score=0.5),
            ),
            ev.EvaluationCompleted(
                at=at,
                evaluation="e1",
                agent=AgentId("apollo"),
                phase=FIND,
                verdict=Verdict(kind="revise", score=0.5, feedback="More evidence"),
            ),
            ev.WaitOpened(at=at, wait="q1", waits_for="question", text="Go on?", choices=("yes", "no")),
        ],
        [ev.WaitClosed(at=at, wait="q1", answer=_frozen("yes"))],
    ]


def _task(number: int, at: Instant) -> list[ev.Event]:
    task = TaskId(f"find/1/more-{number}")
    return [
        ev.TaskPlanned(at=at, task=task, agent=STRUCTURE, phase=FIND),
        ev.TaskCompleted(at=at, task=task, result=_frozen({"n": number}), confidence=0.8),
        ev.ContextContributed(
            at=at, name="findings", contribution=contribution("append", number, _ADDRESSER)
        ),
    ]
