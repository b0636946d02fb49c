"""SQLite's errors become ours, every one of them."""

import errno

import apsw
import pytest

from orchestra.errors import Damaged, OrchestraError, StoreBusy, StoreFailed, StoreFull, StoreReadOnly
from orchestra.stores.sqlite.errors import KINDS, Kind, human, kind_of, translate

FOREIGN = [
    kind
    for kind in vars(apsw).values()
    if isinstance(kind, type) and issubclass(kind, apsw.Error) and kind is not apsw.Error
]


def test_every_exception_of_apsw_is_in_the_table() -> None:
    assert set(KINDS) == set(FOREIGN)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: str(kind.__name__))
def test_every_exception_becomes_one_of_ours(kind: type[apsw.Error]) -> None:
    ours = translate(kind("why"), "the/place.db", seconds=60.0)
    assert isinstance(ours, OrchestraError)
    assert "the/place.db" in str(ours)


@pytest.mark.parametrize(
    ("error", "system_errno", "expected"),
    [
        (apsw.BusyError("x"), 0, StoreBusy),
        (apsw.FullError("x"), 0, StoreFull),
        (apsw.IOError("x"), errno.EIO, StoreFailed),
        (apsw.IOError("x"), errno.ENOSPC, StoreFull),
        (apsw.IOError("x"), errno.EDQUOT, StoreFull),
        (apsw.ReadOnlyError("x"), 0, StoreReadOnly),
        (apsw.CorruptError("x"), 0, Damaged),
        (apsw.NotADBError("x"), 0, Damaged),
        (apsw.SQLError("no such column: dige3t"), 0, Damaged),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), 0, Damaged),
        (MemoryError(), 0, StoreFailed),
    ],
)
def test_who_must_act(error: Exception, system_errno: int, expected: type[OrchestraError]) -> None:
    assert type(translate(error, "p", system_errno=system_errno)) is expected


def test_the_extended_code_decides() -> None:
    short = apsw.IOError("x")
    setattr(short, "extendedresult", apsw.SQLITE_IOERR_SHORT_READ)  # noqa: B010 - not in apsw's types
    assert kind_of(short) is Kind.DAMAGED


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (4096, "4.0 KB"), (3 << 20, "3.0 MB"), (5 << 30, "5.0 GB")]
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert human(size) == text
