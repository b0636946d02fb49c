"""The housekeeper: opens orchestras for whoever asks, all in one task, and closes them together.

An orchestra has a task group of its own, which has to be left in the task that entered it. The browser asks
for orchestras in the tasks of its answers, so it is another one that opens them.
"""

from typing import Self

import anyio
import attrs
from anyio.abc import TaskStatus

from orchestra.app.orchestra import Orchestra
from orchestra.cli.commands.resume import orchestra_for
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.settings import PlaySettings
from orchestra.ids import RunId


@attrs.define
class _Wish:
    """An orchestra that is asked for."""

    run: RunId
    done: anyio.Event = attrs.field(factory=anyio.Event)
    house: Orchestra | None = None
    error: Exception | None = None


class Housekeeper:
    """Opens orchestras over one store."""

    def __init__(self, settled: PlaySettings, store: str | None) -> None:
        self._settled, self._store = settled, store
        self._troupe = OrchestraPool()
        self._ask, self._asked = anyio.create_memory_object_stream[_Wish](64)
        self.base: Orchestra

    async def keep(self, *, task_status: TaskStatus[Self]) -> None:
        """Open what is asked for until told to close; then close all."""
        async with self._troupe, self._asked:
            self.base = await self._troupe.house(self._settled, create=False)
            task_status.started(self)
            async for wish in self._asked:
                await self._fulfil(wish)

    async def _fulfil(self, wish: _Wish) -> None:
        try:
            wish.house = await orchestra_for(self._troupe, self.base.manager.archive, wish.run, self._store)
        except Exception as error:  # it is for whoever asked
            wish.error = error
        finally:
            wish.done.set()

    async def house(self, run: RunId | None) -> Orchestra:
        """The orchestra for a run, in the folder it works in; or the one for orders."""
        if run is None:
            return self.base
        wish = _Wish(run)
        await self._ask.send(wish)
        await wish.done.wait()
        if wish.error is not None:
            raise wish.error
        assert wish.house is not None, "BUG: a wish is fulfilled or fails"
        return wish.house

    def drain(self) -> None:
        """Stop every run in order; all stay resumable."""
        self._troupe.drain()

    def close(self) -> None:
        """Open no more."""
        self._ask.close()
