"""`orchestra snapshots`: the snapshots of a run, as a list."""

from typing import Annotated, get_args

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Limit, RunArgument, StoreUrl
from orchestra.cli.render.paging import PAGE, parse_limit, words
from orchestra.cli.render.snapshot_list import Filters, find_page, print_page
from orchestra.cli.render.times import parse_time
from orchestra.cli.store import archive
from orchestra.errors import BadSetting
from orchestra.history.references import resolve_run
from orchestra.model.snapshot import TRIGGER_ALIASES, TRIGGERS, Trigger
from orchestra.model.state import RunStatus


def snapshots(
    run: RunArgument,
    /,
    *,
    trigger: Annotated[
        list[str] | None, Parameter(metavar="NAME", help="Only with this trigger; may be repeated.")
    ] = None,
    phase: Annotated[str | None, Parameter(metavar="NAME", help="Only in this phase.")] = None,
    agent: Annotated[str | None, Parameter(metavar="NAME", help="Only where this agent took part.")] = None,
    status: Annotated[
        list[str] | None, Parameter(metavar="STATUS", help="Only with this status of the run.")
    ] = None,
    since: Annotated[
        str | None, Parameter(metavar="TIME", help="Not before: 2026-11-15T14:30, or 90s, 15m, 2h, 3d ago.")
    ] = None,
    until: Annotated[str | None, Parameter(metavar="TIME", help="Not after.")] = None,
    marked: Annotated[
        bool, Parameter(negative="--all", help="Only marked ones, or all (the default).")
    ] = False,
    before: Annotated[
        int | None, Parameter(metavar="N", help="Only numbers below this: the page before.")
    ] = None,
    after: Annotated[int | None, Parameter(metavar="N", help="Only numbers above this.")] = None,
    newest_first: Annotated[bool, Parameter(help="Begin with the newest.")] = False,
    limit: Limit = PAGE,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """List the snapshots of a run: the newest page of them, oldest first.

    ● marks a snapshot that was chosen by the settings, ◆ one that is pinned, ✎ one with a note.
    """
    filters = Filters(
        triggers=tuple(_trigger(each) for each in words(trigger or [])),
        phase=phase,
        agent=agent,
        status=tuple(_status(each) for each in words(status or [])),
        since=parse_time(since, option="--since") if since else None,
        until=parse_time(until, option="--until") if until else None,
        marked=marked,
        before=before,
        after=after,
    )
    with archive(store) as opened:
        page = find_page(opened, resolve_run(opened, run), filters, parse_limit(limit))
        return print_page(opened, page, store, json, newest_first=newest_first, filtered=filters != Filters())


def _trigger(text: str) -> Trigger:
    wanted = text.replace("-", "_")
    for each in TRIGGERS:
        if wanted == each:
            return each
    if wanted in TRIGGER_ALIASES:
        return TRIGGER_ALIASES[wanted]
    raise BadSetting(setting="--trigger", value=text, reason=f"triggers are {', '.join(TRIGGERS)}")


def _status(text: str) -> str:
    known = get_args(RunStatus)
    if text not in known:
        raise BadSetting(setting="--status", value=text, reason=f"a status is one of {', '.join(known)}")
    return text
