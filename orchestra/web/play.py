"""Playing runs from the page: in this process, until they end or the browser does."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from orchestra.app.orchestra import Orchestra
from orchestra.engine.orders import Order
from orchestra.errors import BadOrder, NotResumable, OrchestraError, RunOwned
from orchestra.ids import RunId
from orchestra.limits import WEB_ORDER_SECONDS
from orchestra.model.state import TERMINAL
from orchestra.ports.store import RunRow
from orchestra.web.site import Site

_LOG: Final = logging.getLogger("orchestra.web")
_LOOK_SECONDS: Final = 0.01


async def order(site: Site, run: RunId, wanted: Order) -> None:
    """Have something done with a run, wherever it is played; raises `BadOrder`."""
    house = site.playing.get(run) or await site.house(run, wanted.kind)
    await house.order(run, wanted, patience=WEB_ORDER_SECONDS)


async def go_on(site: Site, run: RunId, *, accept_changes: bool = False) -> bool:
    """Go on with a run: where it is played already, or here; returns whether it is played here.

    Raises `NotResumable`, `RunOwned` when another process is playing it, and what keeps it from going on.
    """
    row = await site.read(lambda: site.archive.run(run))
    if row.status in TERMINAL:
        raise NotResumable(run=run, status=row.status)
    if row.owned:
        await _told_to_go_on(site, row)
        return run in site.playing
    house = await site.house(run, "resume")

    async def play() -> Any:
        return await house.resume(run, accept_changes=accept_changes, wait=True)

    await _begun(site, run, house, play)
    return True


async def _told_to_go_on(site: Site, row: RunRow) -> None:
    if row.status == "running":
        raise RunOwned(run=row.run, owner=row.owner)
    await order(site, row.run, Order(kind="resume"))


async def _begun(site: Site, run: RunId, house: Orchestra, play: Callable[[], Awaitable[Any]]) -> None:
    """Start playing in the background; returns once that is under way, or raises what prevented it."""
    if site.group is None:
        raise BadOrder(order="resume", reason="the browser is about to end")
    failures: list[OrchestraError] = []
    over = anyio.Event()
    site.group.start_soon(_played, site, run, house, play, failures, over)
    with anyio.move_on_after(WEB_ORDER_SECONDS):
        for _ in range(int(WEB_ORDER_SECONDS / _LOOK_SECONDS)):
            if over.is_set() or run in house.playing:
                break
            await anyio.sleep(_LOOK_SECONDS)
    if failures:
        raise failures[0]


async def _played(
    site: Site,
    run: RunId,
    house: Orchestra,
    play: Callable[[], Awaitable[Any]],
    failures: list[OrchestraError],
    over: anyio.Event,
) -> None:
    with site.played(run, house):
        try:
            await play()
        except OrchestraError as error:
            failures.append(error)
            _LOG.warning("run %s is not played any more: %s", run, error)
        except Exception:
            _LOG.exception("playing run %s failed", run)
            failures.append(BadOrder(order="resume", reason=f"playing {run} failed; see the terminal"))
        finally:
            over.set()
