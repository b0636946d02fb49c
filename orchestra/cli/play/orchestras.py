"""The orchestras of one process, one for each set of settings, over stores opened once."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Self

import anyio
import attrs
from anyio.abc import TaskStatus

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

    def __init__(
        self, sinks: Sequence[Sink] = (), *, record: Path | None = None, replay: Path | None = None
    ) -> None:
        self._sinks, self._record, self._replay = sinks, record, replay
        self._stores: dict[str, Store] = {}
        self._orchestras: dict[tuple[PlaySettings, Path], Orchestra] = {}
        self._stack = AsyncExitStack()
        self._draining = False

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
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
            if settings.url not in self._stores:
                store = open_store(settings.url, create=create, audited=settings.checkpoint.audit)
                self._stores[settings.url] = self._stack.enter_context(store)
            made = Orchestra(
                self._stores[settings.url],
                settings=settings.checkpoint,
                engine=settings.engine,
                recovery=settings.recovery,
                sinks=self._sinks,
                project=key[1],
                record=self._record,
                replay=self._replay,
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


@attrs.define
class _Request:
    run: RunId
    done: anyio.Event = attrs.field(factory=anyio.Event)
    orchestra: Orchestra | None = None
    error: Exception | None = None


class OrchestraOpener:
    """Opens orchestras over one store on request, all in one task.

    An orchestra has a task group, which must be left in the task that entered it. The browser asks for
    orchestras in the tasks of its answers, so one task opens them all and closes them together.
    """

    def __init__(self, settings: PlaySettings, store: str | None) -> None:
        self._settings, self._store = settings, store
        self._pool = OrchestraPool()
        self._ask, self._requests = anyio.create_memory_object_stream[_Request](64)
        self.base: Orchestra

    async def serve(self, *, task_status: TaskStatus[Self]) -> None:
        """Open orchestras on request until `close` is called; then close them all."""
        async with self._pool, self._requests:
            self.base = await self._pool.open(self._settings, create=False)
            task_status.started(self)
            async for request in self._requests:
                try:
                    archive = self.base.manager.archive
                    request.orchestra = await self._pool.open_for(archive, request.run, self._store)
                except Exception as error:  # whoever asked gets it
                    request.error = error
                finally:
                    request.done.set()

    async def orchestra(self, run: RunId | None) -> Orchestra:
        """The orchestra for a run, in the folder it works in; or the one for orders."""
        if run is None:
            return self.base
        request = _Request(run)
        await self._ask.send(request)
        await request.done.wait()
        if request.error is not None:
            raise request.error
        assert request.orchestra is not None, "BUG: a request is fulfilled or fails"
        return request.orchestra

    def drain(self) -> None:
        """Stop every run in order; all stay resumable."""
        self._pool.drain()

    def close(self) -> None:
        """Take no more requests."""
        self._ask.close()
