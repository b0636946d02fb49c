"""What an agent manager must do, row by row (CHECKLIST 000): through the command line and the public API."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.engine.orders import Order
from orchestra.errors import BadOrder
from orchestra.ids import Instant, new_run_id
from tests.unit.cli.project import Project, ended
from tests.unit.engine.support import Theatre, does, flow, path, phase, triggers

FILE = re.compile(r"checkpoint_phase(\d+)_\d{8}T\d{6}Z_(\d+)\.json")
STREAMER = '''
"""Streams a sentence, and waits in the middle of it."""
import asyncio
from pathlib import Path
async def agent(ctx):
    if not ctx.partial:
        ctx.emit("The answer ")
    ctx.emit("is f")
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    ctx.emit("orty-two.")
    return {"before": ctx.partial, "attempt": ctx.attempt}
'''


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


# Files beside the store.


def test_snapshots_are_also_files_that_people_can_read(project: Project) -> None:
    """000.20, 000.22 to 000.24, 001.9, 001.10: named, in a folder of the run, the newest once more."""
    project.workflow("quick", "quick")
    project.run("run", "flow.yaml", "--run-id", "r1", ORCHESTRA_CHECKPOINT_JSON_FILES="true")
    folder = project.folder / "outputs" / "r1" / "checkpoints"
    names = {file.name: FILE.fullmatch(file.name) for file in folder.iterdir() if file.name != "latest.json"}
    assert all(names.values())
    marked = [row["seq"] for row in project.json("snapshots", "r1", "--marked")]
    assert sorted(int(found[2]) for found in names.values() if found) == marked
    assert {int(found[1]) for found in names.values() if found} == {1, 2}, "the phase, by its number"
    newest = max((int(found[2]), name) for name, found in names.items() if found)[1]
    assert (folder / "latest.json").read_bytes() == (folder / newest).read_bytes()
    text = (folder / "latest.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "version": "1.0",\n  "checkpoint_id": "')
    assert json.loads(text)["status"] == "completed"
    for name in names:
        assert "is whole" in project.run("verify", "--file", str(folder / name)).stdout
    known = project.json("show", "r1")["snapshot"]
    assert json.loads(text)["checkpoint_id"] == known["uuid"], "the store knows it by the same id"


def test_without_being_asked_for_there_are_no_files(project: Project) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    assert not (project.folder / "outputs" / "r1" / "checkpoints").exists()


# What is not there.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("snapshot", "nobody"), "orchestra runs"),
        (("resume", "nobody"), "orchestra runs"),
        (("status", "nobody"), "orchestra runs"),
        (("snapshots", "nobody"), "orchestra runs"),
        (("rollback", "nobody@1", "--yes"), "orchestra runs"),
        (("rollback", "r1@99", "--yes"), "its snapshots are 0 to"),
        (("show", "r1@99"), "its snapshots are 0 to"),
        (("show", "deadbeefdeadbeef"), "deadbeef"),
        (("fork", "r1@99"), "its snapshots are 0 to"),
    ],
)
def test_what_is_not_there_is_said_and_changes_nothing(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    """000.17, 000.25, 000.26, 000.33, 000.35: one sentence, exit code 2, nothing written."""
    project.workflow("asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    before = project.json("snapshots", "r1")
    refused = project.run(*arguments, code=2)
    assert refused.stderr.startswith("error: ")
    assert said in refused.stderr
    assert project.json("snapshots", "r1") == before
    assert len(project.json("runs")) == 1


def test_an_agent_that_is_gone_is_said_and_the_run_stays(project: Project) -> None:
    """000.36: nothing is begun without it; with it the run goes on."""
    project.workflow("asks", "quick")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    project.run("answer", "r1", "yes")
    away = project.folder / "quick.away"
    (project.folder / "quick.py").rename(away)
    refused = project.run("resume", "r1", code=2)
    assert "quick.py" in refused.stderr
    assert project.status("r1") == "paused"
    away.rename(project.folder / "quick.py")
    assert "✔ completed  r1" in project.run("resume", "r1").stdout


# Lists and names.


def test_snapshots_are_listed_from_either_end(project: Project) -> None:
    """000.27: by sequence, whatever the clock said."""
    project.workflow("quick", "quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    oldest = [row["seq"] for row in project.json("snapshots", "r1")]
    assert oldest == sorted(oldest)
    assert [row["seq"] for row in project.json("snapshots", "r1", "--newest-first")] == oldest[::-1]


def test_names_of_runs_can_be_read_and_sort_by_time() -> None:
    """000.19: what runs it, when, and something that tells it from others."""
    first = new_run_id("Code Review!", Instant(1_794_744_000_000_000), b"abcd")
    later = new_run_id("Code Review!", Instant(1_794_744_001_000_000), b"abcd")
    assert re.fullmatch(r"code-review_\d{8}_\d{6}_[0-9a-z]{2,}", first)
    assert first < later
    assert new_run_id("Code Review!", Instant(1_794_744_000_000_000), b"dcba") != first


# Going back.


@pytest.mark.anyio
async def test_going_back_restores_the_agent_the_run_and_the_phase(theatre: Theatre) -> None:
    """000.28 to 000.32: as they were at that snapshot; the phase is in progress again; on the record."""

    async def worker(ctx: Any) -> str:
        blockers = [{"by": "rain", "reason": "wet"}]
        await ctx.save({"page": 3}, progress=0.4, step="reading", blockers=blockers)
        await ctx.save({"page": 9}, progress=0.9, step="writing", blockers=[])
        if ctx.phase == "two":
            await ctx.ask("Go on?")
        return "done"

    workflow = flow(phase("one", does("a", "worker"), next=["two"]), phase("two", does("b", "worker")))
    assert (await theatre.run(workflow, {"worker": worker})).kind == "waiting"
    target = next(turn for turn in theatre.turns if "a" in turn.state.agents and turn.state.agents["a"].step)
    async with theatre.house({"worker": worker}) as house:
        with pytest.raises(BadOrder):
            await house.order("run", Order(kind="rollback", target="99"))
        order = Order(kind="rollback", target=str(target.header.seq), reason="look again")
        await house.order("run", order)
        state = (await house.manager.look(target.run)).state
    agent, was = state.agents["a"], target.state.agents["a"]
    assert (agent.progress, agent.step, agent.tokens) == (0.4, "reading", was.tokens)
    assert (agent.private, agent.phase, agent.blockers) == (was.private, was.phase, was.blockers)
    assert [each.reason for each in agent.blockers] == ["wet"]
    assert (state.status, state.cursor, path(state)) == ("paused", target.state.cursor, ["one"])
    assert state.path[0].completed_at is None, "the phase is in progress again"
    assert "b" not in state.agents
    assert state.rollbacks[0].reason == "look again"
    assert "rolled_back" in triggers(theatre.store)[-1]
    ending = await theatre.resume({"worker": worker})
    assert (ending.kind, path(ending.state)) == ("waiting", ["one", "two"])


@pytest.mark.anyio
async def test_going_back_takes_back_what_an_agent_used_and_not_what_was_spent(theatre: Theatre) -> None:
    """000.28: the agent is as it was, but that it does not work now; what it cost was paid all the same."""

    async def worker(ctx: Any) -> None:
        ctx.spent(tokens_in=30, tokens_out=12)
        await ctx.save({"page": 3}, step="reading")
        ctx.spent(tokens_in=500, tokens_out=8)
        await ctx.save({"page": 9}, step="writing")

    async def asks(ctx: Any) -> None:
        ctx.spent(tokens_out=1_000)
        await ctx.ask("Go on?")

    workflow = flow(phase("one", does("a", "worker"), next=["two"]), phase("two", does("b", "asks")))
    functions = {"worker": worker, "asks": asks}
    assert (await theatre.run(workflow, functions)).kind == "waiting"
    assert theatre.turns[-1].state.metrics.tokens == 550 + 1_000
    reading = next(turn for turn in theatre.turns if turn.state.agents["a"].step == "reading")
    done = next(turn for turn in theatre.turns if turn.state.agents["a"].status == "completed")
    found = []
    async with theatre.house(functions) as house:
        for target in (done, reading):
            await house.order("run", Order(kind="rollback", target=str(target.header.seq)))
            state = (await house.manager.look(target.run)).state
            agent = state.agents["a"]
            found.append((agent.status, agent.attempts, agent.tokens))
            before = target.state.agents["a"]
            assert agent == attrs.evolve(before, status=agent.status, attempts=agent.attempts)
            assert (state.metrics.tokens_in, state.metrics.tokens_out) == (530, 20 + 1_000)
    assert found == [("completed", 1, 550), ("idle", 0, 42)], "what is done again was not tried yet"
    assert (reading.state.agents["a"].status, reading.state.metrics.tokens) == ("running", 42)


# Streaming.


def test_half_a_sentence_is_seen_by_others_and_gone_on_with(project: Project) -> None:
    """002.1, 002.12, 002.15, 002.24, 002.27, 002.30, 002.31: while it goes on, after a kill, at the end."""
    (project.folder / "streamer.py").write_text(STREAMER)
    project.workflow("streamer")
    process = project.start("run", "flow.yaml", "--run-id", "r1")

    def seen() -> Any:
        found = project.run("show", "r1", "agents.streamer.partial", "--json", code=None)
        return json.loads(found.stdout) if found.returncode == 0 and found.stdout else ""

    project.wait_until(lambda: seen() == "The answer is f", process)
    process.kill()
    process.communicate()
    assert seen() == "The answer is f", "what was streamed is there although its process is gone"
    again = project.start("resume", "r1")
    project.go()
    ended(again, 0)
    result = project.json("show", "r1", "context.found")[0]
    assert result == {"before": "The answer is f", "attempt": 2}
