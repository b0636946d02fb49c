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
    await _begin(site, run, await site.orchestra(run, "resume"), accept_changes)
    return True


async def _begin(site: Site, run: RunId, orchestra: Orchestra, accept_changes: bool) -> None:
    """Play a run in the background; returns once that is under way, or raises what prevented it."""
    failures: list[OrchestraError] = []
    over = anyio.Event()

    async def play() -> None:
        with site.mark_playing(run, orchestra):
            try:
                await orchestra.resume(run, accept_changes=accept_changes, wait=True)
            except OrchestraError as error:
                _LOG.warning("run %s is not played any more: %s", run, error)
                failures.append(error)
            except Exception:
                _LOG.exception("playing run %s failed", run)
                failures.append(BadOrder(order="resume", reason=f"playing {run} failed; see the terminal"))
            finally:
                over.set()

    if site.group is None:
        raise BadOrder(order="resume", reason="the browser is about to end")
    site.group.start_soon(play)
    for _ in range(int(WEB_ORDER_SECONDS / _LOOK_SECONDS)):
        if over.is_set() or run in orchestra.playing:
            break
        await anyio.sleep(_LOOK_SECONDS)
    if failures:
        raise failures[0]
