"""A kind of agent from another package: one file and its entry point, used from the command line."""

from pathlib import Path

import pytest

from tests.tidy.project import DOCS
from tests.unit.cli.project import ROOT, Project

PAGE = (DOCS / "how-to" / "add-an-agent-kind.md").read_text(encoding="utf-8")
KIND = PAGE.partition("```python plugin/words_kind.py\n")[2].partition("```")[0]
FLOW = """\
name: polite
policy: {retry: {attempts: 1}, recovery: {on_failure: [fail]}}
agents:
  manners: {words: polite.txt}
  breaks: breaks.py
context:
  found: {reducer: append}
phases:
  count:
    specialists:
      manners: {task: please tell me if you please, into: found}
      breaks: {task: Fail once, needs: manners}
"""


def _package(folder: Path, name: str, code: str, entry: str) -> None:
    """A package as pip would install it into a folder: one module, and what it announces."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[orchestra.agents]\n{entry}\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project, and a package with a kind that notes each time an agent of it runs."""
    site = tmp_path / "site"
    site.mkdir()
    noting = "        text = assignment.description"
    assert noting in KIND
    code = KIND.replace(noting, f'        (self._folder / "ran").open("a").write("x")\n{noting}')
    _package(site, "words_kind", code, "words = words_kind:WordsKind")
    made = Project(tmp_path)
    monkeypatch.setattr(
        made, "environment", lambda: {**Project.environment(made), "PYTHONPATH": f"{ROOT}:{site}"}
    )
    (tmp_path / "flow.yaml").write_text(FLOW)
    return made


def _runs(project: Project) -> int:
    return len((project.folder / "ran").read_text())


def test_a_mistake_is_told_with_its_place(project: Project) -> None:
    done = project.run("check", "flow.yaml", code=2)
    assert "flow.yaml:4:20: there is no file `polite.txt`" in done.stdout
    (project.folder / "flow.yaml").write_text(FLOW.replace("polite.txt}", "polite.txt, at_least: x}"))
    done = project.run("check", "flow.yaml", code=2)
    assert "flow.yaml:4:42: `at_least`: a whole number is needed, not 'x'" in done.stdout


def test_its_keys_are_in_the_schema(project: Project) -> None:
    assert '"WordsAgent"' in project.run("schema").stdout


@pytest.mark.parametrize("words", ["please\nthanks\n", "please\n"])
def test_a_result_is_used_again_while_the_fingerprint_is_the_same(project: Project, words: str) -> None:
    (project.folder / "polite.txt").write_text("please\nthanks\n")
    project.run("run", "flow.yaml", code=1)
    assert _runs(project) == 1
    (project.folder / "polite.txt").write_text(words)
    (project.folder / "repaired").touch()
    changed = words == "please\n"
    run = project.only_run()
    if changed:
        done = project.run("resume", run, code=2)
        assert "what the agent manners runs on has changed" in done.stderr
    project.run("resume", run, *(["--accept-changes"] if changed else []))
    assert _runs(project) == 1 + changed
    assert project.json("show", run, "context.found") == [{"please": 2}]


def test_two_packages_with_one_claim_are_both_named(project: Project) -> None:
    _package(project.folder / "site", "other_kind", "", "words = words_kind:WordsKind")
    said = project.run("check", "flow.yaml", code=2).stdout
    place, _, reason = " ".join(said.split()).partition(": ")
    assert place == "flow.yaml:4:13"
    assert "it is registered twice, by " in reason
    assert "words_kind" in reason
    assert "other_kind" in reason


def test_a_library_that_is_missing_is_told_with_the_command_that_installs_it(project: Project) -> None:
    file = project.folder / "site" / "words_kind.py"
    file.write_text("import a_library_that_is_not_there\n")
    said = " ".join(project.run("run", "flow.yaml", code=2).stderr.split())
    assert said.startswith("flow.yaml:4:13: ")
    assert "No module named 'a_library_that_is_not_there'" in said
    assert "pip install 'words_kind'" in said


def test_a_run_whose_kind_is_gone_says_what_to_install(project: Project) -> None:
    (project.folder / "polite.txt").write_text("please\n")
    project.run("run", "flow.yaml", code=1)
    run = project.only_run()
    (project.folder / "flow.yaml").unlink()
    info = project.folder / "site" / "words_kind-1.0.dist-info"
    (info / "entry_points.txt").unlink()
    said = " ".join(project.run("resume", run, code=2).stderr.split())
    assert "Agents of the kind 'words' cannot be used: no package that is installed announces it" in said
    assert "There are python, command, llm, function; install the package that it came with" in said
