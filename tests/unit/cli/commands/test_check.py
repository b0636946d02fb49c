"""`orchestra init`, `check`, `agents`, `schema` and `config`: what people write, before anything runs."""

import json
import os
from pathlib import Path

import pytest

from orchestra.app.workflow_files import workflow_schema as schema
from orchestra.config.schema import settings_schema
from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project


def test_a_new_project_runs(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bare("init", "new")
    assert made.code == 0
    assert "cd new && orchestra run configs/hello.yaml" in made.out
    assert "outputs/" in Path("new/.gitignore").read_text()
    monkeypatch.chdir("new")
    assert bare("check", "configs/hello.yaml").code == 0
    done = bare("run", "configs/hello.yaml", "--run-id", "r1", "--quiet")
    assert done.lines == ["completed r1", "outputs/r1/write/report.md"]
    assert "| .py | 4 |" in Path("outputs/r1/write/report.md").read_text()


def test_a_new_project_below_a_folder_called_outputs_finds_its_files(
    bare: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare("init", "outputs/new")
    monkeypatch.chdir("outputs/new")
    given = f"folder={Path('agents').absolute()}"
    assert bare("run", "configs/hello.yaml", "--run-id", "r1", "--input", given, "--quiet").code == 0
    assert "| .py | 4 |" in Path("outputs/r1/write/report.md").read_text()


@pytest.mark.parametrize(
    ("files", "decided"),
    [((), "Look at 0 kinds of files"), (("a.md", "b.md"), "Look at 1 kind of files")],
)
def test_a_new_project_tells_of_little_in_one_round(
    bare: Cli, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], decided: str
) -> None:
    bare("init", "new")
    monkeypatch.chdir("new")
    Path("little").mkdir()
    for name in files:
        Path("little", name).write_text("one line\n")
    assert (
        bare("run", "configs/hello.yaml", "--run-id", "r1", "--input", "folder=little", "--quiet").code == 0
    )
    log = bare("log", "r1").out
    assert decided in log
    assert "says accept" in log
    assert "says revise" not in log


def test_init_overwrites_nothing(bare: Cli) -> None:
    Path("new").mkdir()
    Path("new/README.md").write_text("mine")
    refused = bare("init", "new")
    assert refused.code == 2
    assert "README.md" in refused.err
    assert [path.name for path in Path("new").iterdir()] == ["README.md"]
    Path("new/README.md").rename("new/notes.md")
    assert bare("init", "new", "--json").json["folder"] == "new"


@pytest.mark.parametrize("folder", ["file", "file/inside"])
def test_init_needs_a_folder(bare: Cli, folder: str) -> None:
    Path("file").write_text("mine")
    refused = bare("init", folder)
    assert refused.code == 2
    assert refused.err == "error: file is a file, so the project cannot be made there. Name another folder.\n"


@pytest.mark.parametrize("folder", ["my notes", "grün"])
def test_the_way_into_a_new_project_can_be_typed(bare: Cli, folder: str) -> None:
    assert f"cd '{folder}' && orchestra run configs/hello.yaml" in bare("init", folder).out


def test_a_project_that_cannot_be_written_is_told_with_what_to_do(bare: Cli) -> None:
    refused = bare("init", "x" * 300)
    assert refused.code == 2
    assert refused.err.endswith("xx: File name too long. Name a folder in which you may write.\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_told_so(bare: Cli) -> None:
    Path("locked").mkdir(mode=0o500)
    refused = bare("init", "locked/new")
    assert refused.code == 2
    assert "cannot be made in locked/new: Permission denied. Name a folder" in refused.err


def test_check_tells_every_mistake(bare: Cli) -> None:
    Project(Path()).workflow("quick")
    Path("bad.yaml").write_text("name: bad\nfases: {}\nphases: {p: {specialists: {a: {tsk: x}}}}\n")
    found = bare("check", "bad.yaml", "flow.yaml")
    assert found.code == 2
    assert found.lines[0].startswith("bad.yaml:2:1: unknown key `fases`")
    assert any(line.startswith("bad.yaml:3:") for line in found.lines)
    assert "✔ flow.yaml is in order: 1 phase, 1 agent." in found.out
    assert "╭─ p1 ─" in found.out
    assert "╭─" not in bare("check", "flow.yaml", "--no-graph").out


def test_a_mistake_stops_a_run_in_the_same_words(bare: Cli) -> None:
    Path("bad.yaml").write_text("name: bad\nfases: {}\n")
    refused = bare("run", "bad.yaml")
    assert refused.code == 2
    assert refused.err.splitlines()[1].startswith("bad.yaml:2:1: unknown key `fases`")
    assert refused.err.splitlines()[-1].startswith("error: bad.yaml cannot be used")


def test_agents(bare: Cli) -> None:
    folder = Path("agents/deep")
    folder.mkdir(parents=True)
    (folder / "kind.py").write_text('"""Is kind.\n\nVery."""\ndef agent(ctx): ...\n')
    (folder / "_helper.py").write_text("")
    (folder / "broken.py").write_text("def agent(\n")
    found = bare("agents", "--json").json
    assert [each["name"] for each in found] == ["broken", "kind"]
    assert found[0]["problem"]
    assert found[1]["description"] == "Is kind."
    assert "Is kind." in bare("agents").out
    assert bare("agents", "nowhere").code == 2
    Path("empty").mkdir()
    assert "No agents in empty" in bare("agents", "empty").out


def test_schema(bare: Cli) -> None:
    assert json.loads(bare("schema").out) == schema()
    assert json.loads(bare("schema", "--settings").out) == settings_schema()


def test_config_says_where_settings_come_from(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Project(Path()).workflow("quick")
    path.write_text(path.read_text() + "checkpoint: {interval: 5}\n")
    Path("configs").mkdir()
    Path("configs/orchestra.yaml").write_text("performance: {outputs: made}\n")
    monkeypatch.setenv("ORCHESTRA_RECOVERY_AUTO", "false")
    told = bare("config", "--workflow", "flow.yaml", "--store", "sqlite:x.db", "--json").json
    found = {each["name"]: (each["value"], each["from"]) for each in told}
    assert found["performance.outputs"] == ("made", "configs/orchestra.yaml")
    assert found["checkpoint.interval"] == (5, "flow.yaml")
    assert found["recovery.auto"] == (False, "$ORCHESTRA_RECOVERY_AUTO")
    assert found["checkpoint.store"] == ("sqlite:x.db", "--store")
    assert found["checkpoint.compression"] == (True, "default")
    assert "10m" in bare("config").out


def test_a_workflow_is_printed_as_python(bare: Cli) -> None:
    Path("one.py").write_text("async def agent(ctx): ...\n")
    Path("flow.yaml").write_text("name: x\nagents: {one: one.py}\nphases: {a: {specialists: {one: Do it}}}\n")
    printed = bare("check", "--python", "flow.yaml")
    assert printed.code == 0
    assert 'workflow("x")\n    .agents(one)\n    .phase("a", one("Do it"))\n' in printed.out
    Path("flow.yaml").write_text("name: x\n")
    refused = bare("check", "--python", "flow.yaml")
    assert refused.code == 2
    assert "`phases` is missing" in refused.out
