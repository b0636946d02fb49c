"""Routes that read states: what stands somewhere, and what changed."""

from collections.abc import Callable
from io import BytesIO
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.history.paths import Path
from orchestra.ports.store import Row
from orchestra.web.answers import BYTES, encode, file_answer, is_known, json_answer
from orchestra.web.errors import BadRequest
from orchestra.web.parameters import At, Limit, PathText, Reference, RunName, Version, steps_of
from orchestra.web.shapes.common import sends
from orchestra.web.shapes.states import DiffOut, StateOut
from orchestra.web.site import Site, answer_json, site_of
from orchestra.web.views import states
from orchestra.web.views.fields import Json

router = APIRouter(prefix="/api", tags=["states"])
_KNOWN: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "The client has it already."}}
_STATE: Final = _KNOWN | sends("text/plain", BYTES)


@router.get("/runs/{run}/snapshots/{at}/state", response_model=StateOut, responses=_STATE)
async def state(
    request: Request,
    run: RunName,
    at: At,
    path: PathText = "[]",
    budget: Annotated[int, Query(ge=1024, le=limits.WEB_STATE_BYTES_MAX)] = limits.WEB_STATE_BYTES,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=limits.WEB_COLLECTION_ITEMS)] = limits.WEB_COLLECTION_ITEMS,
    raw: bool = False,
    v: Version = None,
) -> Response:
    """What stands at a path of a state, as much as the budget allows; `raw` sends text or bytes as such."""
    site, steps = site_of(request), steps_of(path)
    if raw:
        return await _raw_value(site, run, at, steps)

    def make(row: Row) -> Json:
        return states.state_json(site.archive, row, steps, budget=budget, offset=offset, limit=limit)

    return await _tagged_answer(request, site, run, at, v, make)


@router.get("/runs/{run}/snapshots/{at}/changes", response_model=DiffOut, responses=_KNOWN)
async def changes(
    request: Request, run: RunName, at: At, limit: Limit = limits.WEB_DIFF_CHANGES, v: Version = None
) -> Response:
    """What a snapshot changed, against what it builds on."""
    site = site_of(request)
    return await _tagged_answer(
        request, site, run, at, v, lambda row: states.changes_json(site.archive, row, limit)
    )


async def _tagged_answer(
    request: Request, site: Site, run: str, at: str, version: str | None, make: Callable[[Row], Json]
) -> Response:
    """An answer that depends on a snapshot and on what was asked only; the digest is its tag."""

    def read() -> Response:
        row = site.row(run, at)
        tag = row.digest.hex()[:32]
        body = b"" if is_known(request, tag) and not row.pruned else encode(make(row))
        forever = version is not None and tag.startswith(version[:32])
        return json_answer(request, body, tag=tag, forever=forever)

    return await site.read(read)


async def _raw_value(site: Site, run: str, at: str, path: Path) -> Response:
    """A text or bytes exactly as they are, as a file."""
    held = (await site.read(lambda: states.place_at(site.archive, site.row(run, at), path))).held
    if isinstance(held, bytes):
        return file_answer(BytesIO(held), "value.bin", len(held))
    if not isinstance(held, str):
        raise BadRequest(reason="only a text or bytes can be had raw")
    content = await site.read(lambda: held.encode(errors="surrogatepass"))
    return file_answer(BytesIO(content), "value.txt", len(content), "text/plain; charset=utf-8")


@router.get("/diff", response_model=DiffOut)
async def diff(
    request: Request,
    before: Annotated[Reference, Query(alias="from")],
    after: Annotated[Reference, Query(alias="to")],
    path: PathText = "[]",
    limit: Limit = limits.WEB_DIFF_CHANGES,
) -> Response:
    """What differs between any two snapshots of any two runs."""
    steps = steps_of(path)

    def read(site: Site) -> Json:
        old, new = site.reference(before), site.reference(after)
        return states.diff_json(site.archive, old, new, steps, limit)

    return await answer_json(request, read)
