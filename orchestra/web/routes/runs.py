"""Routes that read runs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.history.verify.verifier import verify_run
from orchestra.model.snapshot import TRIGGERS
from orchestra.ports.store import RunQuery
from orchestra.version import VERSION
from orchestra.web.answers import json_answer
from orchestra.web.parameters import RunName, Word, comma_list, site_of
from orchestra.web.shapes import found as more
from orchestra.web.shapes import runs as shapes
from orchestra.web.site import Site, now
from orchestra.web.views.checks import verify_json
from orchestra.web.views.definitions import workflow
from orchestra.web.views.runs import PEOPLE, Json, RunsAsked, outputs_of, waits_of
from orchestra.web.views.snapshots import decisions

router = APIRouter(prefix="/api", tags=["runs"])


@router.get("/info", response_model=shapes.InfoOut)
async def info(request: Request) -> Response:
    """What this browser looks at, and what it may do."""
    site = site_of(request)
    facts = await site.read(site.facts)
    return json_answer(
        request,
        {
            "version": VERSION,
            **facts,
            "read_only": site.read_only,
            "actions": not site.read_only,
            "now": now(),
            "triggers": list(TRIGGERS),
            "bundle": False,
        },
    )


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
    site = site_of(request)
    asked = RunsAsked(
        standings=comma_list(status),
        workflow=workflow or None,
        contains=contains or None,
        limit=limit,
        offset=offset,
    )
    return json_answer(request, await site.read(lambda: site.runs.listed(asked)))


@router.get("/runs/{run}", response_model=shapes.RunInFullOut)
async def one_run(request: Request, run: RunName) -> Response:
    """Everything about one run, as of its newest snapshot."""
    site = site_of(request)

    def read() -> Json:
        row = site.run_row(run)
        return site.details.of(row, playing=row.run in site.playing)

    return json_answer(request, await site.read(read))


@router.get("/families/{run}", response_model=more.FamilyOut)
async def family(request: Request, run: RunName) -> Response:
    """A run with all its forks."""
    site = site_of(request)
    return json_answer(request, await site.read(lambda: site.runs.family(site.run_row(run).family)))


@router.get("/runs/{run}/decisions", response_model=more.DecisionsOut)
async def run_decisions(request: Request, run: RunName) -> Response:
    """Every decision of a run, with what else was considered."""
    site = site_of(request)
    return json_answer(request, await site.read(lambda: decisions(site.archive, site.run_row(run))))


@router.get("/runs/{run}/questions", response_model=more.WaitsOut)
async def run_questions(request: Request, run: RunName) -> Response:
    """What a run waits for, and what it has waited for."""
    site = site_of(request)

    def read() -> Json:
        row = site.run_row(run)
        held = site.archive.part_of(site.archive.row(row.run, row.head), ("waits",))
        return {"waits": waits_of(site.archive, row.run, held, only_open=False)}

    return json_answer(request, await site.read(read))


@router.get("/questions", response_model=more.WaitsOut)
async def questions(request: Request) -> Response:
    """What runs wait for that somebody can give, oldest first."""
    site = site_of(request)
    return json_answer(request, await site.read(lambda: {"waits": _open_waits(site)}))


def _open_waits(site: Site) -> list[Json]:
    query = RunQuery(status=("running", "waiting", "paused"), limit=limits.WEB_COUNTED_RUNS)
    found: list[Json] = []
    for row in site.archive.store.runs(query):
        if site.runs.summary(row)["questions"]:
            held = site.archive.part_of(site.archive.row(row.run, row.head), ("waits",))
            found += [
                wait
                for wait in waits_of(site.archive, row.run, held, only_open=True)
                if wait["kind"] in PEOPLE
            ]
    return sorted(found, key=lambda wait: int(wait["opened_at"]))


@router.get("/runs/{run}/outputs", response_model=more.OutputsOut)
async def outputs(request: Request, run: RunName) -> Response:
    """The files a run has made."""
    site = site_of(request)

    def read() -> Json:
        row = site.run_row(run)
        held = site.archive.part_of(site.archive.row(row.run, row.head), ("outputs",))
        return {"outputs": outputs_of(held)}

    return json_answer(request, await site.read(read))


@router.get("/runs/{run}/workflow", response_model=more.WorkflowOut)
async def run_workflow(request: Request, run: RunName) -> Response:
    """The workflow of a run as a graph, with the way it took."""
    site = site_of(request)
    return json_answer(request, await site.read(lambda: workflow(site.archive, site.run_row(run))))


@router.get("/runs/{run}/verify", response_model=more.VerifiedOut)
async def verify(request: Request, run: RunName) -> Response:
    """Prove every digest, link and reference of a run."""
    site = site_of(request)

    return json_answer(
        request,
        await site.read(lambda: verify_json(verify_run(site.archive, site.run_row(run).run))),
    )
