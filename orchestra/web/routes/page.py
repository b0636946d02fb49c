"""The page: files of this package, sent as they are, and in one piece: fifty modules are fifty questions.

`all.js` is the modules put together as for a bundle, `all.css` the sheets one after another. Nothing is built
beforehand; a file that changes is seen at the next question.
"""

import gzip
import hashlib
import mimetypes
import os
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Final

import attrs
from fastapi import APIRouter, Request
from starlette.responses import Response

from orchestra.web.answers import accepts_gzip, is_known
from orchestra.web.bundle.script import one_script, one_style, page_text
from orchestra.web.errors import NotFound
from orchestra.web.site import site_of

router = APIRouter(include_in_schema=False)
JOINED: Final = ("all.js", "all.css")
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@attrs.frozen(kw_only=True)
class PageFile:
    """A file of the page."""

    content: bytes
    packed: bytes
    tag: str
    media_type: str


def page_file(folder: Path, name: str) -> PageFile:
    """A file of the page by its name; raises `NotFound`."""
    known = {entry.name: entry for entry in os.scandir(folder) if "." in entry.name and entry.is_file()}
    if name in JOINED:
        return _join(folder, name, max(entry.stat().st_mtime_ns for entry in known.values()))
    entry = known.get(name)
    if entry is None:
        raise NotFound(path=f"/page/{name}")
    return _read(Path(entry.path), entry.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> PageFile:
    return _pack(path.name, path.read_bytes())


@lru_cache(maxsize=4)
def _join(folder: Path, name: str, changed: int) -> PageFile:
    read = partial(page_text, folder=folder)
    return _pack(name, (one_script("main.js", read) if name == "all.js" else one_style(read)).encode())


def _pack(name: str, content: bytes) -> PageFile:
    return PageFile(
        content=content,
        packed=gzip.compress(content, 6, mtime=0),
        tag=hashlib.blake2b(content, digest_size=12).hexdigest(),
        media_type=_TYPES.get(Path(name).suffix)
        or mimetypes.guess_type(name)[0]
        or "application/octet-stream",
    )


def _send(request: Request, name: str) -> Response:
    file = page_file(site_of(request).pages, name)
    headers = {"ETag": f'"{file.tag}"', "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if is_known(request, file.tag):
        return Response(status_code=304, headers=headers)
    packs = accepts_gzip(request) and len(file.packed) < len(file.content)
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packs else file.content, headers=headers, media_type=file.media_type)


@router.get("/page/{name}")
async def static(request: Request, name: str) -> Response:
    """A file of the page."""
    return _send(request, name)


@router.get("/")
@router.get("/runs/{run}")
@router.get("/runs/{run}/workflow")
async def page(request: Request) -> Response:
    """The page itself; what it shows is told by the address."""
    return _send(request, "index.html")
