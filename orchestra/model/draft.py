"""Drafts: a state in the making, which the events of one turn change in place.

A draft reads like a state; what it holds is immutable, which values it holds changes. So a turn of a dozen
events makes one state at its end instead of one for each event.
"""

from typing import Any, Self

from orchestra.model.frozen import evolve
from orchestra.model.state import State


class Draft(State):
    """A state that `apply` may change. It is not stored, compared or kept: `freeze` makes what is."""

    @classmethod
    def of(cls, state: State) -> Self:
        """A draft that begins as `state`."""
        made = object.__new__(cls)
        made.__dict__.update(state.__dict__)
        return made

    def change(self, **changes: Any) -> None:
        """Hold other values in the named fields."""
        self.__dict__.update(changes)

    def change_agent(self, agent: str | None, **changes: Any) -> None:
        """Hold other values in the named fields of an agent, if it is known."""
        held = self.agents.get(agent) if agent is not None else None
        if agent is not None and held is not None:
            self.__dict__["agents"] = self.agents.set(agent, evolve(held, **changes))

    def freeze(self) -> State:
        """The state as it is now."""
        made = object.__new__(State)
        made.__dict__.update(self.__dict__)
        return made
