"""Long work asks now and then whether anybody still wants what it makes."""

from collections.abc import Callable

CheckWanted = Callable[[], None]
"""Called between two steps of long work; raises when whoever asked has gone."""


def always_wanted() -> None:
    """For those who wait in any case."""
