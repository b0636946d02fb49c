"""Long work asks now and then whether anybody still wants what it makes."""

from collections.abc import Callable

Wanted = Callable[[], None]
"""Called between two steps of long work; raises when whoever asked has gone."""


def always() -> None:
    """For those who wait in any case."""
