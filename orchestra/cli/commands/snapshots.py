"""`orchestra snapshots`: the snapshots of a run, as a page of a list."""

from typing import Annotated, get_args

import attrs
from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import (
    AsJson,
    Limit,
    RunArgument,
    Since,
    StoreUrl,
    Task,
    parse_limit,
    read_statuses,
    words,
)
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import (
    PAGE,
    Column,
    Line,
    Screen,
    Span,
    Style,
    print_json,
    print_table,
    screen,
)
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import one_day, parse_time, short
from orchestra.cli.render.triggers import trigger_spans
from orchestra.cli.store import archive, option, run_of_task
from orchestra.errors import BadSetting, DamageError
from orchestra.history.archive import Archive
from orchestra.history.describe import Described, Describer, described_json, main_event, sentence
from orchestra.history.references import resolve_run
from orchestra.ids import RunId
from orchestra.model.snapshot import TRIGGER_ALIASES, TRIGGERS, Trigger
from orchestra.model.state import RunStatus
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import Row, RowQuery, RunRow, Store


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
    since: Since = None,
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
    query = RowQuery(
        first=None if after is None else after + 1,
        last=None if before is None else before - 1,
        triggers=tuple(_trigger(each) for each in words(trigger)),
        phase=phase,
        agent=agent,
        status=read_statuses(status, get_args(RunStatus)),
        since=parse_time(since, option="--since") if since else None,
        until=parse_time(until, option="--until") if until else None,
        marked=marked or None,
    )
    with archive(store) as opened:
        name = resolve_run(opened, run)
        return print_page(opened, name, query, limit, store, json, newest_first=newest_first)


def list_checkpoints(
    *, task: Task = None, limit: Limit = PAGE, store: StoreUrl = None, json: AsJson = False
) -> int:
    """List the snapshots of a run, by default of the newest one; the name of the source documents."""
    with archive(store) as opened:
        return print_page(opened, run_of_task(opened, task), RowQuery(), limit, store, json)


def _trigger(text: str) -> Trigger:
    wanted = text.replace("-", "_")
    known: dict[str, Trigger] = {**TRIGGER_ALIASES, **{each: each for each in TRIGGERS}}
    if wanted in known:
        return known[wanted]
    raise BadSetting(setting="--trigger", value=text, reason=f"triggers are {', '.join(TRIGGERS)}")


def print_page(
    opened: Archive,
    run: RunId,
    query: RowQuery,
    limit: int,
    store: str | None,
    as_json: bool,
    *,
    newest_first: bool = False,
) -> int:
    """Print the newest snapshots of a run that fit a query; returns the exit code."""
    most = parse_limit(limit)
    wanted = attrs.evolve(query, run=run, newest_first=True, limit=None if most is None else most + 1)
    rows, damage = _read_rows(opened.store, wanted)
    describer = Describer(opened)
    newest = [describer.describe(row, damage.get(row.seq)) for row in rows[:most]]
    found = newest if newest_first else newest[::-1]
    more = most is not None and len(rows) > most
    if as_json:
        print_json([described_json(each) for each in found], more=more)
    else:
        older = f"--before {newest[-1].row.seq}" if more else ""
        _print(screen(), opened, opened.run(run), found, older, store, filtered=query != RowQuery())
    return DAMAGE if describer.damage or any(each.damage for each in found) else OK


def _read_rows(store: Store, query: RowQuery) -> tuple[list[Row], dict[int, str]]:
    """Rows with their content; where that is damaged, the columns alone and what is wrong, by number."""
    try:
        return store.rows(query), {}
    except DamageError:
        bare = store.rows(attrs.evolve(query, content=False))
    rows: list[Row] = []
    damage: dict[int, str] = {}
    for row in bare:
        try:
            rows += store.rows(RowQuery(run=row.run, first=row.seq, last=row.seq))
        except DamageError as error:
            rows.append(row)
            damage[row.seq] = str(error)
    return rows, damage


def _print(
    out: Screen,
    opened: Archive,
    run: RunRow,
    found: list[Described],
    older: str,
    store: str | None,
    *,
    filtered: bool,
) -> None:
    amount = total = count(run.head + 1, "snapshot")
    if len(found) <= run.head:
        amount = f"{len(found):,} of {total}" + (" (filtered)" if filtered else "")
    status = status_cell(shown_status(opened.store, run))
    out.print_cut([(run.run, "bold"), ("  ", ""), *status, (f"  {amount}", "dim")])
    if found:
        out.line()
        dates = out.columns is None or not one_day([each.row.at for each in found])
        print_table(out, _columns(dates), found, dim=lambda each: each.row.pruned)
    for each in found:
        if each.damage:
            out.line(("damaged: ", "bad"), each.damage)
    hints = [(f"orchestra snapshots {run.run} {older}{option(store)}", "older ones")] * bool(older)
    hints += [(f"orchestra show {each.reference}{option(store)}", "its state") for each in found[-1:]]
    out.hints(*hints)


def _columns(dates: bool) -> tuple[Column[Described], ...]:
    return (
        Column("#", lambda each: (str(each.row.seq), "bold" if each.row.marked else ""), align="right"),
        Column("", _signs),
        Column("time", lambda each: (short(each.row.at, with_date=dates), "dim")),
        Column("trigger", lambda each: trigger_spans(each.row.triggers, short=True), least=12),
        Column("who", _who, least=5, drop=2),
        Column("what happened", _what, least=30),
        Column("phase", lambda each: (each.row.phase or "", "dim"), least=5, drop=3),
        Column("conf", _confidence, align="right", drop=1),
        Column(
            "size",
            lambda each: ("pruned" if each.row.pruned else size(each.row.size), "dim"),
            "right",
            drop=4,
        ),
    )


def _signs(found: Described) -> Line:
    mark = "◆" if found.pin else "✖" if found.damage else "●" if found.row.marked else "·"
    style: Style = "warn" if found.pin else "bad" if found.damage else "accent" if found.row.marked else "dim"
    return [(mark, style), ("✎" if found.note else "", "warn")]


def _who(found: Described) -> Line:
    first, *others = found.row.agents or ("",)
    return [(first, ""), (f" +{len(others)}" if others else "", "dim")]


def _what(found: Described) -> Span:
    event = main_event(found.header) if found.header else None
    what = sentence(event, brief=True) if event else "damaged" if found.damage else ""
    return what, "bad" if found.damage else "" if found.row.marked else "dim"


def _confidence(found: Described) -> str:
    return "" if found.header is None or found.header.confidence is None else f"{found.header.confidence:.2f}"
