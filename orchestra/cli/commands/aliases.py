"""The commands under the names of the source documents, for scripts that use them."""

import re
from collections.abc import Iterator
from typing import Annotated, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Full, Limit, StoreUrl
from orchestra.cli.render.changes import print_diff
from orchestra.cli.render.findings import print_file_report
from orchestra.cli.render.paging import PAGE, parse_limit
from orchestra.cli.render.snapshot_list import Filters, find_page, print_page
from orchestra.cli.store import archive, environment_framer
from orchestra.errors import UnknownRun, UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.history.lineage import ancestry
from orchestra.history.references import resolve, resolve_run
from orchestra.ids import RunId
from orchestra.interchange.json_check import verify_file
from orchestra.ports.store import Row, RunQuery

_PHASE: Final = re.compile(r"phase(\d{1,9})")

Task = Annotated[str | None, Parameter(help="A run, or a workflow whose newest run is meant.")]


def list_checkpoints(
    *, task: Task = None, limit: Limit = PAGE, store: StoreUrl = None, json: AsJson = False
) -> int:
    """List the snapshots of a run, by default of the newest one."""
    with archive(store) as opened:
        page = find_page(opened, _run(opened, task), Filters(), parse_limit(limit))
        return print_page(opened, page, store, json, newest_first=False, filtered=False)


def validate_checkpoint(*, file: str, json: AsJson = False) -> int:
    """Verify an exported file."""
    return print_file_report(file, verify_file(file, framer=environment_framer()), json)


def diff_checkpoints(
    *,
    from_: Annotated[str, Parameter(name="--from", help="phase1, or any reference.")],
    to: Annotated[str, Parameter(help="phase2, or any reference.")],
    task: Task = None,
    full: Full = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Show what differs between two phases of a run, each at its end, or between any two snapshots."""
    with archive(store) as opened:
        old, new = _place(opened, from_, task), _place(opened, to, task)
        print_diff(opened, old, new, whole=full, store=store, as_json=json)


def _run(opened: Archive, task: str | None) -> RunId:
    """The run that is meant: by its id, as the newest of a workflow, or the newest of all."""
    if task is None:
        newest = opened.store.runs(RunQuery(limit=1))
        if not newest:
            raise UnknownRun(run="the newest", store=opened.store.place, hint=" It is empty.")
        return newest[0].run
    of_workflow = opened.store.runs(RunQuery(workflow=task, limit=1))
    return of_workflow[0].run if of_workflow else resolve_run(opened, task)


def _place(opened: Archive, text: str, task: str | None) -> Row:
    phase = _PHASE.fullmatch(text)
    return resolve(opened, text) if phase is None else _phase_end(opened, _run(opened, task), int(phase[1]))


def _phase_end(opened: Archive, run: RunId, ordinal: int) -> Row:
    """The newest snapshot of the N-th phase visit that the run's head builds on."""
    visits: set[int] = set()
    for row in _through_forks(opened, opened.row(run, opened.run(run).head)):
        visits.add(opened.header(row).ordinal)
        if ordinal in visits and not row.pruned:
            return row
    known = ", ".join(f"phase{each}" for each in sorted(visits) if each) or "none yet"
    raise UnknownSnapshot(run=run, reference=f"phase{ordinal}", reason=f"its phase visits are {known}")


def _through_forks(opened: Archive, row: Row) -> Iterator[Row]:
    """What a snapshot builds on, newest first, also in the runs that its run was forked from."""
    while True:
        oldest = row
        for oldest in ancestry(opened, row.run, row.seq):
            yield oldest
        if oldest.seq != 0 or oldest.parent is None:
            return
        found = opened.store.find(oldest.parent, oldest.parent, 1)
        if not found:
            return
        row = found[0]
