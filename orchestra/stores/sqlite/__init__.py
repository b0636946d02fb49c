"""The SQLite store: one database file that several processes of one machine share."""

from orchestra.stores.sqlite.settings import open_sqlite
from orchestra.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "open_sqlite"]
