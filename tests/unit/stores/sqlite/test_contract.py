"""The contract suite over the SQLite store itself, without the registry."""

from pathlib import Path

import pytest

from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.store_contract import OpenStore, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: SqliteStore(tmp_path / "deep" / "orchestra.db", create=True)
