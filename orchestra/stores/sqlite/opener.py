"""Checks a place before it is used, and makes a fresh store where nothing is.

Nothing is ever made over something that exists. A fresh database is made under another name, whole, and then
linked to its own: so two processes may try at once, a crash leaves no half store, and an empty file at the
place is never one of ours. The database file itself is only looked at through SQLite: opening and closing it
by other means would drop the locks that this process holds on it.
"""

import glob
import os
import secrets
import stat
import struct
from contextlib import closing, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import apsw
import attrs

from orchestra import errors
from orchestra.atomic import FORBIDDEN, sync
from orchestra.errors import Damaged, NotAStore, StoreTooNew
from orchestra.stores.sqlite.anchor import Anchor
from orchestra.stores.sqlite.connect import PAGE_BYTES, Settings, connect
from orchestra.stores.sqlite.errors import FOREIGN, translate
from orchestra.stores.sqlite.statements import SQL, ask, migrations

APPLICATION_ID: Final = 0x4F726368  # "Orch"
FORMAT: Final = len(migrations())

_MAGIC: Final = b"SQLite format 3\0"
_COMPANIONS: Final = ("-wal", "-anchor", "-lock")


def find_or_make(settings: Settings, *, create: bool) -> int:
    """The size of the file at the place; with `create` a store is made where nothing is.

    Raises `StoreMissing`, and `NotAStore` for what cannot be one. `check_header` looks into the file.
    """
    try:
        found = os.stat(settings.path)
    except FileNotFoundError:
        return _nothing_there(settings, create=create)
    except OSError as error:
        raise NotAStore(place=settings.place, reason=error.strerror or str(error)) from error
    if stat.S_ISDIR(found.st_mode):
        raise NotAStore(place=settings.place, reason="a directory is there")
    if not stat.S_ISREG(found.st_mode):
        raise NotAStore(place=settings.place, reason="it is not a regular file")
    if found.st_nlink > 1:
        _refuse_names(settings, found)
    if found.st_size == 0:
        reason = "the file is empty, and a fresh store is made only where nothing exists"
        raise NotAStore(place=settings.place, reason=reason)
    return found.st_size


def _refuse_names(settings: Settings, found: os.stat_result) -> None:
    """A database with two names would have two logs. Only a draft that nobody took away is harmless."""
    path = Path(settings.path)
    for draft in path.parent.glob(f"{glob.escape(path.name)}.*.new"):
        with suppress(FileNotFoundError):  # whoever made it took it away meanwhile
            if draft.stat().st_ino == found.st_ino:
                draft.unlink()
    names = os.stat(settings.path).st_nlink
    if names > 1:
        reason = f"it has {names} names (hard links), and each would have a log of its own"
        raise NotAStore(place=settings.place, reason=reason)


def _nothing_there(settings: Settings, *, create: bool) -> int:
    left = [suffix for suffix in _COMPANIONS if os.path.exists(settings.beside(suffix))]
    if left and os.path.exists(settings.path):  # made by another process meanwhile, and these are its own
        return find_or_make(settings, create=create)
    if left:
        _refuse_remains(settings, left)
    if not create:
        raise errors.StoreMissing(place=settings.place)
    make(settings)
    return os.stat(settings.path).st_size


def _refuse_remains(settings: Settings, left: list[str]) -> None:
    """Companions without their database: it was removed, and making another would hide that."""
    last = Anchor(settings.beside("-anchor"), synced=True).newest()
    if last:
        raise errors.LostCommits(
            place=settings.place, first=1, last=last, reason="The database file is gone."
        )
    names = ", ".join(os.path.basename(settings.path) + suffix for suffix in left)
    raise NotAStore(place=settings.place, reason=f"{names} is there, but its database is not")


def check_header(settings: Settings, size: int, connection: apsw.Connection) -> None:
    """Read the header through SQLite, before any statement, and refuse what is not ours or not yet known."""
    header = connection.read("main", 0, 0, 100)[1]
    if header[:16] != _MAGIC[: min(16, size)]:
        raise NotAStore(place=settings.place, reason="it is not an SQLite database")
    if size < PAGE_BYTES:
        raise Damaged(what=settings.place, reason=f"the file was cut off after {size} bytes")
    found, application = struct.unpack(">I4xI", header[60:72])
    if application != APPLICATION_ID:
        raise NotAStore(place=settings.place, reason="it is an SQLite database of another program")
    if found > FORMAT:
        raise StoreTooNew(place=settings.place, found=found, known=FORMAT)


