"""When spans are written: those of a run that goes on soon, those of a short run together; never too many."""

import logging
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.background import BackgroundWriter, append
from orchestra.ids import RunId
from orchestra.ports.sink import CheckpointFailed
from orchestra.telemetry import names
from orchestra.telemetry import sink as module
from orchestra.telemetry.sink import TelemetrySink, drain_list
from orchestra.testing.clock import START
from tests.unit.telemetry.support import FUNCTIONS, by_name, good, metrics, played, spans, workflow

RUN = "letters_1"
pytestmark = pytest.mark.anyio


def _house(folder: Path, **functions: Any) -> Orchestra:
    return Orchestra(
        f"sqlite:{folder}/store.db", functions={**FUNCTIONS, **functions}, project=folder, telemetry=True
    )


async def test_what_has_ended_is_written_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody flushes: an agent that works for hours must not keep the phases before it out of the file."""

    written = threading.Event()

    def noticed(path: str, lines: str, *, new: bool) -> None:
        append(path, lines, new=new)
        written.set()

    async def waits_for_the_file(ctx: Any) -> str:
        assert await anyio.to_thread.run_sync(written.wait, 30)
        return "seen"

    monkeypatch.setattr(module, "append", noticed)
    async with _house(tmp_path, flaky=waits_for_the_file) as house:
        assert (await house.run(workflow(), run=RUN)).kind == "completed"
    found = spans(tmp_path, RUN)
    assert len(by_name(found, "phase draft")) == 1
    assert len({each["spanId"] for each in found}) == len(found)


async def test_a_thread_that_is_faster_than_the_loop_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has written what it was handed before handing over has returned."""
    put = BackgroundWriter.put

    def slowly(self: BackgroundWriter[Any], item: Any) -> bool:
        return put(self, item) and self.flush(30)

    monkeypatch.setattr(BackgroundWriter, "put", slowly)
    assert (await played(tmp_path)).kind == "completed"
    found = spans(tmp_path, RUN)
    for name in ("phase draft", "phase print", "invoke_workflow letters"):
        assert len(by_name(found, name)) == 1, name


async def test_a_short_run_is_written_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[str]()

    def counted(path: str, lines: str, *, new: bool) -> None:
        written.append(Path(path).parts[-3])
        append(path, lines, new=new)

    monkeypatch.setattr(module, "append", counted)
    monkeypatch.setattr("orchestra.background.TELEMETRY_LINGER_SECONDS", 60.0)
    await played(tmp_path, RUN)
    assert written == [RUN]


async def test_spans_that_cannot_be_written_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go, stuck = threading.Event(), threading.Event()

    def stands_still(path: str, lines: str, *, new: bool) -> None:
        stuck.set()
        assert go.wait(60)

    monkeypatch.setattr(module, "TELEMETRY_SPANS", 6)
    monkeypatch.setattr(module, "append", stands_still)
    try:
        with caplog.at_level(logging.WARNING):
            async with _house(tmp_path, flaky=good) as house:
                await house.run(workflow(), run="letters_0")
                assert await anyio.to_thread.run_sync(stuck.wait, 30)
                for number in range(1, 4):
                    assert (await house.run(workflow(), run=f"letters_{number}")).kind == "completed"
                go.set()
    finally:
        go.set()
    told = [each.message for each in caplog.records if "left out" in each.message]
    # Seven spans a run: those of the second run fit, those of the next two do not.
    assert told == ["telemetry: 14 spans were left out"]


async def test_spans_of_a_run_that_ended_while_the_queue_was_full_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put, is_full = BackgroundWriter.put, True

    def while_there_is_room(self: BackgroundWriter[Any], item: Any) -> bool:
        return not is_full and put(self, item)

    monkeypatch.setattr(module, "TELEMETRY_SPANS", 6)
    monkeypatch.setattr(BackgroundWriter, "put", while_there_is_room)
    with caplog.at_level(logging.WARNING):
        async with _house(tmp_path, flaky=good) as house:
            await house.run(workflow(), run="letters_0")
            is_full = False
            await house.run(workflow(), run=RUN)
    told = [each.message for each in caplog.records if "left out" in each.message]
    assert told == ["telemetry: 7 spans were left out"]
    assert len(spans(tmp_path, RUN)) == 7, "what is left out takes no room from others"


async def test_nothing_is_kept_of_a_run_that_is_over(tmp_path: Path) -> None:
    """A snapshot that is not saved when nothing of the run is open is counted, and no turn comes after it."""
    sink = TelemetrySink(tmp_path / "outputs")
    sink.notice(CheckpointFailed(run=RunId(RUN), seq=3, at=START, error="the disk is full", unsaved=0))
    assert sink._runs == {}
    assert sink.flush(30)
    (counted,) = metrics(tmp_path, RUN)[names.CHECKPOINT_COUNT]["sum"]["dataPoints"]
    assert counted["asInt"] == "1"
    sink.close()


async def test_what_is_added_while_a_list_is_taken_stays() -> None:
    held, found = list[int](), list[int]()
    done = threading.Event()

    def adds() -> None:
        for each in range(20_000):
            held.append(each)
        done.set()

    adding = threading.Thread(target=adds)
    adding.start()
    while not done.is_set():
        found += drain_list(held)
    adding.join()
    found += drain_list(held)
    assert found == list(range(20_000))
    assert held == []
