"""What an agent is handed, readable as attributes of its context.

Values that could be changed are private copies, made when they are first looked at: a trivial agent pays
nothing for a large context.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from orchestra.ids import AgentId, EffectKey, PhaseId, RunId, TaskId
from orchestra.model.parts import Role
from orchestra.ports.agent import Assignment, RubricLine
from orchestra.runners.plain import copied, copied_mapping


class Handed:
    """An assignment as its agent sees it."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment

    @property
    def task(self) -> str:
        """What to do."""
        return self._assignment.description

    @property
    def task_id(self) -> TaskId:
        """Under which the run knows the assignment."""
        return self._assignment.task

    @property
    def name(self) -> str:
        """The specialist's id in its phase."""
        return self._assignment.name

    @property
    def agent(self) -> AgentId:
        """Under which the run knows the agent."""
        return self._assignment.agent

    @property
    def role(self) -> Role:
        """The role it plays."""
        return self._assignment.role

    @property
    def run(self) -> RunId:
        """The run's id."""
        return self._assignment.run

    @property
    def phase(self) -> PhaseId:
        """The phase it works in."""
        return self._assignment.phase

    @property
    def visit(self) -> int:
        """Which visit of the phase this is, from 1."""
        return self._assignment.visit

    @property
    def round(self) -> int:
        """How often feedback has come back in this visit."""
        return self._assignment.round

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._assignment.attempt

    @property
    def recovered(self) -> bool:
        """Whether it goes on: an earlier attempt was interrupted or failed, or it was rolled back to."""
        return self._assignment.recovered

    @property
    def resume(self) -> str:
        """Where an interrupted agent stood, in words; empty on a first attempt."""
        return self._assignment.resume

    @property
    def effect_key(self) -> EffectKey:
        """The idempotency key of the assignment, equal for all its attempts."""
        return self._assignment.effect_key

    @property
    def index(self) -> int | None:
        """The place of `item` in its list."""
        return self._assignment.index

    @property
    def feedback(self) -> tuple[str, ...]:
        """What evaluators said, oldest first."""
        return self._assignment.feedback

    @property
    def partial(self) -> str:
        """Text that was streamed before an interruption."""
        return self._assignment.partial

    @property
    def progress(self) -> float:
        """The progress that was saved last."""
        return self._assignment.progress

    @property
    def step(self) -> str | None:
        """The step that was saved last."""
        return self._assignment.step

    @property
    def outputs(self) -> tuple[str, ...]:
        """Files that were promised."""
        return self._assignment.outputs

    @property
    def rubric(self) -> tuple[RubricLine, ...]:
        """What an evaluator is to score."""
        return self._assignment.rubric

    @cached_property
    def workspace(self) -> Path:
        """A scratch folder of its own, which lasts over its attempts; made when it is first asked for."""
        folder = Path(self._assignment.workspace)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @cached_property
    def project(self) -> Path:
        """The folder the run was started in."""
        return Path(self._assignment.project)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The run's inputs."""
        return copied_mapping(self._assignment.inputs)

    @cached_property
    def context(self) -> dict[str, Any]:
        """The run's named values."""
        return copied_mapping(self._assignment.context)

    @cached_property
    def needs(self) -> dict[str, Any]:
        """Results of what it needs, by the specialist's id."""
        return copied_mapping(self._assignment.needs)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """`with:` of the agent."""
        return copied_mapping(self._assignment.settings)

    @cached_property
    def results(self) -> dict[str, Any]:
        """What an evaluator judges, by specialist."""
        return copied_mapping(self._assignment.results)

    @cached_property
    def item(self) -> Any:
        """The item of `foreach`."""
        return copied(self._assignment.item)

    @cached_property
    def private(self) -> Any:
        """What it saved last."""
        return copied(self._assignment.private)
