"""Drafts: a state in the making, which the events of one turn change in place.

A draft reads like a state, and everything in it is immutable as ever: what changes is which values it holds.
A turn of a dozen events makes one state at its end instead of one for each event.
"""

from typing import Any, Self

from orchestra.model.state import State


class Draft(State):
    """A state that `apply` may change. It is not stored, compared or kept: `frozen` gives what is."""

    @classmethod
    def of(cls, state: State) -> Self:
        """A draft that begins as `state`."""
        made = object.__new__(cls)
        made.__dict__.update(state.__dict__)
        return made

    def change(self, **changes: Any) -> None:
        """Hold other values in the named fields."""
        self.__dict__.update(changes)

    def frozen(self) -> State:
        """The state as it is now."""
        made = object.__new__(State)
        made.__dict__.update(self.__dict__)
        return made

    def restore(self, state: dict[str, Any]) -> None:
        """Be again what `vars` said."""
        self.__dict__.update(state)
