"""Searching a run: the first snapshot where a condition holds.

Snapshots are looked at in order of their sequence numbers. `first_where` looks at every one, so that what
it finds is really the first; `bisect_where` halves the range and is right when the condition, once true,
stays true.
"""

from collections.abc import Callable, Iterator

from orchestra.checkpoint.archive import Archive, advanced
from orchestra.checkpoint.expression import Condition
from orchestra.checkpoint.facts import Facts, fact_names
from orchestra.codec.document import Document
from orchestra.errors import UnknownSnapshot
from orchestra.ids import RunId
from orchestra.ports.store import Row, RowQuery

Progress = Callable[[int, int], None]


def condition(expression: str) -> Condition:
    """A condition over a state; raises `BadExpression`."""
    return Condition(expression, fact_names())


def first_where(
    archive: Archive, run: RunId, wanted: Condition, *, progress: Progress | None = None
) -> Row | None:
    """The first snapshot of a run where `wanted` holds, or None; every kept snapshot is looked at."""
    head = archive.run(run).head
    facts = Facts(wanted.names, archive.loader)
    for row, document in documents(archive, run):
        if progress is not None:
            progress(row.seq, head)
        if wanted.holds(facts.of(document)):
            return row
    return None


def bisect_where(archive: Archive, run: RunId, wanted: Condition) -> Row | None:
    """The first snapshot where `wanted` holds, given that it holds ever after."""
    rows = [row for row in archive.store.rows(RowQuery(run=run, content=False)) if not row.pruned]
    if not rows:
        raise UnknownSnapshot(run=run, reference="any", reason="everything was pruned")
    facts = Facts(wanted.names, archive.loader)

    def holds(position: int) -> bool:
        return wanted.holds(facts.of(archive.document(run, rows[position].seq)))

    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return rows[low] if low < len(rows) else None


def documents(archive: Archive, run: RunId) -> Iterator[tuple[Row, Document]]:
    """Every kept snapshot of a run with its document, in order."""
    document: Document | None = None
    for row in _rows(archive, run):
        if row.pruned:
            document = None
            continue
        if document is None or row.sealed_at == row.seq:
            document = archive.document_of(row)
        else:
            document = advanced(document, archive.step(row))
        yield row, document


def _rows(archive: Archive, run: RunId) -> Iterator[Row]:
    head, page = archive.run(run).head, 128
    for first in range(0, head + 1, page):
        yield from archive.store.rows(RowQuery(run=run, first=first, last=first + page - 1))
