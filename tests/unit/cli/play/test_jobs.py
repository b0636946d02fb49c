"""Commands that play runs, called in this process: what they print and how their JSON looks."""

import json
import shlex
from pathlib import Path

import pytest

from orchestra.cli.play.jobs import exit_code, report
from orchestra.cli.store import DEFAULT_OUTPUTS, OUTPUTS_VARIABLE, outputs_folder
from orchestra.config.settings.resolve import setting_names, variable
from orchestra.engine.settings import EngineSettings
from orchestra.errors import DefinitionChanged
from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project


@pytest.fixture
def project() -> Project:
    return Project(Path())


def test_the_gravest_exit_code_counts() -> None:
    assert exit_code([]) == 0
    assert exit_code([0, 3]) == 3
    assert exit_code([3, 1, 0]) == 1
    assert exit_code([1, 130]) == 130


def test_defaults_are_those_of_the_settings() -> None:
    assert EngineSettings().outputs == DEFAULT_OUTPUTS
    assert variable("performance.outputs") == OUTPUTS_VARIABLE
    assert "performance.outputs" in setting_names()


def test_the_outputs_folder_follows_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outputs_folder() == "outputs"
    monkeypatch.setenv(OUTPUTS_VARIABLE, "elsewhere")
    assert outputs_folder() == "elsewhere"


