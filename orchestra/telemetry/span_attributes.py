"""What spans say alike in every run of a workflow: put together once, and kept for the next run."""

from functools import lru_cache

from orchestra.telemetry import names
from orchestra.telemetry.records import Attributes, Fixed


@lru_cache(maxsize=1024)
def of_leg(workflow: str) -> Fixed:
    """Of a leg."""
    operation: Attributes = {names.OPERATION: names.INVOKE_WORKFLOW}
    return Fixed({names.WORKFLOW: workflow, names.WORKFLOW_NAME: workflow, **operation})


@lru_cache(maxsize=1024)
def of_phase(workflow: str, phase: str, visit: int, round: int | None = None) -> Fixed:
    """Of a visit of a phase, or of a round of its evaluation."""
    told: Attributes = {names.WORKFLOW: workflow, names.PHASE_ID: phase, names.VISIT: visit}
    return Fixed(told if round is None else {**told, names.ROUND: round})


@lru_cache(maxsize=4096)
def of_attempt(
    workflow: str,
    agent: str,
    task: str,
    attempt: int,
    role: str,
    model: str | None,
    place: tuple[str, int, int, int],
) -> Fixed:
    """Of an attempt; `place` is the phase, its visit and round, and the generation."""
    phase, visit, round, generation = place
    told: Attributes = {
        names.WORKFLOW: workflow,
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT_NAME: agent,
        names.TASK: task,
        names.ATTEMPT: attempt,
        names.ROLE: role,
        names.GENERATION: generation,
        names.PHASE_ID: phase,
        names.VISIT: visit,
        names.ROUND: round,
    }
    return Fixed(told if model is None else {**told, names.MODEL: model})
