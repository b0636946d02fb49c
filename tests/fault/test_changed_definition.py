"""A workflow that changed between two starts of a run: detected, told, never silently wrong (FAULTS 37)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestra.app.compose import open_manager
from orchestra.app.orchestra import Orchestra
from orchestra.errors import DefinitionChanged
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import AgentId, RunId
from orchestra.interchange.transfer import export_run, import_run
from orchestra.model.workflow import Criterion, Evaluate, Workflow
from orchestra.ports.store import Store
from orchestra.stores.files.store import FilesStore
from orchestra.stores.memory import MemoryStore
from orchestra.stores.sqlite.store import SqliteStore
from tests.unit.engine.support import Theatre, context, does, flow, nothing, phase, policy

pytestmark = pytest.mark.anyio

FLOW = """
name: changing
inputs:
  word: {type: text, default: hello}
context:
  found: {reducer: append}
policy: {retry: {attempts: 1}}
agents:
  early: early.py
  late: late.py
  stop: stop.py
  judge: judge.py
phases:
  first:
    specialists:
      opening: {agent: early, task: open, into: found}
    next: [{to: second}]
  second:
    specialists:
      one: {agent: early, task: "say {{ inputs.word }}", into: found}
      two: {agent: late, needs: [one], into: found}
      halt: {agent: stop, needs: [two], on_failure: [fail]}
    evaluate: {agent: judge, rubric: {depth: 1, width: 1}}
"""
AGENT = """
async def agent(ctx):
    with open(ctx.project / "calls", "a") as calls:
        calls.write(f"{ctx.task_id} WORD\\n")
    return f"{ctx.name}: WORD"
"""
STOP = """
async def agent(ctx):
    if not (ctx.project / "go").exists():
        raise RuntimeError("not yet")
"""
JUDGE = """
async def agent(ctx):
    return {"scores": {line.name: 1.0 for line in ctx.rubric}}
