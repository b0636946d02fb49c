"""Search a run for the first snapshot where a condition holds.

`first_where` looks at every snapshot in order; `bisect_where` halves the range, which is right when the
condition, once true, stays true.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from orchestra.codec.document import Document
from orchestra.errors import BadExpression, DamageError, UnknownSnapshot
from orchestra.expressions.expression import Condition, paths_in, with_place
from orchestra.history.archive import Archive, advance_document, operations_on
from orchestra.history.pages import Pages
from orchestra.history.variables import Variables, variable_names
from orchestra.ids import RunId
from orchestra.ports.store import Row, RowQuery

Progress = Callable[[int, int], None]
_PAGE_ROWS: Final = 128


def condition(expression: str) -> Condition:
    """A condition over a state; raises `BadExpression`."""
    return Condition(expression, variable_names())


def first_where(
    archive: Archive,
    run: RunId,
    wanted: Condition,
    *,
    progress: Progress | None = None,
    skip_damaged: bool = False,
) -> Row | None:
    """The first snapshot of a run where `wanted` holds, or None; every kept snapshot is looked at."""
    return next(matching_snapshots(archive, run, wanted, progress=progress, skip_damaged=skip_damaged), None)


def matching_snapshots(
    archive: Archive,
    run: RunId,
    wanted: Condition,
    *,
    progress: Progress | None = None,
    skip_damaged: bool = True,
) -> Iterator[Row]:
    """Every snapshot of a run where `wanted` holds, in order."""
    head, tried = archive.run(run).head, _Tried(archive, wanted)
    for row, document in documents(archive, run, skip_damaged=skip_damaged):
        if progress is not None:
            progress(row.seq, head)
        if tried.holds(document, row.seq):
            yield row
    tried.finish()


def bisect_where(archive: Archive, run: RunId, wanted: Condition) -> Row | None:
    """The first snapshot where `wanted` holds, given that it holds ever after."""
    rows = [row for row in archive.store.rows(RowQuery(run=run, content=False)) if not row.pruned]
    if not rows:
        raise UnknownSnapshot(run=run, reference="any", reason="everything was pruned")
    tried = _Tried(archive, wanted)
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        holds = tried.holds(archive.document(run, rows[middle].seq), rows[middle].seq)
        low, high = (low, middle) if holds else (middle + 1, high)
    tried.finish()
    return rows[low] if low < len(rows) else None


def missing_places(archive: Archive, run: RunId, wanted: Condition) -> list[str]:
    """The places a condition looks at where the newest snapshot of a run has nothing, in order."""
    facts = Variables(wanted.names, archive.loader).of(archive.document(run, archive.run(run).head))
    places = sorted(paths_in("{{ " + wanted.text + " }}", wanted.text))
    return [place for place in places if not Condition(f"{place} is defined", variable_names()).holds(facts)]


class _Tried:
    """A condition tried on many states. It does not hold where it cannot be worked out."""

    def __init__(self, archive: Archive, wanted: Condition) -> None:
        self._wanted, self._facts = wanted, Variables(wanted.names, archive.loader)
        self._worked = False
        self._error: BadExpression | None = None

    def holds(self, document: Document, seq: int) -> bool:
        """Whether it holds in a snapshot; raises `BadExpression` when it compares what has no order there."""
        try:
            outcome = self._wanted.holds(self._facts.of(document))
        except BadExpression as error:
            if error.data.get("compared"):
                raise with_place(error, f"snapshot {seq}") from None
            self._error = error
            return False
        self._worked = True
        return outcome

    def finish(self) -> None:
        """Raise the last error when the condition could be worked out nowhere."""
        if not self._worked and self._error is not None:
            raise self._error


def documents(
    archive: Archive, run: RunId, *, skip_damaged: bool = False, names: Collection[str] | None = None
) -> Iterator[tuple[Row, Document]]:
    """Every kept snapshot of a run with its document, or only these fields of it; raises on damage."""
    document: Document | None = None
    for row in _rows(archive, run, skip_damaged):
        document = None if row.pruned else _following(archive, row, document, skip_damaged, names)
        if document is not None:
            yield row, document


def _following(
    archive: Archive,
    row: Row,
    before: Document | None,
    skip_damaged: bool,
    names: Collection[str] | None,
) -> Document | None:
    try:
        if before is None or row.sealed_at == row.seq:
            return archive.document_of(row) if names is None else archive.part_of(row, names)
        step = archive.step(row)
        return advance_document(
            before, step, None if names is None else operations_on(step.operations, names)
        )
    except DamageError:
        if not skip_damaged:
            raise
        return None


def _rows(archive: Archive, run: RunId, skip_damaged: bool) -> Iterator[Row]:
    head = archive.run(run).head
    for row in Pages(archive.store, RowQuery(run=run), head, page=_PAGE_ROWS):
        if isinstance(row, Row):
            yield row
        elif not skip_damaged:
            archive.row(run, row.seq)  # raises what is wrong with it
