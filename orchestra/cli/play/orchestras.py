"""The orchestras of one process, one for each set of settings, over stores opened once."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestra.app.orchestra import Orchestra
from orchestra.app.workflow_files import load_workflow
from orchestra.cli.play.settings import PlaySettings, settings_in_force
from orchestra.cli.store import store_url
from orchestra.errors import BadWorkflow
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_known
from orchestra.history.story import DecisionCount, count_decisions
from orchestra.ids import RunId
from orchestra.model.state import State
from orchestra.ports.sink import Sink
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store


class OrchestraPool:
    """Orchestras that are opened when they are first asked for and closed together."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = sinks
        self._stores: dict[str, Store] = {}
        self._orchestras: dict[tuple[PlaySettings, Path], Orchestra] = {}
        self._stack = AsyncExitStack()
        self._draining = False

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(None, None, None)

    async def open(
        self, settings: PlaySettings, *, project: Path | None = None, create: bool = True
    ) -> Orchestra:
        """The orchestra with these settings for a project, by default the one here.

        Only with `create` is its store made.
        """
        key = settings, (project or Path()).absolute()
        found = self._orchestras.get(key)
        if found is None:
            store = self._store(settings.url, create, settings.checkpoint.audit)
            made = Orchestra(
                store,
                settings=settings.checkpoint,
                engine=settings.engine,
                recovery=settings.recovery,
                sinks=self._sinks,
                project=key[1],
            )
            found = self._orchestras[key] = await self._stack.enter_async_context(made)
            if self._draining:
                found.drain()
        return found

    async def open_existing(self, store: str | None) -> Orchestra:
        """The orchestra here over a store that is there already: the one given, or the one used by itself."""
        return await self.open(settings_in_force(store or store_url(None)), create=False)

    async def open_for(self, archive: Archive, run: RunId, store: str | None) -> Orchestra:
        """The orchestra for a run: in the folder it was started in, with what its workflow file says now."""
        state = last_known(archive, run).state
        project = project_folder(state)
        file = project / (state.workflow.file or "")
        said: dict[str, Any] = {}
        if file.is_file():
            with suppress(BadWorkflow):  # resuming says what is wrong with it
                said = dict(load_workflow(file).settings)
        said.pop("checkpoint.enabled", None)
        return await self.open(settings_in_force(store or store_url(None), said), project=project)

    def _store(self, url: str, create: bool, audited: bool) -> Store:
        if url not in self._stores:
            opened = open_store(url, create=create, audited=audited)
            self._stores[url] = self._stack.enter_context(opened)
        return self._stores[url]

    @property
    def orchestras(self) -> list[Orchestra]:
        """All that are open."""
        return list(self._orchestras.values())

    def count_decisions(self, state: State) -> DecisionCount:
        """How many decisions `log` tells of a run that was played here."""
        for archive in (each.manager.archive for each in self.orchestras):
            if (run := archive.store.run(state.run)) is not None:
                return count_decisions(archive, run, held=len(state.decisions), generation=state.generation)
        return DecisionCount(len(state.decisions))

    def drain(self) -> None:
        """Stop every run in order; all stay resumable."""
        self._draining = True
        for orchestra in self.orchestras:
            orchestra.drain()


def project_folder(state: State) -> Path:
    """The folder a run works in: where it was started, or here when that is gone."""
    began = state.environment.working_dir
    return Path(began) if began and Path(began).is_dir() else Path()
