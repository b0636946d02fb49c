"""Routes that read states: what stands somewhere, what changed, who set it, where a text is."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from orchestra import limits
from orchestra.ports.store import Row
from orchestra.web.answers import encode, json_answer
from orchestra.web.parameters import (
    At,
    AtQuery,
    Expression,
    Limit,
    PathText,
    Reference,
    RunName,
    Version,
    site_of,
    steps_of,
)
from orchestra.web.shapes import found as more
from orchestra.web.site import Site
from orchestra.web.streams import raw_value, search_lines
from orchestra.web.views import search as searching
from orchestra.web.views import states
from orchestra.web.views.cancel import Wanted
from orchestra.web.views.runs import Json

router = APIRouter(prefix="/api", tags=["states"])
_KNOWN: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "The client has it already."}}
_STATE: Final[dict[int | str, dict[str, Any]]] = _KNOWN | {
    200: {"content": {"text/plain": {}, "application/octet-stream": {}}}
}
_LINES: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"application/x-ndjson": {}}}}


async def _of_row(
    request: Request, site: Site, find: Callable[[], Row], v: str | None, make: Callable[[Row], Json]
) -> Response:
    """An answer that depends on a snapshot and on what was asked only; it is known by the digest."""

    def read() -> tuple[str, bytes]:
        row = find()
        tag = row.digest.hex()[:32]
        known = request.headers.get("if-none-match") == f'"{tag}"' and not row.pruned
        return tag, b"" if known else encode(make(row))

    tag, body = await site.read(read)
    return json_answer(request, body, tag=tag, forever=v is not None and tag.startswith(v[:32]))


@router.get("/runs/{run}/snapshots/{at}/state", response_model=more.StateOut, responses=_STATE)
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
        return await raw_value(site, run, at, steps)

    def make(row: Row) -> Json:
        return states.state(site.archive, row, steps, budget=budget, offset=offset, limit=limit)

    return await _of_row(request, site, lambda: site.row(run, at), v, make)


@router.get("/runs/{run}/snapshots/{at}/changes", response_model=more.Diff, responses=_KNOWN)
async def changes(
    request: Request, run: RunName, at: At, limit: Limit = limits.WEB_DIFF_CHANGES, v: Version = None
) -> Response:
    """What a snapshot changed, against what it builds on."""
    site = site_of(request)
    return await _of_row(
        request, site, lambda: site.row(run, at), v, lambda row: states.changes(site.archive, row, limit)
    )


@router.get("/diff", response_model=more.Diff)
async def diff(
    request: Request,
    before: Annotated[Reference, Query(alias="from")],
    after: Annotated[Reference, Query(alias="to")],
    path: PathText = "[]",
    limit: Limit = limits.WEB_DIFF_CHANGES,
) -> Response:
    """What differs between any two snapshots of any two runs."""
    site, steps = site_of(request), steps_of(path)

    def read() -> bytes:
        old, new = site.reference(before), site.reference(after)
        return encode(states.diff_json(site.archive, old, new, steps, limit))

    return json_answer(request, await site.read(read))


@router.get("/runs/{run}/blame", response_model=more.BlameOut)
async def blame(request: Request, run: RunName, path: PathText, at: AtQuery = "head") -> Response:
    """Which snapshot and which agent last set the value at a path."""
    site, steps = site_of(request), steps_of(path)

    def read(wanted: Wanted) -> Json:
        return states.blame_json(site.archive, site.row(run, at), steps, wanted)

    return json_answer(request, await site.read_long(request, read))


@router.get("/runs/{run}/touches", response_model=more.SeqsOut)
async def touches(request: Request, run: RunName, path: PathText) -> Response:
    """The snapshots that changed the value at a path."""
    site, steps = site_of(request), steps_of(path)

    def read(wanted: Wanted) -> Json:
        return searching.touches(site.archive, site.run_row(run), steps, wanted)

    return json_answer(request, await site.read_long(request, read))


@router.get("/runs/{run}/first", response_model=more.FirstOut)
async def first(request: Request, run: RunName, expr: Expression) -> Response:
    """The first snapshot where a condition holds."""
    site = site_of(request)

    def read(wanted: Wanted) -> Json:
        return searching.first(site.archive, site.run_row(run), expr, wanted)

    return json_answer(request, await site.read_long(request, read))


@router.get("/runs/{run}/matches", response_model=more.MatchesOut)
async def matches(
    request: Request,
    run: RunName,
    expr: Expression,
    limit: Annotated[int, Query(ge=1, le=limits.WEB_OUTLINE_ROWS)] = limits.WEB_OUTLINE_ROWS,
) -> Response:
    """Every snapshot where a condition holds."""
    site = site_of(request)

    def read(wanted: Wanted) -> Json:
        return searching.matches(site.archive, site.run_row(run), expr, limit, wanted)

    return json_answer(request, await site.read_long(request, read))


@router.get("/runs/{run}/search", response_class=StreamingResponse, responses=_LINES)
async def search(
    request: Request,
    run: RunName,
    q: Annotated[str, Query(min_length=1, max_length=limits.WEB_SEARCH_CHARS)],
    limit: Annotated[int, Query(ge=1, le=limits.WEB_SEARCH_HITS_MAX)] = limits.WEB_SEARCH_HITS,
) -> Response:
    """Where a text came from: a line of JSON for each hit, as they are found, and one at the end."""
    site = site_of(request)
    row = await site.read(lambda: site.run_row(run))
    return search_lines(site, row, q, limit)
