"""Every test ends with the threads it began: one that goes on throws dice under the tests that follow."""

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("orchestra-"):
            thread.join(60)
            assert not thread.is_alive(), f"{thread.name} goes on"
