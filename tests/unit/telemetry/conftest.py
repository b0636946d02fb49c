"""Every test ends with the sending threads it began: one that goes on throws dice under later tests."""

import threading
from collections.abc import Iterator

import pytest

SENDING = "orchestra-otlp"


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == SENDING:
            thread.join(30)
            assert not thread.is_alive(), f"{thread.name} goes on"