"""


def _write(folder: Path, text: str = FLOW, **agents: str) -> Path:
    for name, word in ({"early": "first", "late": "second"} | agents).items():
        (folder / f"{name}.py").write_text(AGENT.replace("WORD", word))
    (folder / "stop.py").write_text(STOP)
    (folder / "judge.py").write_text(JUDGE)
    (folder / "flow.yaml").write_text(text)
    return folder / "flow.yaml"


def _text(old: str, new: str) -> Callable[[Path], object]:
    assert old in FLOW
    return lambda folder: _write(folder, FLOW.replace(old, new))


def _calls(folder: Path) -> list[str]:
    calls = folder / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


ONE = '      one: {agent: early, task: "say {{ inputs.word }}", into: found}\n'
EARLY, LATE = "opening: first", "two: second"
VARIANTS: dict[str, tuple[Callable[[Path], object], str, list[str], list[str]]] = {
    # what changes, what the complaint names, what runs again, what the context holds at the end
    "a task": (_text("say {{", "shout {{"), "task", ["one", "two"], [EARLY, "one: first", LATE]),
    "an agent's code": (
        lambda folder: _write(folder, late="third"),
        "agents.late.source",
        ["two"],
        [EARLY, "one: first", "two: third"],
    ),
    "another agent": (
        _text("one: {agent: early", "one: {agent: late"),
        "one.agent",
        ["one", "two"],
        [EARLY, "one: second", LATE],
    ),
    "a specialist renamed": (
        lambda folder: _write(folder, FLOW.replace("one:", "uno:").replace("[one]", "[uno]")),
        "uno is new",
        ["uno", "two"],
        [EARLY, "uno: first", LATE],
    ),
    "a specialist removed": (
        lambda folder: _write(folder, FLOW.replace(ONE, "").replace("needs: [one], ", "")),
        "one is gone",
        ["two"],
        [EARLY, LATE],
    ),
    "one inserted before": (
        lambda folder: _write(folder, FLOW.replace(ONE, f"      zero: {{agent: late, into: found}}\n{ONE}")),
        "zero is new",
        ["zero"],
        [EARLY, "zero: second", "one: first", LATE],
    ),
    "what one needs": (
        _text("needs: [one], into", "into"),
        "needs",
        ["two"],
        [EARLY, "one: first", LATE],
    ),
    "the rubric": (
        _text("width: 1", "height: 3"),
        "rubric",
        [],
        [EARLY, "one: first", LATE],
    ),
    "a phase inserted before": (
        _text("  first:\n", "  zeroth: {next: [{to: first}]}\n  first:\n"),
        "zeroth is new",
        [],
        [EARLY, "one: first", LATE],
    ),
    "a promise": (
        _text("two: {agent: late,", "two: {agent: late, outputs: [report.md],"),
        "outputs",
        ["two"],
        [],
    ),
    "where a result goes": (
        _text('word }}", into: found}', 'word }}"}'),
        "into",
        [],
        [EARLY, LATE],
    ),
    "who never was": (
        _text("needs: [one], into", "when: visit == 2, needs: [one], into"),
        "when",
        [],
        [EARLY, "one: first"],
    ),
}


def _store(kind: str, place: Path) -> Store:
    return SqliteStore(place, create=True) if kind == "sqlite" else FilesStore(place, create=True)


async def _stopped(folder: Path, store: Store | None = None) -> Theatre:
    theatre = Theatre(folder, store)
    async with theatre.house() as house:
        ending = await house.run(_write(folder), run="run")
    assert ending.kind == "failed"
    assert _calls(folder) == ["first/opening first", "second/one first", "second/two second"]
    (folder / "calls").unlink()
    (folder / "go").touch()
    return theatre


@pytest.mark.parametrize("variant", VARIANTS)
async def test_a_change_is_refused_told_and_accepted(tmp_path: Path, variant: str) -> None:
    change, named, again, wanted = VARIANTS[variant]
    theatre = await _stopped(tmp_path)
    change(tmp_path)
    async with theatre.house() as house:
        with pytest.raises(DefinitionChanged, match=named):
            await house.resume("run")
        assert _calls(tmp_path) == [], "nothing ran before anybody agreed"
        ending = await house.resume("run", accept_changes=True)
    assert [call.split()[0] for call in _calls(tmp_path)][: len(again)] == [
        f"second/{name}" for name in again
    ]
    if not wanted:
        assert ending.kind == "failed", "it promises a file and writes none"
        return
    assert ending.kind == "completed", ending.state.failure
    assert len(_calls(tmp_path)) == len(again)
    assert context(ending.state) == {"found": wanted}
    assert ending.state.workflow.digest != theatre.turns[0].state.workflow.digest


@pytest.mark.parametrize("kind", ["sqlite", "files"])
async def test_a_run_whose_workflow_was_renamed_stays_whole(tmp_path: Path, kind: str) -> None:
    """It is listed under the name it began with; verified, exported and imported it is no damage."""
    with _store(kind, tmp_path / "kept") as store, MemoryStore() as target:
        theatre = await _stopped(tmp_path, store)
        _text("name: changing", "name: changed")(tmp_path)
        async with theatre.house() as house:
            ending = await house.resume("run", accept_changes=True)
            archive = house.manager.archive
            assert (ending.kind, ending.state.workflow.name) == ("completed", "changed")
            assert archive.run(RunId("run")).workflow == "changing"
            assert verify_store(archive).findings == ()
            export_run(archive, RunId("run"), tmp_path / "run.orchestra")
        import_run(target, tmp_path / "run.orchestra")
        assert verify_store(open_manager(target).archive).is_whole


async def test_a_changed_agent_is_noticed_without_the_workflow_file(tmp_path: Path) -> None:
    theatre = await _stopped(tmp_path)
    _write(tmp_path, late="third").unlink()
    async with theatre.house() as house:
        with pytest.raises(DefinitionChanged, match=r"agents\.late\.source"):
            await house.resume("run")
        ending = await house.resume("run", accept_changes=True)
    assert context(ending.state) == {"found": [EARLY, "one: first", "two: third"]}


async def test_a_run_goes_on_without_its_workflow_file(tmp_path: Path) -> None:
    theatre = await _stopped(tmp_path)
    (tmp_path / "flow.yaml").unlink()
    async with theatre.house() as house:
        ending = await house.resume("run")
    assert (ending.kind, _calls(tmp_path)) == ("completed", [])


async def test_what_did_not_change_is_not_asked_about(tmp_path: Path) -> None:
    theatre = await _stopped(tmp_path)
    _write(tmp_path, f"# a comment\n{FLOW}")
    async with theatre.house() as house:
        ending = await house.resume("run")
    assert (ending.kind, _calls(tmp_path)) == ("completed", [])


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [("reducer: append", "reducer: merge", "append made"), ("second", "last", "phase second is gone")],
)
async def test_what_the_run_cannot_go_on_with_is_refused_anyway(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    theatre = await _stopped(tmp_path)
    _text(old, new)(tmp_path)
    async with theatre.house() as house:
        with pytest.raises(DefinitionChanged, match=named):
            await house.resume("run", accept_changes=True)
        _write(tmp_path)
        assert (await house.resume("run")).kind == "completed"


async def test_scores_of_an_old_rubric_get_the_new_weights(tmp_path: Path) -> None:
    """An evaluation that was cut off goes on with what the rubric says now."""

    async def judge(ctx: Any) -> None:
        if ctx.attempt == 1:
            await ctx.score("depth", 1.0)
            ctx.fail("cut off", recoverable=False)
        await ctx.score("width", 0.0)

    def made(weight: float) -> Workflow:
        rubric = (Criterion(name="depth", weight=weight), Criterion(name="width"))
        evaluate = Evaluate(agent=AgentId("judge"), rubric=rubric)
        return flow(phase("work", does("a"), evaluate=evaluate), policy=policy("fail"))

    theatre = Theatre(tmp_path)
    functions = {"judge": judge, "a": nothing}
    assert (await theatre.run(made(1.0), functions)).kind == "failed"
    async with Orchestra(theatre.store, functions=functions, project=tmp_path) as house:
        ending = await house.resume("run", workflow=made(3.0), accept_changes=True)
    verdict = ending.state.evaluations["work"].verdict
    assert verdict is not None
    assert verdict.score == pytest.approx(0.75)
