"""The page: files of this package, sent as they are, and in one piece: fifty modules are fifty questions.

`all.js` is the modules put together as for a bundle, `all.css` the sheets one after another. Nothing is built
beforehand; a file that changes is seen at the next question.
"""

import gzip
import hashlib
import mimetypes
import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import attrs
from fastapi import APIRouter, Request
from starlette.responses import Response

from orchestra.web.bundle.page import one_script
from orchestra.web.errors import NotFound
from orchestra.web.parameters import site_of

router = APIRouter(include_in_schema=False)
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@attrs.frozen(kw_only=True)
class File:
    """A file of the page."""

    content: bytes
    packed: bytes
    tag: str
    media_type: str


JOINED: Final = ("all.js", "all.css")
SHEETS: Final = ("page.css", "run.css", "pages.css")


@cache
def _read(path: Path, changed: int) -> File:
    return _file(path.name, path.read_bytes())


@lru_cache(maxsize=4)
def _joined(folder: Path, name: str, changed: int) -> File:
    if name == "all.js":
        text = one_script("main.js", lambda each: (folder / each).read_text(encoding="utf-8"))
    else:
        text = "\n".join((folder / each).read_text(encoding="utf-8") for each in SHEETS)
    return _file(name, text.encode())


def _file(name: str, content: bytes) -> File:
    kind = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return File(
        content=content,
        packed=gzip.compress(content, 6, mtime=0),
        tag=hashlib.blake2b(content, digest_size=12).hexdigest(),
        media_type=kind,
    )


def page_file(folder: Path, name: str) -> File:
    """A file of the page by its name; raises `NotFound`."""
    known = {entry.name: entry for entry in os.scandir(folder) if "." in entry.name and entry.is_file()}
    if name in JOINED:
        return _joined(folder, name, max(entry.stat().st_mtime_ns for entry in known.values()))
    entry = known.get(name)
    if entry is None:
        raise NotFound(path=f"/page/{name}")
    return _read(Path(entry.path), entry.stat().st_mtime_ns)


def _sent(request: Request, file: File) -> Response:
    headers = {"ETag": f'"{file.tag}"', "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    packs = "gzip" in request.headers.get("accept-encoding", "") and len(file.packed) < len(file.content)
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packs else file.content, headers=headers, media_type=file.media_type)


@router.get("/page/{name}")
async def static(request: Request, name: str) -> Response:
    """A file of the page."""
    return _sent(request, page_file(site_of(request).pages, name))


@router.get("/")
@router.get("/runs/{run}")
@router.get("/runs/{run}/workflow")
async def page(request: Request) -> Response:
    """The page itself; what it shows is told by the address."""
    return _sent(request, page_file(site_of(request).pages, "index.html"))
