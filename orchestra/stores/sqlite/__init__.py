"""The SQLite store: one database file that several processes of one machine share."""

from orchestra.stores.sqlite.store import SqliteStore
from orchestra.stores.sqlite.url import open_sqlite

__all__ = ["SqliteStore", "open_sqlite"]
