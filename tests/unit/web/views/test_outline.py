"""Outlines: attempts as bars, phases as stretches, jumps and marks, extended as a run goes on."""

from typing import Any

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.history.archive import Archive
from orchestra.history.lineage import jumps, lived_ranges
from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Failure
from orchestra.model.snapshot import Header, Headline
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock
from orchestra.web.errors import BadRequest
from orchestra.web.views import outline as module
from orchestra.web.views.outline import Outline, Outlines
from orchestra.web.views.snapshots import Lineages
from tests.unit.cli.recording import Recorder

RUN = RunId("run")


def _header(seq: int, *events: Headline, triggers: tuple[Any, ...] = (), **more: Any) -> Header:
    return Header(
        run=RUN,
        seq=seq,
        parent=None,
        at=Instant(seq),
        triggers=triggers,
        marked=False,
        events=events,
        status="running",
        phase=more.pop("phase", "a"),
        ordinal=1,
        patch=Digest(bytes(32)),
        seal=Digest(bytes(32)),
        sealed_at=0,
        **more,
    )


def _launched(task: str, attempt: int = 1) -> Headline:
    return Headline(kind="agent_launched", who="x", what=task, figures=(("attempt", attempt),))


def _answer(*headers: Header) -> dict[str, Any]:
    outline = Outline()
    for header in headers:
        outline.add(header)
    return outline.json(-1)


def test_every_attempt_is_a_bar_with_its_outcome() -> None:
    found = _answer(
        _header(0, _launched("a/one"), _launched("a/two"), _launched("a/three")),
        _header(1, Headline(kind="task_failed", who="x", what="a/one: ValueError: a: b")),
        _header(2, _launched("a/one", 2), Headline(kind="task_completed", who="x", what="a/two")),
        _header(3, Headline(kind="task_retired", who="x", what="a/three: skipped")),
    )
    bars = [(bar["task"], bar["attempt"], bar["from"], bar["to"], bar["outcome"]) for bar in found["bars"]]
    assert bars == [
        ("a/one", 1, 0, 1, "failed"),
        ("a/two", 1, 0, 2, "completed"),
        ("a/three", 1, 0, 3, "skipped"),
        ("a/one", 2, 2, None, "open"),
    ]


@pytest.mark.parametrize("kind", ["rolled_back", "run_ended"])
def test_what_was_under_way_is_interrupted(kind: str) -> None:
    figures = (("from", 0), ("to", 0))
    found = _answer(_header(0, _launched("a/one")), _header(1, Headline(kind=kind, figures=figures)))
    assert [(bar["to"], bar["outcome"]) for bar in found["bars"]] == [(1, "interrupted")]


def test_confidence_and_tokens_are_told_where_they_change() -> None:
    spent = Headline(kind="spent", figures=(("tokens", 5),))
    found = _answer(
        _header(0),
        _header(1, spent, spent, confidence=0.5),
        _header(2, confidence=0.5),
        _header(3, confidence=0.7),
        _header(4, spent),
    )
    assert found["confidence"] == {"seq": [1, 3, 4], "value": [0.5, 0.7, None]}
    assert found["spent"] == {"seq": [1, 4], "tokens": [10, 5]}


def test_a_phase_that_is_visited_again_is_another_stretch() -> None:
    found = _answer(
        _header(0, phase=None), _header(1, phase="a"), _header(2, phase="b"), _header(3, phase="a")
    )
    assert [(each["phase"], each["visit"], each["from"], each["to"]) for each in found["phases"]] == [
        ("a", 1, 1, 1),
        ("b", 1, 2, 2),
        ("a", 2, 3, None),
    ]


@pytest.mark.anyio
async def test_an_outline_is_read_in_portions_and_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WEB_OUTLINE_ROWS", 4)
    store, clock = MemoryStore(), FakeClock()
    async with CheckpointManager(store, clock=clock, owner="test") as manager:
        recorder = Recorder(manager, clock)
        active = await recorder.begin(RUN, "flow")
        for number in range(9):
            await recorder.decided(active, f"number {number}")
        archive = Archive(store)
        outlines, after, seen = Outlines(archive), -1, list[int]()
        while True:
            found = outlines.json(archive.run(RUN), after)
            seen += found["decisions"]
            after = found["upto"]
            if not found["more"]:
                break
        assert seen == list(range(1, 10))
        await recorder.decided(active, "one more")
        assert outlines.json(archive.run(RUN), after)["decisions"] == [10]


@pytest.mark.anyio
async def test_an_outline_that_nobody_waited_for_is_gone_on_with() -> None:
    store, clock = MemoryStore(), FakeClock()
    async with CheckpointManager(store, clock=clock, owner="test") as manager:
        recorder = Recorder(manager, clock)
        active = await recorder.begin(RUN, "flow")
        for number in range(9):
            await recorder.decided(active, f"number {number}")
    archive = Archive(store)
    outlines, asked = Outlines(archive), 0

    def until_the_fifth() -> None:
        nonlocal asked
        asked += 1
        if asked == 5:
            raise BadRequest(reason="it broke off")

    with pytest.raises(BadRequest):
        outlines.json(archive.run(RUN), -1, until_the_fifth)
    assert outlines.json(archive.run(RUN), -1, until_the_fifth) == Outlines(archive).json(
        archive.run(RUN), -1
    )
    assert asked == 11, "four were read the first time, six the second"


@pytest.mark.anyio
async def test_what_was_undone_is_known_also_after_a_rollback_of_a_rollback() -> None:
    store, clock = MemoryStore(), FakeClock()
    async with CheckpointManager(store, clock=clock, owner="test") as manager:
        recorder = Recorder(manager, clock)
        active = await recorder.begin(RUN, "flow")
        for number in range(4):
            await recorder.decided(active, f"number {number}")
        archive = Archive(store)
        lineages = Lineages(archive)
        assert not any(lineages.is_undone(archive.run(RUN), seq) for seq in range(5))
        await manager.rollback(active, 1, reason="first")  # 5
        assert [lineages.is_undone(archive.run(RUN), seq) for seq in range(6)] == [False] * 2 + [True] * 3 + [
            False
        ]
        await manager.rollback(active, 3, reason="second")  # 6 builds on 3 after all
        undone = [lineages.is_undone(archive.run(RUN), seq) for seq in range(7)]
        assert undone == [False, False, False, False, True, True, False]
        assert jumps(archive, RUN) == [(5, 1), (6, 3)]
        assert lived_ranges([(5, 1), (6, 3)], 6) == [range(6, 7), range(4)]


@pytest.mark.anyio
async def test_a_failure_is_marked() -> None:
    store, clock = MemoryStore(), FakeClock()
    async with CheckpointManager(store, clock=clock, owner="test") as manager:
        recorder = Recorder(manager, clock)
        active = await recorder.begin(RUN, "flow")
        await recorder.phase(active, "find")
        at, task, agent = recorder.tick(), TaskId("find/a"), AgentId("a")
        await recorder.turn(
            active,
            ev.TaskPlanned(at=at, task=task, agent=agent, phase=PhaseId("find")),
            ev.AgentLaunched(at=at, agent=agent, task=task),
        )
        failure = Failure(error="ValueError", message="no", at=at)
        await recorder.turn(active, ev.TaskFailed(at=recorder.tick(), task=task, failure=failure))
        found = Outlines(Archive(store)).json(store.run(RUN), -1)  # type: ignore[arg-type]
    assert found["errors"] == [3]
    assert found["bars"][0]["outcome"] == "failed"
