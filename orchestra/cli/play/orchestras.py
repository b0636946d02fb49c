"""The troupe: the orchestras of one process, one for each set of settings, over stores opened once."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestra.app.orchestra import Orchestra
from orchestra.cli.play.settings import PlaySettings
from orchestra.history.story import DecisionCount, count_decisions
from orchestra.model.state import State
from orchestra.ports.sink import Sink
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store


class OrchestraPool:
    """Orchestras that are opened when they are first asked for and closed together."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = sinks
        self._stores: dict[str, Store] = {}
        self._houses: dict[tuple[PlaySettings, Path], Orchestra] = {}
        self._stack = AsyncExitStack()
        self._draining = False

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(None, None, None)

    async def house(
        self, settled: PlaySettings, *, project: Path | None = None, create: bool = True
    ) -> Orchestra:
        """The orchestra with these settings for a project, by default the one here.

        Only with `create` is its store made.
        """
        key = settled, (project or Path()).absolute()
        found = self._houses.get(key)
        if found is None:
            store = self._store(settled.url, create, settled.checkpoint.audit)
            made = Orchestra(
                store,
                settings=settled.checkpoint,
                engine=settled.engine,
                recovery=settled.recovery,
                sinks=self._sinks,
                project=key[1],
            )
            found = self._houses[key] = await self._stack.enter_async_context(made)
            if self._draining:
                found.drain()
        return found

    def _store(self, url: str, create: bool, audited: bool) -> Store:
        if url not in self._stores:
            opened = open_store(url, create=create, audited=audited)
            self._stores[url] = self._stack.enter_context(opened)
        return self._stores[url]

    @property
    def houses(self) -> list[Orchestra]:
        """All that are open."""
        return list(self._houses.values())

    def count_decisions(self, state: State) -> DecisionCount:
        """How many decisions `log` tells of a run that was played here."""
        for archive in (house.manager.archive for house in self.houses):
            if (run := archive.store.run(state.run)) is not None:
                return count_decisions(archive, run, held=len(state.decisions), generation=state.generation)
        return DecisionCount(len(state.decisions))

    def drain(self) -> None:
        """Stop every run in order; all stay resumable."""
        self._draining = True
        for house in self.houses:
            house.drain()
