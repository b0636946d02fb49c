"""Routes that search the history of a run: who set a value, where a condition holds, where a text is."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from orchestra import limits
from orchestra.ports.store import RunRow
from orchestra.web.answers import FRESH, json_line
from orchestra.web.parameters import AtQuery, Expression, PathText, RunName, steps_of
from orchestra.web.shapes.common import sends
from orchestra.web.shapes.states import BlameOut, FirstOut, MatchesOut, SeqsOut
from orchestra.web.site import Site, answer_json_long, site_of
from orchestra.web.views import search, states
from orchestra.web.views.fields import Json

router = APIRouter(prefix="/api/runs/{run}", tags=["states"])
_LINES: Final = "application/x-ndjson"
_SLICE_SECONDS: Final = 0.1


@router.get("/blame", response_model=BlameOut)
async def blame(request: Request, run: RunName, path: PathText, at: AtQuery = "head") -> Response:
    """Which snapshot and which agent last set the value at a path."""
    steps = steps_of(path)
    return await answer_json_long(
        request, lambda site, check: states.blame_json(site.archive, site.row(run, at), steps, check)
    )


@router.get("/touches", response_model=SeqsOut)
async def touches(request: Request, run: RunName, path: PathText) -> Response:
    """The snapshots that changed the value at a path."""
    steps = steps_of(path)
    return await answer_json_long(
        request, lambda site, check: search.touches(site.archive, site.run_row(run), steps, check)
    )


@router.get("/first", response_model=FirstOut)
async def first(request: Request, run: RunName, expr: Expression) -> Response:
    """The first snapshot where a condition holds."""
    return await answer_json_long(
        request, lambda site, check: search.first(site.archive, site.run_row(run), expr, check)
    )


@router.get("/matches", response_model=MatchesOut)
async def matches(
    request: Request,
    run: RunName,
    expr: Expression,
    limit: Annotated[int, Query(ge=1, le=limits.WEB_OUTLINE_ROWS)] = limits.WEB_OUTLINE_ROWS,
) -> Response:
    """Every snapshot where a condition holds."""
    return await answer_json_long(
        request, lambda site, check: search.matches(site.archive, site.run_row(run), expr, limit, check)
    )


@router.get("/search", name="search", response_class=StreamingResponse, responses=sends(_LINES))
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
    found, has_ended = search.hits(site.archive, run, text, limit), False
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
