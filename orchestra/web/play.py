"""Playing runs from the page: in this process, until they end or the browser does."""

import logging
from typing import Final

import anyio

from orchestra.app.orchestra import Orchestra
from orchestra.engine.orders import Order
from orchestra.errors import BadOrder, NotResumable, OrchestraError, RunOwned
from orchestra.ids import RunId
from orchestra.limits import WEB_ORDER_SECONDS
from orchestra.model.state import TERMINAL
from orchestra.web.site import Site

_LOG: Final = logging.getLogger("orchestra.web")
_LOOK_SECONDS: Final = 0.01


async def send_order(site: Site, run: RunId, order: Order) -> None:
    """Have something done with a run, wherever it is played; raises `BadOrder`."""
    orchestra = site.playing.get(run) or await site.orchestra(run, order.kind)
    await orchestra.order(run, order, patience=WEB_ORDER_SECONDS)


async def go_on(site: Site, run: RunId, *, accept_changes: bool = False) -> bool:
    """Go on with a run: where it is played already, or here; returns whether it is played here.

    Raises `NotResumable`, `RunOwned` when another process is playing it, and what keeps it from going on.
    """
    row = await site.read(lambda: site.archive.run(run))
    if row.status in TERMINAL:
        raise NotResumable(run=run, status=row.status)
    if row.owned and row.status == "running":
        raise RunOwned(run=run, owner=row.owner)
    if row.owned:
        await send_order(site, run, Order(kind="resume"))
        return run in site.playing
    await _Player(site, run, await site.orchestra(run, "resume")).begin(accept_changes)
    return True


class _Player:
    """Plays one run in the background."""

    def __init__(self, site: Site, run: RunId, orchestra: Orchestra) -> None:
        self._site, self._run, self._orchestra = site, run, orchestra
        self._failure: OrchestraError | None = None
        self._over = anyio.Event()

    async def begin(self, accept_changes: bool) -> None:
        """Begin to play; returns once that is under way, or raises what prevented it."""
        if self._site.group is None:
            raise BadOrder(order="resume", reason="the browser is about to end")
        self._site.group.start_soon(self._play, accept_changes)
        for _ in range(int(WEB_ORDER_SECONDS / _LOOK_SECONDS)):
            if self._over.is_set() or self._run in self._orchestra.playing:
                break
            await anyio.sleep(_LOOK_SECONDS)
        if self._failure is not None:
            raise self._failure

    async def _play(self, accept_changes: bool) -> None:
        with self._site.mark_playing(self._run, self._orchestra):
            try:
                await self._orchestra.resume(self._run, accept_changes=accept_changes, wait=True)
            except OrchestraError as error:
                self._failure = error
                _LOG.warning("run %s is not played any more: %s", self._run, error)
            except Exception:
                _LOG.exception("playing run %s failed", self._run)
                reason = f"playing {self._run} failed; see the terminal"
                self._failure = BadOrder(order="resume", reason=reason)
            finally:
                self._over.set()
