"""How the heap of a process that plays runs is set."""

import gc
from collections.abc import Iterator

import pytest

from orchestra.app.heap import calm_heap
from orchestra.limits import HEAP_NEW_OBJECTS


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_is_loaded_is_not_looked_at_again() -> None:
    gc.set_threshold(700, 10, 10)
    before = gc.get_freeze_count()
    calm_heap()
    assert gc.get_freeze_count() > before
    assert gc.get_threshold() == (HEAP_NEW_OBJECTS, 10, 10)


def test_who_set_it_higher_keeps_that() -> None:
    gc.set_threshold(90_000, 5, 6)
    calm_heap()
    assert gc.get_threshold() == (90_000, 5, 6)


def test_a_collector_that_is_off_stays_off() -> None:
    gc.set_threshold(0, 10, 10)
    calm_heap()
    assert gc.get_threshold()[0] == 0
