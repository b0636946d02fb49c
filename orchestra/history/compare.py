"""Compare two snapshots, of one run or of two.

Nodes with equal digests are skipped without being fetched. A field that is not stored has its default: it
is changed, not removed.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal

import attrs

from orchestra.codec.document import Document
from orchestra.codec.loader import Loader
from orchestra.history.paths import MISSING, Inside, Path, child, open_value, plain_data
from orchestra.history.variables import field_types, readable_document, type_below
from orchestra.limits import DIFF_CHANGES
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec, changed_leaves
from orchestra.model.value import Value

ChangeKind = Literal["added", "removed", "changed"]


@attrs.frozen(kw_only=True)
class Change:
    """One difference: where, what kind, what stood there and what stands there."""

    path: Path
    kind: ChangeKind
    before: Any = None  # ordinary data
    after: Any = None


@attrs.frozen(kw_only=True)
class Diff:
    """All differences between two snapshots, up to a limit."""

    changes: tuple[Change, ...]
    truncated: bool  # there are more than the limit


def diff_documents(
    old: Document, new: Document, loader: Loader, *, limit: int = DIFF_CHANGES, stored: bool = False
) -> Diff:
    """What differs between two documents; raises `Damaged` or `MissingObject` when one cannot be read.

    With `stored`, or beside an empty document, a field that is not stored is not there at all.
    """
    kind = None if stored or not old or not new else State
    differences = _Comparison(loader).values(readable_document(old), readable_document(new), (), kind)
    found = tuple(islice(differences, limit + 1))
    return Diff(changes=found[:limit], truncated=len(found) > limit)


class _Comparison:
    """Walks two documents side by side."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def values(self, old: Any, new: Any, path: Path, kind: Any = None) -> Iterator[Change]:
        """What differs between two places, which are of a type of the model, or of none that is known."""
        known = isinstance(old, bytes | Value) and type(old) is type(new)  # without opening them
        if old is new or (known and old == new):
            return
        old, new = open_value(old, self._loader), open_value(new, self._loader)
        if isinstance(old, Inside) and isinstance(new, Inside):
            yield from self._inside(old.data, new.data, path)
        elif isinstance(old, Table) and isinstance(new, Table):
            yield from self._tables(old, new, path, kind)
        elif isinstance(old, Vec) and isinstance(new, Vec):
            yield from self._sequences(old, new, path, kind)
        elif isinstance(old, dict) and isinstance(new, dict):
            yield from self._fields(old, new, path, kind)
        elif isinstance(old, list | tuple) and type(old) is type(new):
            yield from self._lists(old, new, path, kind)
        elif type(old) is not type(new) or old != new:
            yield Change(path=path, kind="changed", before=self._data(old), after=self._data(new))

    def _inside(self, old: Any, new: Any, path: Path) -> Iterator[Change]:
        """Two values that people handed in: every level of them is theirs."""
        if isinstance(old, dict) and isinstance(new, dict):
            mine, theirs = ({key: Inside(each) for key, each in held.items()} for held in (old, new))
            yield from self._fields(mine, theirs, path)
        elif isinstance(old, list | tuple) and type(old) is type(new):
            yield from self._lists([Inside(each) for each in old], [Inside(each) for each in new], path)
        elif type(old) is not type(new) or not _equal(old, new):
            yield Change(path=path, kind="changed", before=old, after=new)

    def _fields(
        self, old: dict[str, Any], new: dict[str, Any], path: Path, kind: Any = None
    ) -> Iterator[Change]:
        for name in dict.fromkeys((*old, *new)):
            if name in old and name in new:
                before, after = old[name], new[name]
            else:
                default = _stored_default(kind, name)
                before = old.get(name, MISSING if default is None else default)
                after = new.get(name, default)
            if before is after:
                continue
            yield from self._pair(before, after, (*path, name), type_below(kind, name))

    def _pair(self, old: Any, new: Any, path: Path, kind: Any = None) -> Iterator[Change]:
        if old is MISSING:
            yield Change(path=path, kind="added", after=self._data(new))
        elif new is MISSING:
            yield Change(path=path, kind="removed", before=self._data(old))
        else:
            yield from self.values(old, new, path, kind)

    def _lists(self, old: Any, new: Any, path: Path, kind: Any = None) -> Iterator[Change]:
        for position in range(max(len(old), len(new))):
            before = old[position] if position < len(old) else MISSING
            after = new[position] if position < len(new) else MISSING
            yield from self._pair(before, after, (*path, position), type_below(kind, position))

    def _sequences(self, old: Vec[Any], new: Vec[Any], path: Path, kind: Any) -> Iterator[Change]:
        for position, before, after in _differences(old, new):
            yield from self.values(before, after, (*path, position), type_below(kind, position))
        for position in range(len(old), len(new)):
            yield from self._pair(MISSING, new[position], (*path, position))
        for position in range(len(new), len(old)):
            yield from self._pair(old[position], MISSING, (*path, position))

    def _tables(self, old: Table[Any], new: Table[Any], path: Path, kind: Any) -> Iterator[Change]:
        shared = list(_differences(old.pairs, new.pairs))
        if all(before[0] == after[0] for _, before, after in shared):
            for _, before, after in shared:
                yield from self.values(before[1], after[1], (*path, after[0]), type_below(kind, after[0]))
            for key, added in new.pairs[len(old) :]:
                yield from self._pair(MISSING, added, (*path, key))
            for key, removed in old.pairs[len(new) :]:
                yield from self._pair(removed, MISSING, (*path, key))
        else:  # they grew apart: entry by entry, wherever each stands
            for key in dict.fromkeys((*old.keys(), *new.keys())):
                yield from self._pair(child(old, key), child(new, key), (*path, key), type_below(kind, key))

    def _data(self, held: Any) -> Any:
        return plain_data(held, self._loader, large=False)