@pytest.mark.parametrize("left", [True, False])
def test_outputs_are_named_where_they_are_after_a_project_was_moved(
    bare: Cli, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    for name in ("before", "after"):
        Path(name).mkdir()
    monkeypatch.chdir("before")
    Project(Path()).workflow("quick")
    assert bare("run", "flow.yaml", "--run-id", "r1", "--quiet").code == 0
    monkeypatch.chdir("..")
    for each in Path("before").iterdir():
        each.rename(Path("after", each.name))
    if not left:
        Path("before").rmdir()
    monkeypatch.chdir("after")
    assert "outputs    outputs/r1/p1/note.md" in bare("status", "r1").out
    (found,) = bare("outputs", "r1", "--json").json
    assert (found["file"], found["is_there"]) == ("outputs/r1/p1/note.md", True)


@pytest.mark.parametrize(
    "command",
    [
        ("answer", "r1", "yes", "--resume"),
        ("answer", "r1", "yes"),
        ("pause", "r1"),
        ("rollback", "r1@0", "--yes"),
        ("fork", "r1@0", "--id", "r2"),
    ],
)
def test_an_order_from_another_folder_leaves_nothing_there(
    bare: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    for name in ("project", "elsewhere"):
        Path(name).mkdir()
    monkeypatch.chdir("project")
    Project(Path()).workflow("asks")
    assert bare("run", "flow.yaml", "--run-id", "r1", "--quiet").code == 3
    monkeypatch.chdir("../elsewhere")
    assert bare(*command, "--store", "sqlite:../project/outputs/orchestra.db").code == 0
    assert list(Path().iterdir()) == []
    monkeypatch.chdir("../project")
    run = "r2" if "r2" in command else "r1"
    newest = Path("outputs", run, "events.jsonl").read_text().splitlines()[-1]
    assert json.loads(newest)["seq"] == bare("status", run, "--json").json["snapshots"] - 1


def test_changes_of_a_definition_are_told_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(DefinitionChanged(run="r", changes="a was 1 and is 2; b is new"), False) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:3] == ["  ~ a was 1 and is 2", "  ~ b is new"]


def test_how_to_begin_again_names_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    report(DefinitionChanged(run="r", changes="phase p2 is gone"), False, "sqlite:other.db")
    assert "orchestra fork r@0 --workflow FILE --store sqlite:other.db." in capsys.readouterr().err


def test_a_changed_file_of_an_agent_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    report(DefinitionChanged(run="r", changes="agents.a.source was '0a1b... and is '2c3d..."), False)
    said = capsys.readouterr().err
    assert "  ~ what the agent a runs on has changed\n" in said
    assert "Resume with --accept-changes" in said


def test_changes_that_cannot_be_accepted_say_so(bare: Cli, project: Project) -> None:
    flow = project.workflow("quick", "asks")
    assert bare("run", "flow.yaml", "--run-id", "r1", "--quiet").code == 3
    before = flow.read_text()
    for old, new in (("  p2:", "  p3:"), ("reducer: append", "reducer: replace")):
        flow.write_text(before.replace(old, new))
        refused = bare("resume", "r1", "--accept-changes")
        assert refused.code == 2
        assert "cannot go on with that, not even with --accept-changes" in refused.err
        assert "orchestra fork r1@0 --workflow FILE" in refused.err


def test_a_run_and_what_is_told_of_it(bare: Cli, project: Project) -> None:
    project.workflow("quick", "asks")
    assert bare("run", "flow.yaml", "--run-id", "r1").code == 3
    status = bare("status", "r1", "--json").json
    assert (status["status"], status["phase"], status["phases"]) == ("waiting", "p2", ["p1", "p2"])
    assert status["agents"]["quick"]["status"] == "completed"
    assert status["last_decisions"][0]["what"] == "Write it down"
    text = bare("status", "r1").out
    assert "waits for  question: Publish? [yes, no]" in text
    assert "quick Write it down, because notes last longer than memory" in text
    assert "Publish?" in bare("questions", "r1").out


def test_log(bare: Cli, project: Project) -> None:
    project.workflow("quick")
    bare("run", "flow.yaml", "--run-id", "r1")
    story = bare("log", "r1").out
    told = "quick decided: Write it down, because notes last longer than memory (not taken: forget it)"
    assert told in story
    assert "quick begins" not in story
    assert "quick begins" in bare("log", "r1", "--all").out
    (only,) = bare("log", "r1", "--decisions", "--json").json
    assert only["alternatives"] == ["forget it"]


def test_the_log_tells_what_was_answered_to_what(bare: Cli, project: Project) -> None:
    """Also an answer that a rollback undid, each in its own place."""
    project.workflow("quick", "asks", "asks")
    bare("run", "flow.yaml", "--run-id", "r1", "--break-at", "p2", "--quiet")
    bare("resume", "r1", "--quiet")
    bare("answer", "r1", "no", "--resume")
    bare("rollback", "r1@phase:p2", "--yes")
    bare("resume", "r1", "--quiet")
    bare("resume", "r1", "--quiet")
    bare("answer", "r1", "yes", "--resume")
    for command in ("log", "watch"):
        said = bare(command, "r1", *(("--all",) if command == "watch" else ())).out
        assert "goes on from the breakpoint before phase p2" in said
        assert said.index("answered: no (to: Publish?)") < said.index("answered: yes (to: Publish?)")
        assert "wait over" not in said


def test_decisions_in_the_same_words_have_their_own_reasons(bare: Cli, project: Project) -> None:
    """Also what was undone, and in a fork, whose state has the decisions of before as well."""
    Path("chooser.py").write_text(
        "async def agent(ctx):\n"
        "    when = f'{ctx.phase}.{ctx.visit} {ctx.run}'\n"
        "    for word in ('first', 'second'):\n"
        "        await ctx.decide('Wait', rationale=f'{word} in {when}')\n"
        "    if ctx.phase == 'p2':\n"
        "        await ctx.ask('Go on?')\n"
    )
    project.workflow("chooser", "chooser")
    bare("run", "flow.yaml", "--run-id", "r1")
    bare("rollback", "r1@phase:p1", "--yes")
    bare("resume", "r1")
    told = bare("log", "r1", "--decisions", "--json").json
    waits = [
        (each["rationale"].rpartition(" ")[0], each["undone"]) for each in told if each["what"] == "Wait"
    ]
    once = [f"{word} in {place}" for place in ("p1.1", "p2.1") for word in ("first", "second")]
    assert waits == [(each, True) for each in once] + [(each, False) for each in once]
    bare("fork", "r1@phase:p2", "--id", "r2", "--run")
    forked = [each["rationale"] for each in bare("log", "r2", "--decisions", "--json").json]
    assert forked == ["first in p2.1 r2", "second in p2.1 r2"]


def test_runs_are_listed_by_the_status_that_is_shown(bare: Cli, project: Project) -> None:
    project.workflow("asks")
    Path("dies.py").write_text("import os\nasync def agent(ctx):\n    os._exit(9)\n")
    project.workflow("dies", name="dies", file="dies.yaml")
    bare("run", "flow.yaml", "--run-id", "waits", "--quiet")
    for name in ("cut-1", "cut-2"):
        project.run("run", "dies.yaml", "--run-id", name, "--no-resume", code=9)

    def listed(*options: str) -> list[str]:
        return [each["run"] for each in bare("runs", *options, "--json").json]

    assert listed("--status", "interrupted") == ["cut-2", "cut-1"]
    assert listed("--status", "interrupted,waiting", "--limit", "2") == ["cut-2", "cut-1"]
    assert listed("--status", "interrupted", "--offset", "1") == ["cut-1"]
    assert listed("--status", "running") == []
    assert "interrupted" in bare("runs", "--status", "interrupted").out


def test_a_hint_can_be_typed_as_it_stands(bare: Cli, project: Project) -> None:
    """Also where answers and the place of the store have spaces, and several questions are open."""
    Path("sure.py").write_text(
        "async def agent(ctx):\n"
        "    return await ctx.ask(f\"{ctx.item}, isn't it?\", choices=['do it', 'no'])\n"
    )
    flow = project.workflow("sure")
    flow.write_text(flow.read_text().replace("{task: 'Do sure'", "{foreach: [a, b], task: 'Do it'"))
    ending = bare("run", "flow.yaml", "--run-id", "r1", "--store", "sqlite:my files/x.db", "--json").out
    for open_questions in (2, 1):
        (hint,) = json.loads(ending.splitlines()[-1])["next"]
        assert ("--question" in hint) is (open_questions == 2)
        ending = bare(*shlex.split(hint)[1:], "--json").out
    assert json.loads(ending.splitlines()[-1])["ending"] == "completed"


@pytest.mark.parametrize("command", [("run", "flow.yaml", "--run-id"), ("fork", "r1", "--id")])
def test_an_empty_id_is_refused(bare: Cli, project: Project, command: tuple[str, ...]) -> None:
    project.workflow("asks")
    bare("run", "flow.yaml", "--run-id", "r1", "--quiet")
    refused = bare(*command, "")
    assert refused.code == 2
    assert "'' cannot be used as run id" in refused.err
    assert len(bare("runs", "--json").json) == 1


def test_what_nobody_plays_is_not_said_to_run(bare: Cli, project: Project) -> None:
    project.workflow("asks")
    bare("run", "flow.yaml", "--run-id", "r1")
    bare("answer", "r1", "yes")
    said = bare("status", "r1").out
    assert "interrupted" in said
    assert "running" not in said


def test_the_store_of_the_project_is_found(bare: Cli, project: Project) -> None:
    project.workflow("quick")
    Path("configs").mkdir()
    Path("configs/orchestra.yaml").write_text('checkpoint: {store: "sqlite:elsewhere/x.db"}\n')
    assert bare("run", "flow.yaml", "--run-id", "r1", "--quiet").code == 0
    assert Path("elsewhere/x.db").exists()
    assert [row["run"] for row in bare("runs", "--json").json] == ["r1"]


def test_a_store_that_only_the_workflow_names_is_named_in_hints(bare: Cli, project: Project) -> None:
    path = project.workflow("asks")
    path.write_text(path.read_text() + 'checkpoint: {store: "sqlite:other.db"}\n')
    done = bare("run", "flow.yaml", "--run-id", "r1")
    assert "orchestra answer r1 yes --resume --store sqlite:other.db" in done.out


def test_what_went_wrong_names_the_store_that_was_given(bare: Cli, project: Project) -> None:
    at = ("--store", "sqlite:other.db")
    project.workflow("quick")
    assert bare("run", "flow.yaml", "--run-id", "r1", *at).code == 0
    assert "`orchestra fork r1@0 --store sqlite:other.db`" in bare("resume", "r1", *at).err
    assert "`orchestra snapshots r1 --store sqlite:other.db`" in bare("show", "r1@99", *at).err
    assert "r1 --store sqlite:other.db`" in bare("show", "r1@99", "--store=sqlite:other.db").err
    (said,) = bare("show", "r1@99", *at, "--json").err.splitlines()
    assert "`orchestra snapshots r1 --store sqlite:other.db`" in json.loads(said)["error"]["message"]


def test_the_doctor_names_the_store_that_was_given(bare: Cli, project: Project) -> None:
    at = ("--store", "sqlite:other.db")
    project.workflow("asks")
    assert bare("run", "flow.yaml", *at).code == 3
    advice = {each["check"]: each["advice"] for each in bare("doctor", *at, "--json").json["checks"]}
    assert advice["waiting runs"] == "`orchestra questions --store sqlite:other.db`"


def test_a_run_that_is_not_stored(bare: Cli, project: Project) -> None:
    path = project.workflow("quick")
    path.write_text(path.read_text() + "checkpoint: {enabled: false}\n")
    done = bare("run", "flow.yaml")
    assert done.code == 0
    assert "next " not in done.out
    assert not Path("outputs/orchestra.db").exists()


def test_several_questions(bare: Cli, project: Project) -> None:
    Path("two.py").write_text(
        "import asyncio\n"
        "async def agent(ctx):\n"
        "    return await asyncio.gather(ctx.ask('Red or blue?', key='colour'), ctx.ask('How many?'))\n"
    )
    project.workflow("two")
    assert bare("run", "flow.yaml", "--run-id", "r1").code == 3
    both = bare("answer", "r1", "7")
    assert both.code == 2
    assert "name one with --question" in both.err
    assert bare("answer", "r1", "7", "--question", "how many").code == 0
    assert bare("answer", "r1", "red", "--question", "colour").code == 0
    assert bare("resume", "r1", "--quiet").code == 0


def test_completion_knows_the_commands(bare: Cli) -> None:
    script = bare("completion", "bash").out
    for name in ("run", "resume", "rollback", "answer", "init", "--break-at", "--accept-changes"):
        assert name in script


@pytest.mark.parametrize("command", ["cancel", "rollback"])
def test_what_cannot_be_undone_is_confirmed(bare: Cli, project: Project, command: str) -> None:
    project.workflow("quick", "asks")
    bare("run", "flow.yaml", "--run-id", "r1")
    refused = bare(command, "r1")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert bare(command, "r1", "--yes", "--json").code == 0
