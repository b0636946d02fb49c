"""What every test stands on: one async backend, and properties that are not judged by the clock."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio, the only backend that is promised."""
    return "asyncio"
