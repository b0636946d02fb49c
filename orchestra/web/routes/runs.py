"""Routes that read runs and their snapshots."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.ids import Instant, wall_clock
from orchestra.ports.store import RowQuery, RunQuery
from orchestra.web import shapes
from orchestra.web.parameters import NUMBER, At, Micros, RunName, Seq, Word, comma_list
from orchestra.web.site import Site, answer_json, answer_json_long
from orchestra.web.views.common import CheckWanted, Json
from orchestra.web.views.runs import PEOPLE, info_json, newest_part, outputs_of, verify_json, waits_of
from orchestra.web.views.snapshots import columns, decisions, headlines
from orchestra.web.views.workflow import workflow_json

router = APIRouter(prefix="/api", tags=["runs"])
of_snapshots = APIRouter(prefix="/api/runs/{run}", tags=["snapshots"])


@router.get("/info", response_model=shapes.InfoOut)
async def info(request: Request) -> Response:
    """What this browser looks at, and what it may do."""

    def read(site: Site) -> Json:
        writes, store = not site.is_read_only, site.archive.store.place
        return info_json(
            site.archive, store=store, read_only=not writes, actions=writes, now=wall_clock(), bundle=False
        )

    return await answer_json(request, read)


@router.get("/runs", response_model=shapes.RunsOut)
async def runs(
    request: Request,
    status: Word = None,
    workflow: Word = None,
    contains: Word = None,
    limit: Annotated[int, Query(ge=1, le=limits.WEB_RUNS_MAX)] = limits.WEB_RUNS,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
) -> Response:
    """The runs of the store, newest first; `status` may name several, separated by commas."""
    query = RunQuery(
        status=comma_list(status),
        workflow=workflow or None,
        contains=contains or None,
        limit=limit,
        offset=offset,
    )
    return await answer_json(request, lambda site: site.runs.list_runs(query))


@router.get("/runs/{run}", response_model=shapes.RunInFullOut)
async def one_run(request: Request, run: RunName) -> Response:
    """Everything about one run, as of its newest snapshot."""

    def read(site: Site) -> Json:
        row = site.run_row(run)
        return site.runs.details(row, playing=row.run in site.playing)

    return await answer_json(request, read)


@router.get("/families/{run}", response_model=shapes.FamilyOut)
async def family(request: Request, run: RunName) -> Response:
    """A run with all its forks."""
    return await answer_json(request, lambda site: site.runs.family(site.run_row(run).family))


@router.get("/runs/{run}/decisions", response_model=shapes.DecisionsOut)
async def run_decisions(request: Request, run: RunName) -> Response:
    """Every decision of a run, with what else was considered."""
    return await answer_json(request, lambda site: decisions(site.archive, site.run_row(run)))


@router.get("/runs/{run}/questions", response_model=shapes.WaitsOut)
async def run_questions(request: Request, run: RunName) -> Response:
    """What a run waits for, and what it has waited for."""

    def read(site: Site) -> Json:
        row = site.run_row(run)
        held = newest_part(site.archive, row, "waits")
        return {"waits": waits_of(site.archive, row.run, held, only_open=False)}

    return await answer_json(request, read)


@router.get("/questions", response_model=shapes.WaitsOut)
async def questions(request: Request) -> Response:
    """What runs wait for that somebody can give, oldest first."""

    def read(site: Site) -> Json:
        query = RunQuery(status=("running", "waiting", "paused"), limit=limits.WEB_COUNTED_RUNS)
        found: list[Json] = []
        for row in site.archive.store.runs(query):
            if site.runs.summary(row)["questions"]:
                held = newest_part(site.archive, row, "waits")
                found += waits_of(site.archive, row.run, held, only_open=True)
        given = (wait for wait in found if wait["kind"] in PEOPLE)
        return {"waits": sorted(given, key=lambda wait: int(wait["opened_at"]))}

    return await answer_json(request, read)


@router.get("/runs/{run}/outputs", response_model=shapes.OutputsOut)
async def outputs(request: Request, run: RunName) -> Response:
    """The files a run has made."""
    return await answer_json(
        request,
        lambda site: {"outputs": outputs_of(newest_part(site.archive, site.run_row(run), "outputs"))},
    )


@router.get("/runs/{run}/workflow", response_model=shapes.WorkflowOut)
async def run_workflow(request: Request, run: RunName) -> Response:
    """The workflow of a run as a graph, with the way it took."""
    return await answer_json(request, lambda site: workflow_json(site.archive, site.run_row(run)))


@router.get("/runs/{run}/verify", response_model=shapes.VerifiedOut)
async def verify(request: Request, run: RunName) -> Response:
    """Prove every digest, link and reference of a run."""
    return await answer_json(request, lambda site: verify_json(site.archive, site.run_row(run).run))


# --- snapshots: the columns of all, the headlines of some, one in full


@of_snapshots.get("/snapshots", response_model=shapes.SnapshotsOut)
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


@of_snapshots.get("/headlines", response_model=shapes.HeadlinesOut)
async def run_headlines(
    request: Request, run: RunName, first: Annotated[int, Query(ge=0, le=NUMBER)] = 0, last: Seq = None
) -> Response:
    """What happened in some snapshots, at most 500 at once."""
    end = min(first + limits.WEB_HEADLINE_ROWS - 1, NUMBER if last is None else last)
    return await answer_json(request, lambda site: headlines(site.archive, site.run_row(run), first, end))


@of_snapshots.get("/outline", response_model=shapes.OutlineOut)
async def outline(
    request: Request, run: RunName, after: Annotated[int, Query(ge=-1, le=NUMBER)] = -1
) -> Response:
    """What a strip over all snapshots shows, from one on; ask again while there is `more`."""
    return await answer_json_long(
        request, lambda site, check_wanted: site.outlines.json(site.run_row(run), after, check_wanted)
    )


@of_snapshots.get("/snapshots/{at}", response_model=shapes.SnapshotOut)
async def snapshot(request: Request, run: RunName, at: At) -> Response:
    """One snapshot: what happened, what was decided and spent, what it builds on."""
    return await answer_json(request, lambda site: site.snapshots.json(site.row(run, at)))
