"""States of runs as the tests of the displays need them, made from events."""

from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.headline import headlines
from orchestra.model.records import Decision, Failure
from orchestra.model.snapshot import Header
from orchestra.model.state import State, WorkflowRef
from orchestra.model.workflow import Agent, Phase, Specialist, Workflow
from orchestra.ports.sink import TurnRecorded

RUN = RunId("tiny_20261116_120000_ab")
START = Instant(1_794_830_400_000_000)
AGENT = AgentId("a")
WORKFLOW = Workflow(
    name="tiny",
    agents=(Agent(id=AGENT, kind="function"),),
    phases=(
        Phase(
            id=PhaseId("find"),
            specialists=(
                Specialist(id="one", agent=AGENT),
                Specialist(id="two", agent=AGENT, needs=("one",)),
            ),
        ),
        Phase(id=PhaseId("tell"), specialists=(Specialist(id="three", agent=AGENT),)),
    ),
)


def at(seconds: float) -> Instant:
    """A moment after the start."""
    return Instant(START + int(seconds * 1_000_000))


STARTED = ev.RunStarted(at=START, run=RUN, workflow=WorkflowRef(name="tiny"), thresholds=(0.5,))


def planned(name: str, phase: str = "find", seconds: float = 0.0) -> ev.TaskPlanned:
    """An assignment of a phase."""
    return ev.TaskPlanned(
        at=at(seconds), task=TaskId(f"{phase}/{name}"), agent=AgentId(name), phase=PhaseId(phase)
    )


def launched(name: str, phase: str = "find", attempt: int = 1, seconds: float = 0.0) -> ev.AgentLaunched:
    """An attempt at it."""
    return ev.AgentLaunched(
        at=at(seconds), agent=AgentId(name), task=TaskId(f"{phase}/{name}"), attempt=attempt
    )


def progress(name: str, share: float, step: str, seconds: float = 0.0) -> ev.MilestoneReached:
    """An agent's progress."""
    return ev.MilestoneReached(at=at(seconds), agent=AgentId(name), progress=share, step=step)


def decided(text: str, why: str = "") -> ev.DecisionMade:
    """A decision of Atlas."""
    chosen = Decision(at=at(1), agent=AgentId("atlas"), kind="routing", description=text, rationale=why)
    return ev.DecisionMade(at=at(1), decision=chosen)


def failed(name: str, message: str, phase: str = "find") -> ev.TaskFailed:
    """An attempt that failed."""
    failure = Failure(error="ValueError", message=message, at=at(1))
    return ev.TaskFailed(at=at(1), task=TaskId(f"{phase}/{name}"), failure=failure)


def asked(text: str, choices: tuple[str, ...] = ()) -> ev.WaitOpened:
    """A question."""
    return ev.WaitOpened(
        at=at(1), wait=f"q:{text}", waits_for="question", text=text, agent=AgentId("one"), choices=choices
    )


BEGINNING: tuple[ev.Event, ...] = (
    ev.PhaseStarted(at=START, phase=PhaseId("find")),
    planned("one"),
    launched("one"),
)


def state_after(*events: ev.Event) -> State:
    """The state after these events, from the start of the run on."""
    return apply_all(begin(STARTED), events)


def turn(state: State, *events: ev.Event, seq: int = 0) -> TurnRecorded:
    """The notice of a turn."""
    header = Header(
        run=RUN,
        seq=seq,
        parent=None,
        at=events[0].at,
        triggers=(),
        marked=False,
        events=headlines(events, state),
        status=state.status,
        phase=state.cursor.phase,
        ordinal=1,
        patch=Digest(b""),
        seal=Digest(b""),
        sealed_at=0,
    )
    return TurnRecorded(run=RUN, header=header, state=state, events=events)
