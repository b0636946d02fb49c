"""The list of runs. Reads the store's own columns and loads little, so that it is there at once."""

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from orchestra.cli.render.screen import PAGE, Column, Line, Style, pick, print_json, print_table, screen
from orchestra.cli.render.times import age
from orchestra.cli.store import archive_over, framer_over, open_if_any, option, quote, store_url
from orchestra.errors import BadSetting, DamageError
from orchestra.ids import iso
from orchestra.ports.run_status import CHANGING, STORED, shown_status
from orchestra.ports.store import DEFAULT_STORE, RowQuery, RunQuery, RunRow, Store

if TYPE_CHECKING:
    from orchestra.model.records import Metrics

_EVERYTHING: Final = 1 << 40
_SPENT: Final = ("api_calls", "tokens_in", "tokens_out", "cost_micros")
_PROPOSED: Final = 1000
_SKIPPED: Final = b" skipped: "
"""What the header of a run that went on without somebody has in it; headers are not compressed."""
STATUSES: Final[dict[str, tuple[str, Style]]] = {
    "pending": ("○", "dim"),
    "running": ("●", "accent"),
    "interrupted": ("◍", "warn"),
    "waiting": ("◌", "warn"),
    "paused": ("‖", "warn"),
    "completed": ("✔", "good"),
    "failed": ("✖", "bad"),
    "cancelled": ("⊘", "dim"),
}


class ShownRun(NamedTuple):
    """A run with the status that people see."""

    row: RunRow
    status: str
    note: str = ""  # whom a completed run went on without
    spent: "Metrics | None" = None  # when it was asked for, and can be read

    @property
    def fork_of(self) -> str:
        """The run that its family began with, if it is another."""
        return self.row.family if self.row.family != self.row.run else ""


_COLUMNS: Final[tuple[Column[ShownRun], ...]] = (
    Column("status", lambda each: status_cell(each.status, each.note), least=24),
    Column("run", lambda each: (each.row.run, "bold"), least=30, name=True),
    Column("", lambda each: ("⑂" if each.fork_of else "", "warn"), drop=1),
    Column("workflow", lambda each: each.row.workflow, least=8, drop=3),
    Column("phase", lambda each: each.row.phase or "", least=8, drop=2),
    Column("snapshots", lambda each: f"{each.row.head + 1:,}", align="right"),
    Column("age", lambda each: (age(each.row.updated_at), "dim"), align="right"),
    Column("fork of", lambda each: (each.fork_of, "dim"), least=20, drop=4, name=True),
)


def _spent_column(title: str, name: str) -> Column[ShownRun]:
    def figure(each: ShownRun) -> str:
        amount = getattr(each.spent, name, 0)
        return (f"{amount / 1_000_000:.4g}" if name == "cost_micros" else f"{amount:,}") if amount else ""

    return Column(title, figure, align="right")


_SPENT_COLUMNS: Final = (
    *_COLUMNS[:4],
    _spent_column("calls", "api_calls"),
    _spent_column("tokens in", "tokens_in"),
    _spent_column("out", "tokens_out"),
    _spent_column("paid", "cost_micros"),
    *_COLUMNS[6:],
)


def list_runs(
    query: RunQuery, *, limit: int | None = PAGE, store: str | None, as_json: bool, spent: bool = False
) -> None:
    """Print the runs of a store that a query asks for, at most `limit` of them; perhaps what they spent."""
    opened, out = open_if_any(store), screen()
    if opened is None and as_json:
        print_json([])
        return
    if opened is None:
        out.line(f"No runs yet: nothing has been recorded into {DEFAULT_STORE.partition(':')[2]}.")
        out.line(
            "Begin with `orchestra init DIR` or `orchestra run FILE`, or name another store with --store."
        )
        return
    with opened:
        found = _find(opened, query, _EVERYTHING if limit is None else limit + 1)
        found = [each._replace(note=_note(opened, each)) for each in found]
        if spent:
            found = _with_spending(opened, found)
    more = limit is not None and len(found) > limit
    _print(found[:limit], query, store, as_json, more=more, spent=spent)


