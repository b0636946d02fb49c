"""Opening orchestras on request, all in one task.

An orchestra has a task group, which must be left in the task that entered it. The browser asks for orchestras
in the tasks of its answers, so one task opens them all and closes them together.
"""

from typing import Self

import anyio
import attrs
from anyio.abc import TaskStatus

from orchestra.app.orchestra import Orchestra
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.settings import PlaySettings
from orchestra.ids import RunId


@attrs.define
class _Request:
    """A request for the orchestra of a run."""

    run: RunId
    done: anyio.Event = attrs.field(factory=anyio.Event)
    orchestra: Orchestra | None = None
    error: Exception | None = None


class OrchestraOpener:
    """Opens orchestras over one store."""

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
                await self._fulfil(request)

    async def _fulfil(self, request: _Request) -> None:
        try:
            request.orchestra = await self._pool.open_for(self.base.manager.archive, request.run, self._store)
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