def make(settings: Settings) -> None:
    """Make a fresh store at a place where nothing is. Another process may do so at the same time."""
    path = Path(settings.path)
    draft = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _fill(settings, draft)
            sync(draft)
            with suppress(FileExistsError):  # somebody was quicker
                os.link(draft, path)
                sync(path.parent)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        if error.errno in FORBIDDEN:
            raise errors.StoreReadOnly(place=settings.place, reason=error.strerror or str(error)) from error
        failure = apsw.IOError(str(error))
        raise translate(failure, settings.place, system_errno=error.errno or 0) from error


def _fill(settings: Settings, draft: Path) -> None:
    connection: apsw.Connection | None = None
    try:
        connection = connect(attrs.evolve(settings, path=str(draft), fresh=True), writing=True)
        connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("application_id", APPLICATION_ID)
        migrate(connection)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise errors.StoreFailed(
                place=settings.place, reason="the filesystem cannot hold a write-ahead log"
            )
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    except apsw.Error as error:
        failure = translate(error, settings.place, system_errno=connection.system_errno if connection else 0)
        raise failure from error
    finally:
        if connection is not None:
            connection.close()


def migrate(connection: apsw.Connection) -> None:
    """Bring the tables to the newest format: each step in one transaction together with its number."""
    for number, script in enumerate(migrations(), start=1):
        if _version(connection) >= number:
            continue
        connection.execute(SQL["begin_write"])
        try:
            if _version(connection) == number - 1:  # nobody else did it while we waited
                connection.execute(script)
                connection.pragma("user_version", number)
            connection.execute(SQL["commit"])
        except BaseException:
            if connection.in_transaction:
                connection.execute(SQL["rollback"])
            raise


def _version(connection: apsw.Connection) -> int:
    found = connection.pragma("user_version")
    assert isinstance(found, int), "BUG: a pragma that is a number"
    return found


def upgrade(connection: apsw.Connection, place: str) -> None:
    """Bring an existing store to the newest format and make sure that its tables are the ones we know."""
    version = _version(connection)
    _refuse_version(place, version)
    if connection.pragma("journal_mode") != "wal":
        connection.pragma("journal_mode", "wal")
    if version < FORMAT:
        migrate(connection)
    connection.execute(SQL["begin_read"])
    check_tables(connection, place)
    connection.execute(SQL["commit"])


def check_tables(connection: apsw.Connection, place: str, *, version_known: bool = False) -> None:
    """Raise unless the tables are exactly those of the newest format."""
    if not version_known:
        _refuse_version(place, _version(connection))
    if tables_of(connection) != expected_tables():
        raise Damaged(what=f"{place}, table sqlite_schema,", reason="the tables are not those of its format")


def _refuse_version(place: str, found: int) -> None:
    if found > FORMAT:
        raise StoreTooNew(place=place, found=found, known=FORMAT)
    if found < 1:
        raise Damaged(what=place, reason=f"its format number is {found}")


def tables_of(connection: apsw.Connection) -> list[tuple[object, ...]]:
    """The tables and indexes of a database, as text."""
    return ask(connection, SQL["schema"])


@lru_cache(maxsize=1)
def expected_tables() -> list[tuple[object, ...]]:
    """What the migrations make."""
    with closing(apsw.Connection(":memory:")) as connection:
        migrate(connection)
        return tables_of(connection)


def write_obstacle(settings: Settings) -> str | None:
    """Why the place cannot be written; None when nothing speaks against it."""
    if not os.access(settings.path, os.W_OK):
        return "the file is read-only"
    if not os.access(os.path.dirname(os.path.abspath(settings.path)), os.W_OK):
        return "its directory is read-only"
    return None


def open_for_reading(settings: Settings, size: int) -> tuple[Settings, apsw.Connection | None]:
    """How a database is opened that is only read, and a connection where one could be made.

    Raises `StoreTooNew` and `Damaged` for a format that is not known. SQLite keeps an index of the WAL in a
    file beside it, which readers share with writers and make anew where a process died: that is all that
    reading may write. Where it cannot be made, and no WAL is there, the database is read as it is.
    """
    connection = None
    try:
        connection = connect(settings, writing=False, inspect=partial(check_header, settings, size))
        _refuse_version(settings.place, _version(connection))  # the first question opens the WAL
    except BaseException as error:
        if connection is not None:
            connection.close()
        if not isinstance(error, FOREIGN):
            raise
        unindexed = isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError)
        return attrs.evolve(settings, immutable=unindexed and not settings.size("-wal")), None
    return settings, connection
