"""Small states and the steps between them, for the tests of `apply`."""

from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.records import Failure
from orchestra.model.state import State, WorkflowRef
from orchestra.model.value import Value

AT = Instant(1_000)
RUN, PHASE, AGENT, TASK = RunId("r"), PhaseId("find"), AgentId("structure"), TaskId("find/1/structure")
RESULT = Value(b"\x01")
FAILURE = Failure(error="ValueError", message="no", at=AT)

PLANNED = ev.TaskPlanned(at=AT, task=TASK, agent=AGENT, phase=PHASE)
LAUNCHED = ev.AgentLaunched(at=AT, agent=AGENT, task=TASK)
COMPLETED = ev.TaskCompleted(at=AT, task=TASK, result=RESULT, confidence=0.7)
FAILED = ev.TaskFailed(at=AT, task=TASK, failure=FAILURE)


def started(*events: ev.Event) -> State:
    """A run that has begun and seen these events."""
    first = ev.RunStarted(at=AT, run=RUN, workflow=WorkflowRef(name="w"), thresholds=(0.5,))
    return apply_all(begin(first), events)
