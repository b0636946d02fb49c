"""Providers that want to be left alone: the wait is durable, and nobody asks again before it is over."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app.compose import SystemClock
from orchestra.app.orchestra import Orchestra
from orchestra.engine.atlas import Ending
from orchestra.engine.inbox import Inbox
from orchestra.ids import Instant, run_id
from tests.fault.support.work import manager_of
from tests.llm.talk import Talk, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
SECOND = 1_000_000


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets the clock of those who begin to play from now on be ahead."""
    now = SystemClock.now

    def ahead(seconds: float) -> None:
        monkeypatch.setattr(SystemClock, "now", lambda self: Instant(now() + int(seconds * SECOND)))

    return ahead


def _is_limited(talk: Talk) -> bool:
    """Whether it stands on the record that a provider is waited for."""
    archive = manager_of(talk.store).archive
    waits = archive.snapshot(archive.newest(run_id("talk"))).state.waits.values()
    return any(each.status == "open" for each in waits)


async def _until_it_waits(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> tuple[Ending, float]:
    """Play until there is nothing to do for a long time, and stop; for how long there is nothing."""
    idle, sleeps, wait = anyio.Event(), list[float](), Inbox.wait

    async def note(self: Inbox, seconds: float | None = None) -> None:
        if seconds is not None and seconds > 60 and _is_limited(talk):
            sleeps.append(seconds)
            idle.set()
        await wait(self, seconds)

    with monkeypatch.context() as patch:
        patch.setattr(Inbox, "wait", note)
        async with Orchestra(talk.store, project=talk.folder) as house, anyio.create_task_group() as group:
            endings: list[Ending] = []

            async def play() -> None:
                if talk.store.run("talk") is None:  # type: ignore[arg-type]
                    endings.append(await house.run(talk.folder / "flow.yaml", run="talk"))
                else:
                    endings.append(await house.resume("talk"))

            group.start_soon(play)
            await idle.wait()
            house.drain()
    return endings[0], sleeps[-1]


@pytest.mark.parametrize(
    "fault",
    [{"retry_after": 3600}, {"retry_after_ms": 3_600_000}, {"retry_after": "date"}],
    ids=["seconds", "milliseconds", "date"],
)
async def test_a_wait_outlives_the_process_and_goes_on_where_it_was(
    open_with: Opener, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    if "date" in fault.values():
        fault = {"retry_after": formatdate(SystemClock().now() / SECOND + 3600, usegmt=True)}
    async with open_with([{"text": "There.", "faults": [{"kind": "rate_limit", **fault}]}]) as talk:
        talk.agent()
        ending, _ = await _until_it_waits(talk, monkeypatch)
        assert ending.kind == "interrupted"
        (wait,) = ending.state.waits.values()
        assert (wait.kind, wait.status) == ("rate_limit", "open")
        assert wait.until is not None
        assert 3500 < (wait.until - wait.opened_at) / SECOND <= 3600
        later(1800)
        ending, left = await _until_it_waits(talk, monkeypatch)
        assert 1700 < left <= 1800, "the rest, not all of it again"
        assert list(ending.state.waits.values()) == [wait]
        assert len(talk.provider.ledger.begun()) == 1, "nobody asked before the time"
        later(3601)
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert len(talk.provider.ledger.begun()) == 2
        assert [each.status for each in ending.state.waits.values()] == ["closed"]


@pytest.mark.parametrize("after", [1e12, "1" + "0" * 400, "9999999999", "-5", "soon", "inf", "nan"])
async def test_a_wait_that_makes_no_sense(
    open_with: Opener, monkeypatch: pytest.MonkeyPatch, after: Any
) -> None:
    """One that is too long, or none, is bounded or left out; the run does not break."""
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    script = [{"text": "There.", "faults": [{"kind": "rate_limit", "retry_after": after}]}]
    async with open_with(script) as talk:
        talk.agent("model: [openai-chat:one, openai-chat:two]")
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
