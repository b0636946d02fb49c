"""Routes that read states: what stands somewhere, what changed, who set it, where something is found."""

import time
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from orchestra import limits
from orchestra.history.paths import Path
from orchestra.history.references import resolve
from orchestra.ports.store import Row, RunRow
from orchestra.web.answers import BYTES, FRESH, file_answer, json_line
from orchestra.web.errors import BadRequest
from orchestra.web.parameters import (
    At,
    AtQuery,
    Expression,
    Limit,
    PathText,
    Reference,
    RunName,
    Version,
    steps_of,
)
from orchestra.web.shapes import KNOWN, BlameOut, DiffOut, FirstOut, MatchesOut, SeqsOut, StateOut, sends
from orchestra.web.site import Site, answer_json, answer_json_long, answer_tagged, site_of
from orchestra.web.views import states
from orchestra.web.views.common import Json

router = APIRouter(prefix="/api", tags=["states"])
_STATE: Final = KNOWN | sends("text/plain", BYTES)
_LINES: Final = "application/x-ndjson"
_SLICE_SECONDS: Final = 0.1


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
    steps = steps_of(path)
    if raw:
        return await _raw_value(site_of(request), run, at, steps)

    def make(site: Site, row: Row) -> Json:
        return states.state_json(site.archive, row, steps, budget=budget, offset=offset, limit=limit)

    return await answer_tagged(request, run, at, v, make)


@router.get("/runs/{run}/snapshots/{at}/changes", response_model=DiffOut, responses=KNOWN)
async def changes(
    request: Request, run: RunName, at: At, limit: Limit = limits.WEB_DIFF_CHANGES, v: Version = None
) -> Response:
    """What a snapshot changed, against what it builds on."""
    return await answer_tagged(
        request, run, at, v, lambda site, row: states.changes_json(site.archive, row, limit)
    )


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
        old, new = (resolve(site.archive, each) for each in (before, after))
        return states.diff_json(site.archive, old, new, steps, limit)

    return await answer_json(request, read)


# --- searching the history of a run


@router.get("/runs/{run}/blame", response_model=BlameOut)
async def blame(request: Request, run: RunName, path: PathText, at: AtQuery = "head") -> Response:
    """Which snapshot and which agent last set the value at a path."""
    steps = steps_of(path)
    return await answer_json_long(
        request, lambda site, check: states.blame_json(site.archive, site.row(run, at), steps, check)
    )


@router.get("/runs/{run}/touches", response_model=SeqsOut)
async def touches(request: Request, run: RunName, path: PathText) -> Response:
    """The snapshots that changed the value at a path."""
    steps = steps_of(path)
    return await answer_json_long(
        request, lambda site, check: states.touches(site.archive, site.run_row(run), steps, check)
    )


@router.get("/runs/{run}/first", response_model=FirstOut)
async def first(request: Request, run: RunName, expr: Expression) -> Response:
    """The first snapshot where a condition holds."""
    return await answer_json_long(
        request, lambda site, check: states.first(site.archive, site.run_row(run), expr, check)
    )


@router.get("/runs/{run}/matches", response_model=MatchesOut)
async def matches(
    request: Request,
    run: RunName,
    expr: Expression,
    limit: Annotated[int, Query(ge=1, le=limits.WEB_OUTLINE_ROWS)] = limits.WEB_OUTLINE_ROWS,
) -> Response:
    """Every snapshot where a condition holds."""
    return await answer_json_long(
        request, lambda site, check: states.matches(site.archive, site.run_row(run), expr, limit, check)
    )


@router.get("/runs/{run}/search", name="search", response_class=StreamingResponse, responses=sends(_LINES))
async def search_text(
    request: Request,
    run: RunName,
    q: Annotated[str, Query(min_length=1, max_length=limits.WEB_SEARCH_CHARS)],
    limit: Annotated[int, Query(ge=1, le=limits.WEB_SEARCH_HITS_MAX)] = limits.WEB_SEARCH_HITS,
) -> Response:
    """Where a text came from: a line of JSON for each hit, as they are found, and one at the end."""
    site = site_of(request)
    row = await site.read(lambda: site.run_row(run))
    return StreamingResponse(_lines(site, row, q, limit), media_type=_LINES, headers={"Cache-Control": FRESH})


async def _lines(site: Site, run: RunRow, text: str, limit: int) -> AsyncIterator[bytes]:
    """The hits, line by line. The search goes on only while somebody reads."""
    found, has_ended = states.hits(site.archive, run, text, limit), False
    while not has_ended:
        hits, has_ended = await site.read(lambda: _next_hits(found))
        if hits:
            yield b"".join(json_line(hit) + b"\n" for hit in hits)


def _next_hits(found: Iterator[Json | None]) -> tuple[list[Json], bool]:
    """What is found within a moment, and whether that was all."""
    until, hits = time.monotonic() + _SLICE_SECONDS, list[Json]()
    for hit in found:
        if hit is not None:
            hits.append(hit)
        if time.monotonic() > until:
            return hits, False
    return hits, True
