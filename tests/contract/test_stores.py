"""The contract suite over every store that ships."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra.testing.store_contract import OpenStore, StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        from orchestra.stores.memory import MemoryStore

        return MemoryStore


class TestFiles(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        from orchestra.stores.files.store import FilesStore

        yield lambda: FilesStore(tmp_path / "checkpoints", create=True)
        shutil.rmtree(tmp_path)  # with the room that each store sets aside


class TestSqlite(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        from orchestra.stores.registry import open_store

        return lambda: open_store(f"sqlite:{tmp_path / 'orchestra.db'}", create=True)


class TestAuditedSqlite(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        from orchestra.stores.registry import open_store

        return lambda: open_store(f"sqlite:{tmp_path / 'orchestra.db'}", create=True, audited=True)


class TestAuditedFiles(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        from orchestra.stores.registry import open_store

        yield lambda: open_store(f"files:{tmp_path / 'checkpoints'}", create=True, audited=True)
        shutil.rmtree(tmp_path)  # with the room that each store sets aside
