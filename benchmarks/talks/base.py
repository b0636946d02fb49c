"""What every library's adapter shares: it holds a conversation, or takes a stream, saving as it goes."""

from __future__ import annotations

import abc
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from benchmarks.talks.script import Source, Ticks


class Talk(abc.ABC):
    """One library's way to hold a conversation with a model and save every step of it."""

    name: str
    unsaved: str | None = None
    """The name of the same without saving."""
    durability: str = "none: nothing is saved"
    note: str = ""
    distributions: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        """`folder` exists and is empty; nothing is opened yet."""
        self.folder = folder

    @staticmethod
    @abc.abstractmethod
    def probe() -> None:
        """Import everything the adapter needs; raises when something is not there."""

    @abc.abstractmethod
    def opened(self) -> AbstractAsyncContextManager[None]:
        """The store, open."""

    @abc.abstractmethod
    async def converse(self, steps: int, ticks: Ticks) -> str:
        """A conversation in which the model is asked so often, with a tick each time; its last answer."""

    async def stream(self, source: Source) -> str:
        """Take an answer that comes token by token; the whole of it."""
        raise NotImplementedError
