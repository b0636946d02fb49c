"""Search a run: for snapshots where a condition holds, and for a text.

`first_where` looks at every snapshot in order; `bisect_where` halves the range, which is right when the
condition, once true, stays true. For a text only what each snapshot changed is searched, and its bytes before
they are decoded.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import attrs

from orchestra.codec.document import Document
from orchestra.codec.header import link, open_header
from orchestra.codec.patch import Operation
from orchestra.errors import BadExpression, DamageError, UnknownSnapshot
from orchestra.expressions.expression import Condition, paths_in, with_place
from orchestra.history.archive import Archive
from orchestra.history.pages import Broken, Pages
from orchestra.history.paths import Inside, Path, open_value, walk
from orchestra.history.variables import Variables, readable_path, variable_names
from orchestra.ids import Digest, RunId
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.ports.store import Row, RowQuery, RunRow

Progress = Callable[[int, int], None]
_PAGE_ROWS: Final = 128
_DEEPEST: Final = 400


def _mute(_at: int, _of: int) -> None:
    """For those who do not ask how far a search is."""


def condition(expression: str) -> Condition:
    """A condition over a state; raises `BadExpression`."""
    return Condition(expression, variable_names())


def first_where(
    archive: Archive, run: RunId, wanted: Condition, *, progress: Progress = _mute, skip_damaged: bool = False
) -> Row | None:
    """The first snapshot of a run where `wanted` holds, or None; every kept snapshot is looked at."""
    return next(matching_snapshots(archive, run, wanted, progress=progress, skip_damaged=skip_damaged), None)


def matching_snapshots(
    archive: Archive, run: RunId, wanted: Condition, *, progress: Progress = _mute, skip_damaged: bool = True
) -> Iterator[Row]:
    """Every snapshot of a run where `wanted` holds, in order."""
    head, tried = archive.run(run).head, _Tried(archive, wanted)
    for row, document in documents(archive, run, skip_damaged=skip_damaged):
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
    for row in Pages(archive.store, RowQuery(run=run), archive.run(run).head, page=_PAGE_ROWS):
        try:
            if isinstance(row, Broken):
                raise row.error
            document = None if row.pruned else archive.next_document(row, document, names)
        except DamageError:
            document = None
            if not skip_damaged:
                raise
        if document is not None and isinstance(row, Row):
            yield row, document


# --- for a text


@attrs.frozen
class Hit:
    """A text that was found: which snapshot brought it, and where."""

    seq: int
    path: Path
    text: str
    at: int  # where in the text it begins


@attrs.frozen
class Scanned:
    """That a snapshot was searched; tells how far the search is."""

    seq: int


class TextSearch:
    """Looks for a text in the changes of a run, whatever its case."""

    def __init__(self, archive: Archive, text: str) -> None:
        self._archive, self._wanted = archive, text.lower()
        folded = self._wanted.encode(errors="surrogatepass")
        self._bytes = folded if folded.isascii() else None
        self._seen: set[Digest] = set()

    def run(self, run: RunRow) -> Iterator[Hit | Scanned]:
        """Every hit, oldest first; after each snapshot that it was scanned."""
        for row in Pages(self._archive.store, RowQuery(run=run.run), run.head):
            if isinstance(row, Row) and not row.pruned:
                yield from (attrs.evolve(hit, path=readable_path(hit.path)) for hit in self._snapshot(row))
            yield Scanned(row.seq)

    def _snapshot(self, row: Row) -> Iterator[Hit]:
        try:
            if row.seq == 0:
                yield from self._hits(row, self._below(self._archive.document_of(row), ()))
            elif "rolled_back" not in row.triggers and self._may_hold(row):
                for operation in self._archive.step(row).operations:
                    yield from self._operation_hits(row, operation)
        except DamageError:
            return

    def _hits(self, row: Row, texts: Iterator[tuple[Path, str]]) -> Iterator[Hit]:
        for path, text in texts:
            at = text.lower().find(self._wanted)
            if at >= 0:
                yield Hit(row.seq, path, text, at)

    def _operation_hits(self, row: Row, operation: Operation) -> Iterator[Hit]:
        found = list(self._hits(row, self._operation(operation)))
        if not found or operation[0] != "push":
            yield from found
            return
        where: Path = tuple(operation[1])
        part = self._archive.part_of(row, (str(where[0]),))
        before = len(walk(part, where, self._archive.loader)) - len(operation[2])
        for hit in found:  # what was pushed is counted from the start of the sequence
            place, rest = hit.path[len(where)], hit.path[len(where) + 1 :]
            assert isinstance(place, int), "BUG: a position is a number"
            yield attrs.evolve(hit, path=(*where, before + place, *rest))

    def _may_hold(self, row: Row) -> bool:
        """Whether a patch can hold the text: it is among its bytes, or it refers to large values."""
        what = f"snapshot {row.run}@{row.seq}"
        patch = link(open_header(row.digest, row.header, self._archive.framer, what=what), "patch")
        if patch is None or row.patch is None or self._bytes is None:
            return patch is not None
        framed = self._archive.framer.open(patch, row.patch, what=what, kinds=("patch",))
        if self._bytes in framed.canonical.lower():
            return True
        references, _ = self._archive.loader.decode(framed.canonical, what=what)
        return any(each not in self._seen for each in references)

    def _operation(self, operation: Operation) -> Iterator[tuple[Path, str]]:
        if operation[0] == "reset" or len(operation) < 3:
            return
        path: Path = tuple(operation[1])
        match operation:
            case ["put", _, [*entries]]:
                for key, held in entries:
                    yield from self._below(held, (*path, key))
            case ["splice", _, _, _, inserted]:
                yield from self._below(inserted, path)
            case [_, _, held]:
                yield from self._below(held, path)
            case _:
                pass

    def _below(self, held: Any, path: Path) -> Iterator[tuple[Path, str]]:
        """Every text at or below a part of a state, with its path."""
        waiting: list[tuple[Any, Path]] = [(held, path)]
        while waiting:
            each, where = waiting.pop()
            each = self._open(each)
            inside = isinstance(each, Inside)
            plain = each.data if isinstance(each, Inside) else each
            if isinstance(plain, str):
                yield where, plain
            elif len(where) < _DEEPEST:
                below = [(Inside(part) if inside else part, (*where, step)) for step, part in _parts(plain)]
                waiting.extend(reversed(below))

    def _open(self, held: Any) -> Any:
        """Open a frozen value; a large one only the first time."""
        if isinstance(held, Value) and held.digest is not None:
            if held.digest in self._seen:
                return None
            self._seen.add(held.digest)
        return open_value(held, self._archive.loader)


def _parts(held: Any) -> list[tuple[Any, Any]]:
    if isinstance(held, dict | Table):
        return list(held.items())
    if isinstance(held, Vec | list | tuple):
        return list(enumerate(held))
    return []
