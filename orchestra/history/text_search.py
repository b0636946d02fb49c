"""Search a run for a text: the snapshots that brought it, and its places in their states.

Only what each snapshot changed is searched, and its bytes before they are decoded.
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from orchestra.codec.header import link, open_header
from orchestra.codec.patch import Operation
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.pages import Pages
from orchestra.history.paths import Inside, Path, open_value, walk
from orchestra.history.variables import readable_path
from orchestra.ids import Digest
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.ports.store import Row, RowQuery, RunRow

_DEEPEST: Final = 400


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