def _stored_default(kind: Any, name: str) -> Any:
    """What a field that is not stored holds, in the form of documents; `MISSING` where that is not known."""
    known = field_types(kind).get(name) if kind is not None and attrs.has(kind) else None
    if known is None or known[1] is attrs.NOTHING:
        return MISSING
    default = known[1]
    if isinstance(default, tuple):
        return list(default)
    return {} if attrs.has(type(default)) and not isinstance(default, Vec | Table) else default


def defaults_below(kind: Any, form: Callable[[Any], Any]) -> dict[str, Any] | None:
    """What fields that are not stored hold, as plain data for who reads states without the model.

    Of a record each field as `{"default": …, "below": …}`, of a collection what stands at `each`.
    """
    if kind is None:
        return None
    if not attrs.has(kind):
        each = defaults_below(type_below(kind, 0), form)
        return None if each is None else {"each": each}
    fields: dict[str, dict[str, Any]] = {}
    for name in field_types(kind):
        default, below = _stored_default(kind, name), defaults_below(type_below(kind, name), form)
        if default is not MISSING:
            fields[name] = {"default": form(default)}
        if below is not None:
            fields[name] = {**fields.get(name, {}), "below": below}
    return {"fields": fields}


def _equal(old: Any, new: Any) -> bool:
    """Equal, where a number that is no number equals itself and the two zeros differ."""
    return repr(old) == repr(new) if isinstance(old, float) else bool(old == new)


def _differences(old: Vec[Any], new: Vec[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Positions that both have and whose items are not known to be equal."""
    swapped = len(new) < len(old)
    shorter, longer = (new, old) if swapped else (old, new)
    for start, mine, theirs in changed_leaves(shorter, longer):
        for offset, (one, other) in enumerate(zip(mine, theirs, strict=False)):
            if one is not other:
                yield (start + offset, other, one) if swapped else (start + offset, one, other)
