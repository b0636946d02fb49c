"""The thread that works on batches."""

import threading

import pytest

from orchestra import background as module
from orchestra.background import BackgroundWriter


def test_everything_is_worked_on_in_order() -> None:
    seen = list[int]()
    background = BackgroundWriter[int]("test", seen.extend)
    for each in range(1000):
        assert background.put(each)
    assert background.flush(30)
    assert seen == list(range(1000))
    background.put(1000)
    assert background.close(30)
    assert seen[-1] == 1000
    assert background.close(30)


def test_work_that_fails_does_not_end_it() -> None:
    seen = list[int]()

    def work(batch: list[int]) -> None:
        if 13 in batch:
            raise ValueError("thirteen")
        seen.extend(batch)

    background = BackgroundWriter[int]("test", work)
    background.put(13)
    assert background.flush(30)
    background.put(14)
    assert background.close(30)
    assert seen == [14]


def test_too_many_are_left_out_and_counted() -> None:
    begun, go = threading.Event(), threading.Event()

    def work(batch: list[int]) -> None:
        begun.set()
        go.wait(30)

    background = BackgroundWriter[int]("test", work, limit=3)
    background.put(0)
    assert begun.wait(30)
    assert [background.put(each) for each in range(5)] == [True, True, True, False, False]
    assert background.dropped == 2
    go.set()
    assert background.close(30)


def _wait(go: threading.Event) -> None:
    go.wait(60)


def test_closing_does_not_wait_for_ever() -> None:
    go = threading.Event()
    background = BackgroundWriter[int]("test", lambda batch: _wait(go))
    background.put(1)
    assert not background.close(0.01)
    go.set()


def test_many_are_not_waited_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TELEMETRY_LINGER_SECONDS", 600.0)
    seen, done = list[int](), threading.Event()

    def work(batch: list[int]) -> None:
        seen.extend(batch)
        if len(seen) > 50:
            done.set()

    background = BackgroundWriter[int]("test", work, limit=100)
    for each in range(51):
        assert background.put(each)
    assert done.wait(30)
    assert seen == list(range(51))
    assert background.close(30)
