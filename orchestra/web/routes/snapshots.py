"""Routes that read snapshots: the columns of all, the headlines of some, one in full."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.ids import Instant
from orchestra.ports.store import RowQuery
from orchestra.web.parameters import NUMBER, At, Micros, RunName, Seq, Word, comma_list
from orchestra.web.shapes.snapshots import HeadlinesOut, OutlineOut, SnapshotOut, SnapshotsOut
from orchestra.web.site import Site, answer_json, answer_json_long
from orchestra.web.views.cancel import CheckWanted
from orchestra.web.views.columns import columns
from orchestra.web.views.events import headlines
from orchestra.web.views.fields import Json

router = APIRouter(prefix="/api/runs/{run}", tags=["snapshots"])


@router.get("/snapshots", response_model=SnapshotsOut)
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

    def read(site: Site, check_wanted: CheckWanted) -> Json:
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
        return columns(site.archive, row, query, site.runs.forks(row), check_wanted)

    return await answer_json_long(request, read)


@router.get("/headlines", response_model=HeadlinesOut)
async def run_headlines(
    request: Request, run: RunName, first: Annotated[int, Query(ge=0, le=NUMBER)] = 0, last: Seq = None
) -> Response:
    """What happened in some snapshots, at most 500 at once."""
    end = min(first + limits.WEB_HEADLINE_ROWS - 1, NUMBER if last is None else last)
    return await answer_json(request, lambda site: headlines(site.archive, site.run_row(run), first, end))


@router.get("/outline", response_model=OutlineOut)
async def outline(
    request: Request, run: RunName, after: Annotated[int, Query(ge=-1, le=NUMBER)] = -1
) -> Response:
    """What a strip over all snapshots shows, from one on; ask again while there is `more`."""
    return await answer_json_long(
        request, lambda site, check_wanted: site.outlines.json(site.run_row(run), after, check_wanted)
    )


@router.get("/snapshots/{at}", response_model=SnapshotOut)
async def snapshot(request: Request, run: RunName, at: At) -> Response:
    """One snapshot: what happened, what was decided and spent, what it builds on."""
    return await answer_json(request, lambda site: site.snapshots.json(site.row(run, at)))
