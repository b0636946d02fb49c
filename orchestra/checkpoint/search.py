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
from orchestra.errors import BadExpression, UnknownSnapshot
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
    head, tried = archive.run(run).head, _Tried(archive, wanted)
    for row, document in documents(archive, run):
        if progress is not None:
            progress(row.seq, head)
        if tried.holds(document):
            return row
    tried.finish()
    return None


def bisect_where(archive: Archive, run: RunId, wanted: Condition) -> Row | None:
    """The first snapshot where `wanted` holds, given that it holds ever after."""
    rows = [row for row in archive.store.rows(RowQuery(run=run, content=False)) if not row.pruned]
    if not rows:
        raise UnknownSnapshot(run=run, reference="any", reason="everything was pruned")
    tried = _Tried(archive, wanted)
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        holds = tried.holds(archive.document(run, rows[middle].seq))
        low, high = (low, middle) if holds else (middle + 1, high)
    tried.finish()
    return rows[low] if low < len(rows) else None


class _Tried:
    """A condition tried on many states. It does not hold where it cannot be worked out."""

    def __init__(self, archive: Archive, wanted: Condition) -> None:
        self._wanted, self._facts = wanted, Facts(wanted.names, archive.loader)
        self._worked = False
        self._error: BadExpression | None = None

    def holds(self, document: Document) -> bool:
        try:
            outcome = self._wanted.holds(self._facts.of(document))
        except BadExpression as error:
            self._error = error
            return False
        self._worked = True
        return outcome

    def finish(self) -> None:
        """Raise the last error when the condition could be worked out nowhere."""
        if not self._worked and self._error is not None:
            raise self._error


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
