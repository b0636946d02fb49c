"""Routes that read snapshots: the columns of all, the headlines of some, one in full."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.ids import Instant
from orchestra.ports.store import RowQuery
from orchestra.web.answers import encode, json_answer
from orchestra.web.parameters import At, Micros, RunName, Seq, Word, comma_list, site_of
from orchestra.web.shapes import runs as shapes
from orchestra.web.views.cancel import Wanted
from orchestra.web.views.columns import columns, flags
from orchestra.web.views.events import headlines
from orchestra.web.views.runs import Json

router = APIRouter(prefix="/api/runs/{run}", tags=["snapshots"])


@router.get("/snapshots", response_model=shapes.SnapshotsOut)
async def snapshots(
    request: Request,
    run: RunName,
    first: Seq = None,
    last: Seq = None,
    trigger: Word = None,
    phase: Word = None,
    agent: Word = None,
    status: Word = None,
    since: Micros = None,
    until: Micros = None,
    marked: bool | None = None,
) -> Response:
    """The snapshots of a run as columns; `trigger` and `status` may name several, separated by commas."""
    site = site_of(request)

    def read(wanted: Wanted) -> bytes:
        row = site.run_row(run)
        query = RowQuery(
            run=row.run,
            first=first,
            last=last,
            triggers=comma_list(trigger),
            phase=phase or None,
            agent=agent or None,
            status=comma_list(status),
            since=None if since is None else Instant(since),
            until=None if until is None else Instant(until),
            marked=marked,
            content=False,
        )
        extra = flags(site.archive, row, site.runs.forks(row))
        return encode(columns(site.archive.store, row, query, extra=extra, wanted=wanted))

    return json_answer(request, await site.read_long(request, read))


@router.get("/headlines", response_model=shapes.HeadlinesOut)
async def run_headlines(
    request: Request,
    run: RunName,
    first: Annotated[int, Query(ge=0, le=1 << 53)] = 0,
    last: Seq = None,
) -> Response:
    """What happened in some snapshots, at most 500 at once."""
    site = site_of(request)
    end = min(first + limits.WEB_HEADLINE_ROWS - 1, (1 << 53) if last is None else last)
    return json_answer(
        request, await site.read(lambda: headlines(site.archive, site.run_row(run), first, end))
    )


@router.get("/outline", response_model=shapes.OutlineOut)
async def outline(
    request: Request, run: RunName, after: Annotated[int, Query(ge=-1, le=1 << 53)] = -1
) -> Response:
    """What a strip over all snapshots shows, from one on; ask again while there is `more`."""
    site = site_of(request)

    def read(wanted: Wanted) -> bytes:
        return encode(site.outlines.of(site.run_row(run), after, wanted))

    return json_answer(request, await site.read_long(request, read))


@router.get("/snapshots/{at}", response_model=shapes.SnapshotOut)
async def snapshot(request: Request, run: RunName, at: At) -> Response:
    """One snapshot: what happened, what was decided and spent, what it builds on."""
    site = site_of(request)

    def read() -> Json:
        return site.snapshots.of(site.row(run, at))

    return json_answer(request, await site.read(read))