def _with_spending(opened: Store, found: list[ShownRun]) -> list[ShownRun]:
    from orchestra.history.glance import spent_by

    held = archive_over(opened)
    return [each._replace(spent=spent_by(held, each.row.run)) for each in found]


def print_names() -> None:
    """Print the names of the newest runs of the store, one in a line; nothing where there is no store."""
    opened = open_if_any(None)
    if opened is None:
        return
    with opened:
        for row in opened.runs(RunQuery(limit=_PROPOSED)):
            sys.stdout.write(f"{row.run}\n")


def _find(opened: Store, query: RunQuery, limit: int) -> list[ShownRun]:
    """The runs a query asks for, by the status that people see.

    Stores know no interrupted runs: whether a process plays one is found out when it is read.
    """
    if CHANGING.isdisjoint(query.status):
        rows = opened.runs(attrs.evolve(query, limit=limit))
        return [ShownRun(row, shown_status(opened, row)) for row in rows]
    stored = dict.fromkeys(name for each in query.status for name in STORED.get(each, (each,)))
    rows = opened.runs(attrs.evolve(query, status=tuple(stored), limit=_EVERYTHING, offset=0))
    shown = (ShownRun(row, shown_status(opened, row)) for row in rows)
    fitting = (each for each in shown if each.status in query.status)
    return list(islice(fitting, query.offset, query.offset + limit))


def _note(opened: Store, shown: ShownRun) -> str:
    """Whom a completed run went on without: that stands in its newest header."""
    if shown.status != "completed":
        return ""
    run = shown.row
    try:
        heads = opened.rows(RowQuery(run=run.run, first=run.head, last=run.head))
        if not heads or _SKIPPED not in heads[0].header:  # the usual case, for which nothing has to be loaded
            return ""
        from orchestra.codec.header import ending_note, open_header

        what = f"snapshot {run.run}@{run.head}"
        return ending_note(open_header(heads[0].digest, heads[0].header, framer_over(opened), what=what))
    except (BadSetting, DamageError):  # the list needs no key, and `verify` says what is damaged
        return ""


def _print(
    found: list[ShownRun], query: RunQuery, store: str | None, as_json: bool, *, more: bool, spent: bool
) -> None:
    if as_json:
        told = [{**run_json(each.row), "note": each.note or None} for each in found]
        for each, shown in zip(found, told, strict=True) if spent else ():
            shown["spent"] = None if each.spent is None else pick(each.spent, *_SPENT)
        print_json(told, more=more)
        return
    out = screen()
    if not found:
        filtered = query.status or query.workflow or query.family or query.contains or query.offset
        out.line("No such runs." if filtered else f"No runs in {store_url(store)}.")
        return
    print_table(out, _SPENT_COLUMNS if spent else _COLUMNS, found)
    following = f"orchestra runs{list_options(query)} --offset {query.offset + len(found)}{option(store)}"
    moments = (f"orchestra snapshots {found[0].row.run}{option(store)}", "its moments")
    out.hints(*[(following, "older ones")] * more, moments)


def list_options(query: RunQuery) -> str:
    """The options that ask for the same runs again."""
    named = (("workflow", query.workflow), ("family", query.family), ("contains", query.contains))
    pairs = [*(("status", each) for each in query.status), *named]
    return "".join(f" --{name} {quote(value)}" for name, value in pairs if value)


def status_cell(status: str, note: str = "") -> Line:
    """A status with its sign, and what has to be added to it."""
    sign, style = STATUSES.get(status, ("?", "warn"))
    if note:
        return [(f"{sign} ", "warn"), (f"{status}, {note}", "warn")]
    return [(f"{sign} ", style), (status, style)]


def run_json(row: RunRow) -> dict[str, Any]:
    """A run as JSON."""
    return {
        **pick(row, "run", "workflow", "status", "phase"),
        "snapshots": row.head + 1,
        "head": row.digest.hex(),
        **pick(row, "family", "owned", "owner"),
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
    }
