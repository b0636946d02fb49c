"""Runs made to be large: many snapshots, or a state with a great value. The browser is measured on them."""

from __future__ import annotations

from typing import Final

from benchmarks.demo.stage import Stage
from benchmarks.demo.texts import Part
from orchestra.ids import RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Failure

AGENTS: Final = ("planner", "coder", "tester", "reviewer")
JOBS: Final = 240
FAILS_EVERY: Final = 23
IDLE_EVERY: Final = 60
IDLE_SECONDS: Final = 2 * 3600.0
TEXT: Final = "The queue was read twice and every entry of it was compared with what the plan had asked for. "


async def long(stage: Stage, snapshots: int, *, state_bytes: int = 12_000) -> RunId:
    """A run of at least so many snapshots, whose state has about that size."""
    await stage.begin("Work through a long queue", "phase-0", files=snapshots)
    agent = stage.planned(_part(0)).agent
    await stage.turn(stage.contributed("material", "replace", _material(state_bytes), agent))
    done, number = 2, 0
    steps = max(1, snapshots // JOBS - 2)
    while done < snapshots:
        if number and number % 50 == 0:
            await stage.next_phase(f"phase-{number // 50}", [])
            done += 2
        done += await _job(stage, _part(number, steps), number)
        number += 1
    return await stage.end()


async def great(stage: Stage, size: int) -> RunId:
    """A run of a few snapshots whose context holds a value of so many bytes, in texts of a kilobyte."""
    await stage.begin("Keep a great table", "table", files=1)
    row = (TEXT * 12)[:1000]
    table = {f"row-{n:06}": {"n": n, "text": f"{n} {row}"} for n in range(size // 1040)}
    agent = stage.planned(_part(0)).agent
    await stage.turn(stage.contributed("table", "merge", table, agent))
    await stage.turn(stage.contributed("table", "merge", {"row-000007": {"n": 7, "text": "changed"}}, agent))
    await stage.turn(stage.contributed("letter", "replace", TEXT * (size // len(TEXT)), agent))
    return await stage.end()


async def _job(stage: Stage, part: Part, number: int) -> int:
    await stage.turn(stage.planned(part), stage.launched(part), after=0.5)
    for step in range(len(part.steps)):
        await stage.turn(*stage.milestone(part, step), after=0.3)
    if number % FAILS_EVERY == FAILS_EVERY - 1:
        await stage.turn(_failed(stage, part), after=2.0)
    else:
        confidence = 0.55 + 0.4 * stage.chance.random()
        await stage.turn(*stage.completed(part), stage.confident(round(confidence, 2)), after=1.0)
    if number % IDLE_EVERY == IDLE_EVERY - 1:
        stage.clock.forward(IDLE_SECONDS)
    return len(part.steps) + 2


def _part(number: int, steps: int = 1) -> Part:
    agent = AGENTS[number % len(AGENTS)]
    return Part(
        agent=agent,
        task=f"job-{number}",
        description=f"Entry {number} of the queue.",
        steps=tuple((step / steps, f"part {step} of entry {number}") for step in range(steps)),
        words=(TEXT, "Nothing was missing. "),
        result={"summary": f"Entry {number} is done.", "findings": []},
        confidence=0.8,
        tokens=900,
    )


def _failed(stage: Stage, part: Part) -> ev.TaskFailed:
    at = stage.clock.now()
    failure = Failure(error="ValueError", message="the entry names a file that is not there", at=at)
    return ev.TaskFailed(at=at, task=TaskId(part.task), failure=failure, final=False)


def _material(size: int) -> dict[str, dict[str, object]]:
    entry: dict[str, object] = {
        "title": "What the queue holds",
        "notes": TEXT * 3,
        "weights": [0.2, 0.3, 0.5],
    }
    return {f"entry-{n:04}": entry for n in range(max(1, size // 400))}
