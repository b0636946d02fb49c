"""What is known of a run at one moment, with plain values: what programs and people ask for."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from orchestra.codec.values import thaw
from orchestra.engine.names import item_index, local_of, specialist_name
from orchestra.engine.view import LazyMap, Opener, lazy_context
from orchestra.errors import UnknownPath
from orchestra.ids import TaskId
from orchestra.model.records import Decision, Failure, Output, Task, Wait
from orchestra.model.state import State
from orchestra.model.workflow import Workflow


@attrs.frozen(kw_only=True)
class RunState:
    """A run at one moment. Values are opened when they are looked at, large ones from the store."""

    state: State
    opener: Opener = attrs.field(default=thaw, repr=False, eq=False)
    workflow: Workflow | None = attrs.field(default=None, repr=False)

    @property
    def status(self) -> str:
        """`running`, `waiting`, `completed`, …."""
        return self.state.status

    @property
    def phase(self) -> str | None:
        """The phase the run is in; None before the first."""
        return self.state.cursor.phase

    @property
    def inputs(self) -> dict[str, Any]:
        """What the run was given; secrets are replaced by a mark."""
        return dict(self.opener(self.state.inputs)) if self.state.inputs is not None else {}

    @property
    def context(self) -> Mapping[str, Any]:
        """What the context names hold; a declared one that nothing entered is empty."""
        declared = self.workflow.context if self.workflow is not None else ()
        return lazy_context(declared, dict(self.state.context.items()), self.opener)

    @property
    def results(self) -> Mapping[str, Any]:
        """Every result so far, by assignment, e.g. `analyse/structure`."""
        done = [(name, task) for name, task in self.state.tasks.items() if task.status == "completed"]
        return LazyMap({name: partial(self._open, task) for name, task in done})

    def result(self, specialist: str) -> Any:
        """The result of a specialist, `phase/specialist` where several phases have one of that name.

        Of several visits and rounds it is the newest; a `foreach` gives the list of its results, in order.
        Raises `UnknownPath` when there is no such specialist yet.
        """
        place, _, local = specialist.rpartition("/")
        found = [
            (item_index(local_of(TaskId(name))), task)
            for name, task in self.state.tasks.items()
            if specialist in (name, _specialist_of(name))
            or (place, local) == (task.phase, _specialist_of(name))
        ]
        if not found:
            known = ", ".join(dict.fromkeys(map(_specialist_of, self.state.tasks)))
            reason = f"no such specialist has begun; there are {known}" if known else "nobody has begun"
            raise UnknownPath(reference=self.state.run, path=specialist, reason=reason)
        newest = [(at, task) for at, task in found if _turn_of(task) == _turn_of(found[-1][1])]
        items = {at: self._open(task) for at, task in newest if at is not None}
        listed = items and specialist not in self.state.tasks
        return [items[at] for at in sorted(items)] if listed else self._open(newest[0][1])

    @property
    def outputs(self) -> dict[str, Output]:
        """The files the run wrote, by path: their digest, media type and size."""
        return dict(self.state.outputs.items())

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every decision so far, oldest first."""
        return tuple(self.state.decisions)

    @property
    def questions(self) -> dict[str, Wait]:
        """What the run waits for, by name: answers, keys, breakpoints."""
        return {name: wait for name, wait in self.state.waits.items() if wait.status == "open"}

    @property
    def failure(self) -> Failure | None:
        """Why the run failed, if it did."""
        return self.state.failure

    def _open(self, task: Task) -> Any:
        return None if task.result is None else self.opener(task.result)


def _specialist_of(task: str) -> str:
    local = local_of(TaskId(task))
    return local if ":" in local else specialist_name(local)  # an errand is nobody's but its own


def _turn_of(task: Task) -> tuple[str, int, int]:
    return task.phase, task.visit, task.round
