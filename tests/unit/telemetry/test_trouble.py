"""Telemetry that cannot be written never fails a run, and what is off leaves nothing behind."""

import logging
from pathlib import Path

import pytest

from orchestra.app.compose import Observers
from orchestra.app.orchestra import Orchestra
from orchestra.engine.settings import EngineSettings
from orchestra.telemetry.journal import JournalSink
from tests.unit.telemetry.support import FUNCTIONS, journal, played, stored, workflow

RUN = "letters_1"
pytestmark = pytest.mark.anyio


async def test_a_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "outputs").write_text("a file where a folder should be")
    with caplog.at_level(logging.WARNING):
        assert (await played(tmp_path, RUN)).kind == "completed"
    told = [each.message for each in caplog.records if each.name == "orchestra.telemetry"]
    assert len(told) == 2
    assert all("goes on" in each or "go on" in each for each in told)


async def test_without_settings_nothing_is_written(tmp_path: Path) -> None:
    async with Orchestra(f"sqlite:{tmp_path}/store.db", functions=FUNCTIONS, project=tmp_path) as house:
        await house.run(workflow(), run=RUN)
    assert not (tmp_path / "outputs").exists()


async def test_settings_decide(tmp_path: Path) -> None:
    engine = EngineSettings(telemetry=False)
    async with Orchestra(
        f"sqlite:{tmp_path}/store.db", functions=FUNCTIONS, project=tmp_path, engine=engine
    ) as house:
        await house.run(workflow(), run=RUN)
    assert [each.name for each in (tmp_path / "outputs" / RUN).iterdir()] == ["events.jsonl"]


def test_who_decides(tmp_path: Path) -> None:
    everything = ["JournalSink", "TelemetrySink"]

    def told(engine: EngineSettings | None, by_name: bool | None) -> list[str]:
        made = Observers(tmp_path, str, engine, telemetry=by_name, events=by_name)
        names = [type(each).__name__ for each in made.sinks]
        made.close()
        return names

    assert told(None, None) == []
    assert told(EngineSettings(json_files=True), None) == [*everything, "JsonSink"]
    assert told(EngineSettings(), None) == everything
    assert told(EngineSettings(), False) == []
    assert told(None, True) == everything


async def test_many_runs_at_once_keep_their_own_journals(tmp_path: Path) -> None:
    import anyio

    names = [f"letters_{each}" for each in range(20)]
    async with Orchestra(
        f"sqlite:{tmp_path}/store.db", functions=FUNCTIONS, project=tmp_path, events=True, telemetry=True
    ) as house:

        async def play(name: str) -> None:
            await house.run(workflow(), run=name)

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(play, name)
    for name in names:
        assert [(each["seq"], each["digest"]) for each in journal(tmp_path, name)] == stored(tmp_path, name)


async def test_lines_that_were_left_out_are_filled_in_by_the_next(tmp_path: Path) -> None:
    """As when too many waited: some turns never reach the sink's thread."""
    from orchestra.ports.sink import Notice, TurnRecorded

    kept = JournalSink(tmp_path / "outputs")

    class Forgetful:
        def notice(self, notice: Notice, /) -> None:
            if not isinstance(notice, TurnRecorded) or notice.header.seq not in (1, 2):
                kept.notice(notice)

    async with Orchestra(
        f"sqlite:{tmp_path}/store.db", functions=FUNCTIONS, project=tmp_path, sinks=[Forgetful()]
    ) as house:
        kept.bind(house.manager.archive)
        await house.run(workflow(), run=RUN)
        kept.close()
    assert [(each["seq"], each["digest"]) for each in journal(tmp_path, RUN)] == stored(tmp_path, RUN)
