"""`orchestra browse`: the snapshot browser, a page that this process serves to this machine only."""

import secrets
import signal
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus
from cyclopts import Parameter

from orchestra.app.heap import calm_heap
from orchestra.cli.exit_codes import OK
from orchestra.cli.options import StoreUrl
from orchestra.cli.play.lifeline import Lifeline, play
from orchestra.cli.play.orchestras import OrchestraOpener
from orchestra.cli.play.settings import PlaySettings, settings_in_force
from orchestra.cli.render.screen import screen
from orchestra.cli.store import archive, archive_over, open_for_reading, store_url
from orchestra.history.references import resolve_run
from orchestra.limits import WEB_TURN_SECONDS
from orchestra.web.server import open_listener, serve
from orchestra.web.site import Door, Site

_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DRAIN_SECONDS: Final = 6.0
_TOKEN_BYTES: Final = 24


def browse(
    run: Annotated[str | None, Parameter(help="Open this run; without it, the list of runs.")] = None,
    /,
    *,
    port: Annotated[int, Parameter(help="The port to listen on; any free one without it.")] = 0,
    host: Annotated[str, Parameter(help="127.0.0.1, ::1 or localhost.")] = "127.0.0.1",
    read_only: Annotated[bool, Parameter(help="Nothing can be changed from the page.")] = False,
    no_open: Annotated[bool, Parameter(name="--no-open", help="Only print the address.")] = False,
    store: StoreUrl = None,
) -> int:
    """Open a page on which runs can be looked at, compared, resumed, rolled back and forked.

    It is served to this machine only and needs the token in the address that is printed. Runs that are begun
    from the page are played by this process; when it ends they are stopped in order and stay resumable.
    """
    with archive(store) as opened:  # what is wrong with it is said before anything is served
        path = "/" if run is None else f"/runs/{resolve_run(opened, run)}"
    listener = open_listener(host, port)
    door = Door(host=host, port=listener.getsockname()[1], token=secrets.token_urlsafe(_TOKEN_BYTES))
    browser = _Browser(door, listener, f"{door.address}{path}?token={door.token}", opens=not no_open)
    chosen = None if read_only else settings_in_force(store or store_url(None))
    return play(lambda lifeline: browser.main(lifeline, chosen, store))


class _Browser:
    """Serves until a signal comes."""

    def __init__(self, door: Door, listener: socket.socket, address: str, *, opens: bool) -> None:
        self._door, self._listener, self._address, self._opens = door, listener, address, opens
        self._stop = anyio.Event()

    async def main(self, lifeline: Lifeline, chosen: PlaySettings | None, store: str | None) -> int:
        """Serve over a store that is opened once; with settings, runs can be played."""
        if chosen is None:
            with open_for_reading(store) as opened:
                await self._serve(Site(archive_over(opened), self._door, None), lifeline, lambda: None)
        else:
            async with anyio.create_task_group() as group:
                opener = await group.start(OrchestraOpener(chosen, store).serve)
                site = Site(opener.base.manager.archive, self._door, opener.orchestra)
                await self._serve(site, lifeline, opener.drain)
                opener.close()
        lifeline.leave(OK)
        return OK

    async def _serve(self, site: Site, lifeline: Lifeline, drain: Callable[[], None]) -> None:
        async with anyio.create_task_group() as group:
            await group.start(serve, site, self._listener, self._stop)
            await group.start(self._signals, group.cancel_scope, lifeline, drain)
            # A search for garbage among all that was loaded takes 40 ms, in the middle of an answer. And a
            # thread at a long answer keeps a short one waiting at each of its steps, by default for 5 ms.
            calm_heap()
            sys.setswitchinterval(WEB_TURN_SECONDS)
            out = screen()
            out.line((self._address, "bold"))
            out.line((f"  {site.archive.store.place}, for this machine only; Ctrl-C ends it", "dim"))
            out.out.flush()
            if self._opens:
                group.start_soon(self._open)
            await self._stop.wait()
            drain()
            await site.wait_until_idle()
            group.cancel_scope.cancel()

    async def _signals(
        self,
        scope: anyio.CancelScope,
        lifeline: Lifeline,
        drain: Callable[[], None],
        *,
        task_status: TaskStatus[None],
    ) -> None:
        """The first signal stops in order, the second at once."""
        with anyio.open_signal_receiver(*_STOPS) as arriving:
            lifeline.limit_stop(_STOPS, _DRAIN_SECONDS, _DRAIN_SECONDS, lambda: None)
            task_status.started()
            async for _ in arriving:
                if self._stop.is_set():
                    scope.cancel()
                    return
                drain()
                self._stop.set()

    async def _open(self) -> None:
        import webbrowser

        await anyio.to_thread.run_sync(webbrowser.open, self._address, abandon_on_cancel=True)
