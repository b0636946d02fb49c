"""Routes that read runs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.history.verify.verifier import verify_run
from orchestra.ports.store import RunQuery
from orchestra.web.parameters import RunName, Word, comma_list
from orchestra.web.shapes.runs import (
    FamilyOut,
    InfoOut,
    OutputsOut,
    RunInFullOut,
    RunsOut,
    VerifiedOut,
    WaitsOut,
)
from orchestra.web.shapes.snapshots import DecisionsOut
from orchestra.web.shapes.workflow import WorkflowOut
from orchestra.web.site import Site, answer_json, now
from orchestra.web.views.fields import Json
from orchestra.web.views.runs import PEOPLE, info_json, newest_part, outputs_of, verify_json, waits_of
from orchestra.web.views.snapshots import decisions
from orchestra.web.views.workflow import workflow_json

router = APIRouter(prefix="/api", tags=["runs"])


@router.get("/info", response_model=InfoOut)
async def info(request: Request) -> Response:
    """What this browser looks at, and what it may do."""

    def read(site: Site) -> Json:
        writes, store = not site.is_read_only, site.archive.store.place
        return info_json(
            site.archive, store=store, read_only=not writes, actions=writes, now=now(), bundle=False
        )

    return await answer_json(request, read)


@router.get("/runs", response_model=RunsOut)
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


@router.get("/runs/{run}", response_model=RunInFullOut)
async def one_run(request: Request, run: RunName) -> Response:
    """Everything about one run, as of its newest snapshot."""

    def read(site: Site) -> Json:
        row = site.run_row(run)
        return site.runs.details(row, playing=row.run in site.playing)

    return await answer_json(request, read)


@router.get("/families/{run}", response_model=FamilyOut)
async def family(request: Request, run: RunName) -> Response:
    """A run with all its forks."""
    return await answer_json(request, lambda site: site.runs.family(site.run_row(run).family))


@router.get("/runs/{run}/decisions", response_model=DecisionsOut)
async def run_decisions(request: Request, run: RunName) -> Response:
    """Every decision of a run, with what else was considered."""
    return await answer_json(request, lambda site: decisions(site.archive, site.run_row(run)))


@router.get("/runs/{run}/questions", response_model=WaitsOut)
async def run_questions(request: Request, run: RunName) -> Response:
    """What a run waits for, and what it has waited for."""

    def read(site: Site) -> Json:
        row = site.run_row(run)
        held = newest_part(site.archive, row, "waits")
        return {"waits": waits_of(site.archive, row.run, held, only_open=False)}

    return await answer_json(request, read)


@router.get("/questions", response_model=WaitsOut)
async def questions(request: Request) -> Response:
    """What runs wait for that somebody can give, oldest first."""
    return await answer_json(request, lambda site: {"waits": _open_waits(site)})


def _open_waits(site: Site) -> list[Json]:
    query = RunQuery(status=("running", "waiting", "paused"), limit=limits.WEB_COUNTED_RUNS)
    found: list[Json] = []
    for row in site.archive.store.runs(query):
        if site.runs.summary(row)["questions"]:
            held = newest_part(site.archive, row, "waits")
            found += waits_of(site.archive, row.run, held, only_open=True)
    return sorted((wait for wait in found if wait["kind"] in PEOPLE), key=lambda wait: int(wait["opened_at"]))


@router.get("/runs/{run}/outputs", response_model=OutputsOut)
async def outputs(request: Request, run: RunName) -> Response:
    """The files a run has made."""

    def read(site: Site) -> Json:
        return {"outputs": outputs_of(newest_part(site.archive, site.run_row(run), "outputs"))}

    return await answer_json(request, read)


@router.get("/runs/{run}/workflow", response_model=WorkflowOut)
async def run_workflow(request: Request, run: RunName) -> Response:
    """The workflow of a run as a graph, with the way it took."""
    return await answer_json(request, lambda site: workflow_json(site.archive, site.run_row(run)))


@router.get("/runs/{run}/verify", response_model=VerifiedOut)
async def verify(request: Request, run: RunName) -> Response:
    """Prove every digest, link and reference of a run."""
    return await answer_json(
        request, lambda site: verify_json(verify_run(site.archive, site.run_row(run).run))
    )
