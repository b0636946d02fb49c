"""What every test stands on: one async backend, and properties that are not judged by the clock."""

import signal
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

# A suite that a script runs in the background ignores Ctrl-C, and so would the programs that it tries.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Clients of model providers bring `sniffio` along. Where it is installed anyio asks it who runs, and takes
# a loop that its plugin keeps for the fixtures of others for one of the test.
vars(import_module("anyio._core._eventloop"))["sniffio"] = None

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio, the only backend that is promised."""
    return "asyncio"
