"""The snapshots of a run as columns: straight from the store's rows, with words coded as numbers.

Ten thousand snapshots are a few numbers each, not ten thousand objects. No header is opened.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final

from orchestra.errors import DamageError
from orchestra.history.annotations import open_annotation
from orchestra.history.archive import Archive
from orchestra.history.pages import Broken, Pages
from orchestra.ports.store import Row, RowQuery, RunRow
from orchestra.web.views.cancel import CheckWanted, always_wanted
from orchestra.web.views.fields import Json

MARKED: Final = 1
PRUNED: Final = 2
SEALED: Final = 4
ERROR: Final = 8
ROLLED_BACK: Final = 16
FORKED: Final = 32
PINNED: Final = 64
NOTE: Final = 128
BROKEN: Final = 256
_PAGE_ROWS: Final = 500
_NAMES: Final = ("seq", "at", "status", "phase", "triggers", "agents", "flags", "size")
_FLAGS: Final = {"error_encountered": ERROR, "failed": ERROR, "rolled_back": ROLLED_BACK, "forked": FORKED}


def columns(
    archive: Archive,
    run: RunRow,
    query: RowQuery,
    forks: Iterable[Json],
    check_wanted: CheckWanted = always_wanted,
) -> Json:
    """The rows that a query asks for, as columns; `forks` are the runs that began at one of them."""
    made = _Columns()
    for found in Pages(archive.store, query, run.head, page=_PAGE_ROWS).stretches():
        check_wanted()
        if isinstance(found, Broken):
            made.add_broken(found.seq)
        else:
            made.add(found)
    return {"run": run.run, "head": run.head, **made.json(_other_flags(archive, run, forks))}


def _other_flags(archive: Archive, run: RunRow, forks: Iterable[Json]) -> dict[int, int]:
    """What is said about snapshots outside their rows: pins, notes, and that another run began there."""
    found: dict[int, int] = {fork["seq"]: FORKED for fork in forks}
    for annotation in archive.store.annotations(run.run):
        with suppress(DamageError):
            remark = open_annotation(annotation, archive.framer)
            found[remark.seq] = found.get(remark.seq, 0) | (PINNED if remark.kind == "pin" else NOTE)
    return found


@cache
def _trigger_flags(triggers: tuple[str, ...]) -> int:
    """What triggers say in flags."""
    return sum({_FLAGS.get(each, 0) for each in triggers})


class _Words(dict[Any, int]):
    """Codes words as numbers, in the order in which they are met."""

    def __missing__(self, word: Any) -> int:
        code = self[word] = len(self)
        return code


class _Columns:
    def __init__(self) -> None:
        self._no = 0
        self._status, self._phase, self._triggers, self._agents = _Words(), _Words(), _Words(), _Words()
        self._held: dict[str, list[int]] = {name: [] for name in _NAMES}

    def add(self, rows: list[Row]) -> None:
        """Some rows more, a column at a time."""
        held, phases = self._held, self._phase
        held["seq"] += [row.seq for row in rows]
        held["at"] += [row.at for row in rows]
        held["status"] += [self._status[row.status] for row in rows]
        held["phase"] += [-1 if row.phase is None else phases[row.phase] for row in rows]
        held["triggers"] += [self._triggers[row.triggers] for row in rows]
        held["agents"] += [self._agents[row.agents] for row in rows]
        held["size"] += [row.size for row in rows]
        held["flags"] += [
            _trigger_flags(row.triggers)
            | row.marked * MARKED
            | row.pruned * PRUNED
            | (row.sealed_at == row.seq) * SEALED
            for row in rows
        ]
        self._no = max([self._no, *(row.no for row in rows)])

    def add_broken(self, seq: int) -> None:
        """A row that cannot be read: all that is known of it is that it should be there."""
        status, triggers, agents = self._status[""], self._triggers[()], self._agents[()]
        at = self._held["at"][-1] if self._held["at"] else 0
        for name, value in zip(_NAMES, (seq, at, status, -1, triggers, agents, BROKEN, 0), strict=True):
            self._held[name].append(value)

    def json(self, extra: Mapping[int, int]) -> Json:
        """The columns, and the words that their numbers stand for."""
        seqs, flags = self._held["seq"], self._held["flags"]
        if extra:
            flags = [flag | extra.get(seq, 0) for seq, flag in zip(seqs, flags, strict=True)]
        is_complete = bool(seqs) and seqs[-1] - seqs[0] + 1 == len(seqs)
        return {
            "no": self._no,
            "count": len(seqs),
            "first": seqs[0] if seqs else None,
            "columns": {**self._held, "flags": flags, "seq": None if is_complete else seqs},
            "words": {
                "status": list(self._status),
                "phase": list(self._phase),
                "triggers": list(self._triggers),
                "agents": list(self._agents),
            },
        }
