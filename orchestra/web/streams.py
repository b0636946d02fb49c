"""Answers that are sent while they are made: hits of a search, and single values of any size."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from orchestra.history.paths import Path
from orchestra.ports.store import RunRow
from orchestra.web.answers import FRESH, line
from orchestra.web.errors import BadRequest
from orchestra.web.site import Site
from orchestra.web.views import search, states

_SLICE_SECONDS: Final = 0.1
_CHUNK_BYTES: Final = 256 * 1024
SAFE: Final = {
    "Cache-Control": FRESH,
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
}
"""How content that came from a run is sent: nothing in it can do anything."""


def search_lines(site: Site, run: RunRow, text: str, limit: int) -> Response:
    """Hits of a search, line by line. It goes on only while somebody reads."""
    return StreamingResponse(
        _lines(site, run, text, limit),
        media_type="application/x-ndjson",
        headers={"Cache-Control": FRESH},
    )


async def _lines(site: Site, run: RunRow, text: str, limit: int) -> AsyncIterator[bytes]:
    found = search.hits(site.archive, run, text, limit)
    while True:
        lines, ended = await site.read(lambda: _some(found))
        if lines:
            yield b"".join(line(each) + b"\n" for each in lines)
        if ended:
            return


def _some(found: Iterator[dict[str, Any] | None]) -> tuple[list[dict[str, Any]], bool]:
    """What is found within a moment, and whether that was all."""
    until, lines = time.monotonic() + _SLICE_SECONDS, list[dict[str, Any]]()
    for each in found:
        if each is not None:
            lines.append(each)
        if time.monotonic() > until:
            return lines, False
    return lines, True


async def raw_value(site: Site, run: str, at: str, path: Path) -> Response:
    """A text or bytes exactly as they are, as a file."""

    def read() -> tuple[bytes, bool]:
        held = states.place_at(site.archive, site.row(run, at), path).held
        if not isinstance(held, str | bytes):
            raise BadRequest(reason="only a text or bytes can be had raw")
        return (held.encode(errors="surrogatepass"), True) if isinstance(held, str) else (held, False)

    content, is_text = await site.read(read)
    media = "text/plain; charset=utf-8" if is_text else "application/octet-stream"
    name = "value.txt" if is_text else "value.bin"
    headers = {
        **SAFE,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(len(content)),
    }
    return StreamingResponse(_chunks(content), media_type=media, headers=headers)


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _CHUNK_BYTES):
        yield content[start : start + _CHUNK_BYTES]
