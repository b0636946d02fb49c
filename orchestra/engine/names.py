"""Names inside a run: of visits, assignments, effects and waits. All follow from where the run is.

An assignment of the second round of the third visit of phase `analyse` is called `analyse.3/structure~2`. Its
local name, `structure`, is also the id under which the run knows the agent; items of a `foreach` are
`structure[4]`, additional specialists `structure+1`, errands that it gives to an agent `structure:finder` and
`structure:finder.2`.
"""

from functools import lru_cache

from orchestra.ids import AgentId, EffectKey, Instant, PhaseId, TaskId
from orchestra.limits import NAMES_KEPT
from orchestra.model.state import State

ATLAS = AgentId("atlas")
PERSON = AgentId("a person")  # no agent of a workflow has a space in its name
EVALUATION = "evaluation"
"""The local name of the assignment that judges a phase."""


def visit_name(phase: PhaseId, visit: int) -> str:
    """A visit of a phase in a word."""
    return phase if visit == 1 else f"{phase}.{visit}"


def here(state: State) -> str:
    """The visit the run is in."""
    assert state.cursor.phase is not None, "BUG: the run is in no phase yet"
    return visit_name(state.cursor.phase, state.cursor.visit)


def task_id(state: State, local: str) -> TaskId:
    """The assignment of that local name in the visit and round the run is in."""
    cursor = state.cursor
    assert cursor.phase is not None, "BUG: the run is in no phase yet"
    tail = f"~{cursor.round}" if cursor.round > 1 else ""
    if cursor.visit == 1:
        return TaskId(f"{cursor.phase}/{local}{tail}")
    return TaskId(f"{cursor.phase}.{cursor.visit}/{local}{tail}")


@lru_cache(maxsize=NAMES_KEPT)
def local_of(task: TaskId) -> str:
    """The local name of an assignment, without its visit and round."""
    return task.rpartition("/")[2].partition("~")[0]


@lru_cache(maxsize=NAMES_KEPT)
def specialist_name(local: str) -> str:
    """The specialist an assignment of that local name belongs to."""
    return local.partition(":")[0].partition("+")[0].partition("[")[0]


def item_index(local: str) -> int | None:
    """The place in its list of an item of a `foreach`; None for other assignments."""
    _, bracket, rest = local.partition("[")
    return int(rest.partition("]")[0]) if bracket else None


def item_name(specialist: str, index: int | None) -> str:
    """The local name of an assignment, or of one item of a `foreach`."""
    return specialist if index is None else f"{specialist}[{index}]"


def errand_name(caller: str, agent: AgentId, number: int) -> str:
    """The local name of an errand that an assignment gives to an agent, counted from 1."""
    return f"{caller}:{agent}" if number == 1 else f"{caller}:{agent}.{number}"


def caller_of(errand: TaskId) -> TaskId:
    """The assignment that gave an errand."""
    place, _, local = errand.rpartition("/")
    name, mark, round = local.partition("~")
    return TaskId(f"{place}/{name.rpartition(':')[0]}{mark}{round}")


def errand_depth(local: str) -> int:
    """How many assignments wait for one: 0 for those of the workflow itself."""
    return local.count(":")


def effect_key(state: State, local: str) -> EffectKey:
    """The idempotency key an agent is handed: equal for all attempts, new after a rollback."""
    cursor = state.cursor
    round_part = f"~{cursor.round}" if cursor.round > 1 else ""
    return EffectKey(f"{state.run}/{cursor.phase}/{cursor.visit}/{local}{round_part}/{state.generation}")


def evaluator(agent: AgentId) -> AgentId:
    """The id under which the run knows an evaluator; no specialist can have it."""
    return AgentId(f"apollo:{agent}")


def breakpoint_wait(state: State, local: str = "") -> str:
    """The wait at a breakpoint before the phase, or before one of its assignments."""
    return f"{task_id(state, local)}!breakpoint" if local else f"{here(state)}!breakpoint"


def confidence_wait(state: State) -> str:
    """The question whether to go on with a low confidence."""
    return f"{here(state)}~{state.cursor.round}!confidence"


def failure_wait(task: TaskId, at: Instant) -> str:
    """The question what to do about an assignment that keeps failing; another after each such failure."""
    return f"{task}!failed:{at}"
