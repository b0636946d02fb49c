"""A store of each kind with three recorded runs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestra.ports.store import Store
from orchestra.stores.registry import open_store
from tests.unit.cli.recording import record_into
from tests.web.support import Visitor, served

STORES = ("memory:", "files:{}/files", "sqlite:{}/store.db")


@pytest.fixture(params=STORES, ids=lambda url: url.partition(":")[0])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store with the recorded runs."""
    with open_store(request.param.format(tmp_path), create=True) as opened:
        await record_into(opened)
        yield opened


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[Store]:
    """The default kind of store with the recorded runs."""
    with open_store(f"sqlite:{tmp_path}/store.db", create=True) as opened:
        await record_into(opened)
        yield opened


@pytest.fixture
async def visitor(store: Store) -> AsyncIterator[Visitor]:
    """Somebody who looks at the recorded runs, on every kind of store."""
    async with served(store) as made:
        yield made
