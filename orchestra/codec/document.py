"""Documents: a state as generic data, for readers that need no model.

A document is made of dictionaries, lists, atoms, frozen values, sequences (`Vec`) and tables (`Table`). It is
never changed: `apply_patch` copies the path it changes. Reading one needs a seal and patches alone, so old
snapshots stay readable when the model moves on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from orchestra.codec.frame import FORMAT
from orchestra.codec.patch import Operation
from orchestra.errors import Damaged
from orchestra.limits import CODEC_DEPTH
from orchestra.model.tree import Table, Vec

Document = dict[str, Any]
Change = Callable[[Any], Any]


class BadPatch(Exception):
    """An operation that does not fit the document it meets."""


_MISSING = object()


def apply_patch(document: Document, operations: Sequence[Operation]) -> Document:
    """The document after the operations; raises `BadPatch`. `reset` is the caller's to follow."""
    for operation in operations:
        try:
            path, change = _read(operation)
            if len(path) > CODEC_DEPTH:
                raise BadPatch("its path is too long")
            document = _change_at(document, path, change)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadPatch(f"{operation[:2]!r}: {error or type(error).__name__}") from None
    return document


def _read(operation: Operation) -> tuple[list[str | int], Change]:
    match operation:
        case ["set", [*path], value]:
            return path, lambda _: value
        case ["unset", [*path]]:
            return path, lambda _: _MISSING
        case ["append", [*path], more]:
            return path, lambda held: _append(held, more)
        case ["splice", [*path], int(start), int(count), insert]:
            return path, lambda held: _splice(held, start, count, insert)
        case ["push", [*path], [*items]]:
            return path, lambda held: _sequence(held).extend(items)
        case ["put", [*path], [*entries]]:
            return path, lambda held: _put(held, entries)
        case _:
            raise BadPatch(f"unknown operation {operation!r:.80}")


def _change_at(held: Any, path: Sequence[str | int], change: Change) -> Any:
    if not path:
        return change(held)
    step, rest = path[0], path[1:]
    if isinstance(held, dict):
        return _change_field(held, str(step), rest, change)
    if isinstance(held, Table) and isinstance(step, str):
        return held.set(step, _change_at(held[step], rest, change))
    if isinstance(held, Vec) and isinstance(step, int):
        return held.set(step, _change_at(held[step], rest, change))
    if isinstance(held, list) and isinstance(step, int):
        copy = list(held)
        copy[step] = _change_at(held[step], rest, change)
        return copy
    raise BadPatch(f"nothing at {step!r}")


def _change_field(held: Document, name: str, rest: Sequence[str | int], change: Change) -> Document:
    after = _change_at(held.get(name, _MISSING), rest, change)
    changed = {**held, name: after}
    if after is _MISSING:
        del changed[name]
    return changed


def _append(held: Any, more: Any) -> Any:
    if held is _MISSING:
        return more
    if isinstance(held, str) != isinstance(more, str):
        raise BadPatch("text and list cannot be joined")
    return held + more


def _splice(held: Any, start: int, count: int, insert: Any) -> Any:
    if not 0 <= start <= start + count <= len(held):
        raise BadPatch("a splice reaches past the end")
    return held[:start] + insert + held[start + count :]


def _sequence(held: Any) -> Vec[Any]:
    if held is _MISSING:
        return Vec()
    if not isinstance(held, Vec):
        raise BadPatch("only a sequence can be pushed to")
    return held


def _put(held: Any, entries: Sequence[Any]) -> Table[Any]:
    table = Table() if held is _MISSING else held
    if not isinstance(table, Table):
        raise BadPatch("only a table can be put into")
    if not all(isinstance(key, str) for key, _ in entries):
        raise BadPatch("a table key is not text")
    return table.add((key, value) for key, value in entries)


Upgrades = Mapping[int, Callable[[Document], Document]]
UPGRADES: Final[Upgrades] = {}
"""From each earlier version to the next. There is no earlier version yet."""


def upgrade_document(
    document: Document, version: int, *, what: str, to: int = FORMAT, upgrades: Upgrades = UPGRADES
) -> Document:
    """A document of `version` as one of version `to`; raises `Damaged` when no way leads there."""
    for step in range(version, to):
        upgrade = upgrades.get(step)
        if upgrade is None:
            raise Damaged(what=what, reason=f"it is of format {version}, from which no upgrade leads to {to}")
        document = upgrade(document)
    return document
