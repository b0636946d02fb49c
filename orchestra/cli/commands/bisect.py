"""`orchestra bisect`: the first snapshot where an expression holds, and why it does."""

from functools import partial
from typing import Annotated, Final

from cyclopts import Parameter

from orchestra.cli.exit_codes import FAILED, OK
from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.render.changes import ChangeList, change_json
from orchestra.cli.render.screen import Progress, Screen, print_json, screen
from orchestra.cli.render.text import count
from orchestra.cli.render.triggers import about
from orchestra.cli.store import archive, option
from orchestra.expressions.expression import Condition
from orchestra.history.archive import Archive
from orchestra.history.compare import Change, diff_documents
from orchestra.history.describe import Describer, described_json
from orchestra.history.references import resolve_run
from orchestra.history.search import bisect_where, condition, first_where, missing_places
from orchestra.ids import RunId
from orchestra.ports.store import Row, RowQuery

_REASONS: Final = 12


def bisect(
    run: RunArgument,
    expression: Annotated[str, Parameter(help="True or false over the state, e.g. 'status == \"failed\"'.")],
    /,
    *,
    fast: Annotated[
        bool, Parameter(help="Halve the range; right when the expression, once true, stays true.")
    ] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Find the first snapshot where an expression over the state holds, e.g. 'metrics.api_calls > 10'.

    Looks at every snapshot unless --fast is given. Exits with 1 when the expression never holds.
    """
    with archive(store) as opened:
        wanted = condition(expression)
        name = resolve_run(opened, run)
        with Progress("looking") as progress:
            search = bisect_where if fast else partial(first_where, progress=progress)
            row = search(opened, name, wanted)
        reasons = [] if row is None else _reasons(opened, row, wanted)
        if json:
            found = None if row is None else Describer(opened).describe(opened.row(row.run, row.seq))
            print_json(
                {
                    "run": name,
                    "expression": expression,
                    "snapshot": None if found is None else described_json(found),
                    "changes": [change_json(change) for change in reasons],
                }
            )
        elif row is None:
            _print_none(screen(), opened, name, wanted)
        else:
            _print(screen(), opened, row, expression, reasons, store)
        return FAILED if row is None else OK


def _reasons(opened: Archive, row: Row, wanted: Condition) -> list[Change]:
    """What changed, of what the expression looks at, since the last snapshot where it did not hold."""
    earlier = opened.store.rows(RowQuery(run=row.run, last=row.seq - 1, newest_first=True, content=False))
    kept = next((each.seq for each in earlier if not each.pruned), None)
    if kept is None:
        return []
    found = diff_documents(opened.document(row.run, kept), opened.document(row.run, row.seq), opened.loader)
    return [change for change in found.changes if change.path and change.path[0] in wanted.names]


def _print_none(out: Screen, opened: Archive, run: RunId, wanted: Condition) -> None:
    """Say that it never holds, and whether that may be because it looks at nothing."""
    head = opened.run(run).head
    out.line(f"It holds in none of the {count(head + 1, 'snapshot')} of {run}.")
    for place in missing_places(opened, run, wanted):
        out.line((f"There is nothing at {place} in {run}@{head}.", "warn"))


def _print(
    out: Screen, opened: Archive, row: Row, expression: str, reasons: list[Change], store: str | None
) -> None:
    row = opened.row(row.run, row.seq)
    reference = f"{row.run}@{row.seq}"
    out.line((expression, "accent"))
    out.line("holds first in ", (reference, "bold"))
    out.print_cut(about(Describer(opened).describe(row)))
    if reasons:
        out.line()
        changes = ChangeList(opened.loader, columns=out.columns, whole=False)
        out.lines(changes.lines(reasons[:_REASONS]))
    out.hints((f"orchestra diff {reference}{option(store)}", "all that it changed"))
