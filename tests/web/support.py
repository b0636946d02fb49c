"""The browser, really served on loopback in the test's own task group, and somebody who visits it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio
import attrs
import httpx

from orchestra.app.orchestra import Orchestra
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.ports.store import Store
from orchestra.web.server import open_listener, serve
from orchestra.web.site import Door, Site

TOKEN: Final = "a-token-for-tests-only"
SECONDS: Final = 180.0


@attrs.frozen
class Visitor:
    """Somebody with the token."""

    client: httpx.AsyncClient
    site: Site

    async def get(self, where: str, /, **query: Any) -> Any:
        """The JSON at a path; it must be there."""
        found = await self.client.get(f"/api{where}", params=_query(query))
        assert found.status_code == 200, f"{found.status_code} {found.text}"
        return found.json()

    async def refused(self, where: str, /, **query: Any) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of a question that is not answered."""
        found = await self.client.get(f"/api{where}", params=_query(query))
        assert found.status_code >= 400, found.text
        body = found.json()
        assert set(body) == {"error", "message"}
        return found.status_code, body

    async def post(self, where: str, /, status: int = 200, **body: Any) -> Any:
        """What came of an action."""
        done = await self.client.post(f"/api{where}", json=body)
        assert done.status_code == status, f"{done.status_code} {done.text}"
        return done.json()

    async def until(self, run: str, **wanted: Any) -> Any:
        """A run, once it stands as wanted."""
        with anyio.fail_after(SECONDS):
            while True:
                found = await self.get(f"/runs/{run}")
                if all(found[name] == value for name, value in wanted.items()):
                    return found
                await anyio.sleep(0.02)


def _query(given: dict[str, Any]) -> dict[str, Any]:
    """Paths are lists; Python's reserved words have an underscore."""
    return {
        name.rstrip("_"): json.dumps(value) if isinstance(value, list | dict) else value
        for name, value in given.items()
    }


def quoted(path: list[str | int]) -> str:
    """A path of a state as it stands in an address."""
    return quote(json.dumps(path))


@asynccontextmanager
async def served(
    store: Store, orchestra: Orchestra | None = None, *, pages: Path | None = None, token: str = TOKEN
) -> AsyncIterator[Visitor]:
    """A browser over a store; without an orchestra it only reads."""

    async def orchestra_for(_run: RunId | None) -> Orchestra:
        assert orchestra is not None
        return orchestra

    listener = open_listener("127.0.0.1", 0)
    door = Door(host="127.0.0.1", port=listener.getsockname()[1], token=token)
    archive = Archive(store) if orchestra is None else orchestra.manager.archive
    more = {} if pages is None else {"pages": pages}
    site = Site(archive, door, None if orchestra is None else orchestra_for, **more)
    stop = anyio.Event()
    async with anyio.create_task_group() as group:
        await group.start(serve, site, listener, stop)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=door.address, headers=headers, timeout=SECONDS) as client:
            yield Visitor(client, site)
        if orchestra is not None:
            orchestra.drain()
        stop.set()
