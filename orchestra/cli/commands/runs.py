"""`orchestra runs`: the runs of a store."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Limit, OfWorkflow, StoreUrl, parse_limit, read_statuses
from orchestra.cli.render.run_list import STATUSES, list_runs
from orchestra.cli.render.screen import PAGE
from orchestra.errors import BadSetting
from orchestra.ids import RunId
from orchestra.ports.store import RunQuery


def runs(
    *,
    status: Annotated[
        list[str] | None, Parameter(metavar="STATUS", help="Only runs with this status; may be repeated.")
    ] = None,
    workflow: OfWorkflow = None,
    family: Annotated[str | None, Parameter(metavar="RUN", help="Only this run and its forks.")] = None,
    contains: Annotated[
        str | None, Parameter(metavar="TEXT", help="Only runs with this in their id.")
    ] = None,
    limit: Limit = PAGE,
    offset: Annotated[int, Parameter(metavar="N", help="Leave out that many of the newest.")] = 0,
    spent: Annotated[bool, Parameter(help="Show calls, tokens and what was paid instead.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """List the runs of a store, newest first.

    A run whose process died or was stopped is shown as interrupted: it can be resumed.
    """
    if offset < 0:
        raise BadSetting(setting="--offset", value=offset, reason="it counts runs")
    query = RunQuery(
        status=read_statuses(status, STATUSES),
        workflow=workflow,
        family=_family(family, store) if family else None,
        contains=contains,
        offset=offset,
    )
    list_runs(query, limit=parse_limit(limit), store=store, as_json=json, spent=spent)


def _family(given: str, store: str | None) -> RunId:
    """The family of a run, which may be a fork, told by the beginning of its id."""
    from orchestra.cli.store import archive
    from orchestra.history.references import resolve_run

    with archive(store) as opened:
        return opened.run(resolve_run(opened, given)).family
