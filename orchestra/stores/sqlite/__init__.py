"""The SQLite store: one database file that several processes of one machine share."""

from orchestra.stores.sqlite.store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "open_sqlite"]
