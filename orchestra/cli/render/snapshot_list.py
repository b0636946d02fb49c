"""Snapshots of a run, as a page of a list."""

from typing import Final, NamedTuple

import attrs

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.paging import tell_page
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Screen, Span, Style, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import one_day, short
from orchestra.cli.render.triggers import trigger_spans
from orchestra.cli.store import option
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.describe import Described, Describer, described_json, main_event, sentence
from orchestra.ids import Instant, RunId
from orchestra.model.snapshot import Trigger
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import Row, RowQuery, RunRow, Store

_COLUMNS: Final = (
    Column("#", align="right"),
    Column(""),
    Column("time"),
    Column("trigger", least=12),
    Column("who", least=5, drop=2),
    Column("what happened", least=30),
    Column("phase", least=5, drop=3),
    Column("conf", align="right", drop=1),
    Column("size", align="right", drop=4),
)


class Filters(NamedTuple):
    """Which snapshots are wanted."""

    triggers: tuple[Trigger, ...] = ()
    phase: str | None = None
    agent: str | None = None
    status: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    marked: bool = False
    before: int | None = None
    after: int | None = None


class Page(NamedTuple):
    """Some snapshots of a run, by sequence number, and whether there are older ones."""

    run: RunRow
    rows: list[Row]
    more: bool
    damage: dict[int, str]
    """Why the content of a snapshot cannot be read, by its number."""


def find_page(opened: Archive, run: RunId, filters: Filters, limit: int | None) -> Page:
    """The newest snapshots of a run that fit, by sequence number."""
    query = RowQuery(
        run=run,
        first=None if filters.after is None else filters.after + 1,
        last=None if filters.before is None else filters.before - 1,
        triggers=filters.triggers,
        phase=filters.phase,
        agent=filters.agent,
        status=filters.status,
        since=filters.since,
        until=filters.until,
        marked=True if filters.marked else None,
        newest_first=True,
        limit=None if limit is None else limit + 1,
    )
    rows, damage = _read_rows(opened.store, query)
    more = limit is not None and len(rows) > limit
    return Page(opened.run(run), rows[:limit][::-1], more, damage)


def _read_rows(store: Store, query: RowQuery) -> tuple[list[Row], dict[int, str]]:
    """Rows with their content; where that is damaged, the columns alone and what is wrong."""
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


def print_page(
    opened: Archive, page: Page, store: str | None, as_json: bool, *, newest_first: bool, filtered: bool
) -> int:
    """Print a page of snapshots; returns the exit code."""
    describer = Describer(opened)
    found = [describer.describe(row, page.damage.get(row.seq)) for row in page.rows]
    if newest_first:
        found.reverse()
    if as_json:
        print_json([described_json(each) for each in found])
        tell_page(len(found), page.more)
    else:
        cell = status_cell(shown_status(opened.store, page.run))
        _print(screen(), page, cell, found, store, filtered=filtered)
    damaged = describer.damage or any(each.damage for each in found)
    return DAMAGE if damaged else OK


def _print(
    out: Screen, page: Page, cell: Line, found: list[Described], store: str | None, *, filtered: bool
) -> None:
    run = page.run
    amount: Span = (f"  {_amount(page, filtered)}", "dim")
    out.print_cut([(run.run, "bold"), ("  ", ""), *cell, amount])
    if found:
        out.line()
        dates = out.columns is None or not one_day([each.row.at for each in found])
        print_table(out, _COLUMNS, [_cells(each, dates) for each in found])
    for each in found:
        if each.damage:
            out.line(("damaged: ", "bad"), each.damage)
    _hints(out, page, found, store)


def _amount(page: Page, filtered: bool) -> str:
    total, shown = page.run.head + 1, len(page.rows)
    if shown == total:
        return count(total, "snapshot")
    return f"{shown:,} of {count(total, 'snapshot')}" + (" (filtered)" if filtered else "")


def _hints(out: Screen, page: Page, found: list[Described], store: str | None) -> None:
    older = f"orchestra snapshots {page.run.run} --before {page.rows[0].seq}{option(store)}" if found else ""
    hints = [(older, "older ones")] * page.more
    hints += [(f"orchestra show {each.reference}{option(store)}", "its state") for each in found[-1:]]
    out.hints(*hints)


def _cells(found: Described, dates: bool) -> list[Line]:
    row, header = found.row, found.header
    event = main_event(header) if header else None
    what = "damaged" if found.damage else ""
    tone: Style = "dim" if row.pruned or not row.marked else ""
    cells: list[Line] = [
        [(str(row.seq), "dim" if row.pruned else "bold" if row.marked else "")],
        _signs(found),
        [(short(row.at, with_date=dates), "dim")],
        trigger_spans(row.triggers, short=True),
        _who(row.agents),
        [(what if event is None else sentence(event, brief=True), "bad" if found.damage else tone)],
        [(row.phase or "", "dim")],
        [("" if header is None or header.confidence is None else f"{header.confidence:.2f}", "")],
        [("pruned" if row.pruned else size(row.size), "dim")],
    ]
    return [[(text, "dim") for text, _ in cell] for cell in cells] if row.pruned else cells


def _signs(found: Described) -> Line:
    mark = "◆" if found.pin else "✖" if found.damage else "●" if found.row.marked else "·"
    style: Style = "warn" if found.pin else "bad" if found.damage else "accent" if found.row.marked else "dim"
    return [(mark, style), ("✎" if found.note else "", "warn")]


def _who(agents: tuple[str, ...]) -> Line:
    if len(agents) > 1:
        return [(agents[0], ""), (f" +{len(agents) - 1}", "dim")]
    return [(", ".join(agents), "")]


def print_outcome(reader: Archive, row: Row, what: str, as_json: bool) -> None:
    """Say what became of a snapshot; as JSON, the snapshot as it is now."""
    found = Describer(reader).describe(reader.row(row.run, row.seq))
    if as_json:
        print_json(described_json(found))
    else:
        screen().line((found.reference, "bold"), f" {what}.")
