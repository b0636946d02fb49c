"""Routes that send files: what runs wrote, and runs themselves. Nothing of it can act in a browser."""

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi import Path as PathParameter
from starlette.responses import Response, StreamingResponse

from orchestra.codec.document import Document
from orchestra.errors import UnknownPath
from orchestra.interchange.export_store import SUFFIX
from orchestra.interchange.transfer import export_run
from orchestra.model.tree import Table
from orchestra.web.answers import BYTES, SAFE, file_answer
from orchestra.web.bundle.file import make_bundle
from orchestra.web.errors import NotFound
from orchestra.web.parameters import AtQuery, RunName
from orchestra.web.shapes import sends
from orchestra.web.site import Site, site_of
from orchestra.web.views.forms import as_value

router = APIRouter(prefix="/api/runs/{run}", tags=["files"])
_TEXTS: Final = ("application/json", "application/yaml")
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_EXPORT: Final = sends(BYTES)


@router.get("/outputs/{path:path}", response_class=Response, responses=sends(BYTES, "text/plain", *_IMAGES))
async def output(
    request: Request,
    run: RunName,
    path: Annotated[str, PathParameter(min_length=1, max_length=1024)],
    at: AtQuery = "head",
) -> Response:
    """A file that a run wrote, from the store: text as plain text, pictures as such, the rest to be saved."""
    site = site_of(request)
    content, media = await site.read(lambda: _content(site, run, at, path))
    name = quote(path.rpartition("/")[2], safe="")
    kind = "attachment" if media == BYTES else "inline"
    headers = {**SAFE, "Content-Disposition": f"{kind}; filename*=UTF-8''{name}"}
    return Response(content, headers=headers, media_type=media)


def _content(site: Site, run: str, at: str, path: str) -> tuple[bytes, str]:
    row = site.row(run, at)
    held: Document | None = site.archive.part_of(row, ("outputs",)).get("outputs", Table()).get(path)
    if held is None:
        reference = f"{row.run}@{row.seq}"
        raise UnknownPath(reference=reference, path=f"outputs/{path}", reason="no such output")
    content = held.get("content")
    if content is None:
        raise NotFound(path=f"outputs/{path}")
    found = site.archive.value(as_value(content))
    data = found if isinstance(found, bytes) else str(found).encode()
    return data, safe_media_type(str(held["media_type"]), data)


def safe_media_type(said: str, data: bytes) -> str:
    """What a file is sent as; what a browser could run is only bytes."""
    said = said.partition(";")[0].strip().lower()
    if said in _IMAGES:
        return said
    if said in _TEXTS or (said.startswith("text/") and said not in ("text/html", "text/xml")):
        try:
            data.decode()
        except UnicodeDecodeError:
            return BYTES
        return "text/plain; charset=utf-8"
    return BYTES


@router.get("/export", response_class=StreamingResponse, responses=_EXPORT)
async def export(request: Request, run: RunName) -> Response:
    """A run with its whole history as one file, which `orchestra import` reads."""
    site = site_of(request)

    def write() -> tuple[BinaryIO, str, int]:
        run_id = site.run_row(run).run
        with tempfile.TemporaryDirectory(prefix="orchestra-export-") as folder:
            made = export_run(site.archive, run_id, Path(folder) / "run")
            # It stays readable until it is closed, and is gone whatever becomes of the answer.
            return made.path.open("rb"), f"{run_id}{SUFFIX}", made.size

    return file_answer(*await site.read(write))


@router.get("/bundle.html", response_class=Response, responses=_EXPORT)
async def bundle(request: Request, run: RunName) -> Response:
    """A run and the page that shows it in one file, which needs no server; to be saved, not shown here."""
    site = site_of(request)
    made = await site.read(lambda: make_bundle(site.archive, site.run_row(run).run))
    return file_answer(BytesIO(made.content), f"{made.run}.html", len(made.content))
