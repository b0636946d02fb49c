"""What every test stands on: one async backend."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio, the only backend that is promised."""
    return "asyncio"
