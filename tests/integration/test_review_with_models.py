"""`configs/code_review.yaml` with a language model, and without one: then nothing of models is loaded."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.project import ROOT
from tests.unit.cli.project import Project

CODE = '"""Mean."""\n\n\ndef mean(values):\n    """The mean."""\n    return sum(values) / len(values)\n'
FINDING = {
    "rule": "empty input",
    "severity": "high",
    "file": "m.py",
    "line": 2,
    "quote": "return sum(values) / len(values)",
    "message": "An empty list ends in a ZeroDivisionError.",
    "advice": "Refuse an empty list.",
}
REVIEW = ("run", "configs/code_review.yaml", "--input", "path=p", "--run-id", "r1")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in ("agents", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "m.py").write_text(CODE)
    (tmp_path / "p" / ".env").write_text("KEY=geheim")
    return Project(tmp_path)


def _say(cassette: Path, agent: str, *findings: Any) -> None:
    """Let the last answer of an agent on a cassette be these findings."""
    head, *lines = [json.loads(line) for line in cassette.read_text().splitlines()]
    last = [each for each in lines if each["agent"] == agent][-1]
    for part in last["response"]["parts"]:
        if part["part_kind"] == "tool-call":
            part["args"] = json.dumps({"findings": findings})
        elif part["part_kind"] == "text":
            part["content"] = json.dumps({"findings": findings})
    cassette.write_text("".join(json.dumps(each) + "\n" for each in (head, *lines)))


def test_findings_of_models_go_through_the_evaluator_into_the_report(project: Project) -> None:
    project.run(*REVIEW, "--model", "test", "--record", "said.jsonl")
    cassette = project.folder / "said.jsonl"
    assert "geheim" not in cassette.read_text()
    _say(cassette, "correctness", FINDING, {**FINDING, "quote": "nobody wrote this"})
    _say(cassette, "design")
    again = [each if each != "r1" else "r2" for each in REVIEW]
    project.run(*again, "--model", "test", "--replay", "said.jsonl")
    report = (project.folder / "outputs/r2/write/report.md").read_text()
    assert report.count("found by correctness, a language model") == 1
    assert "### `m.py:6` · empty-input" in report
    state = json.loads(project.run("show", "r2", "--json").stdout)["state"]
    assert "Drop 1 of 2 findings of correctness" in {each["description"] for each in state["decisions"]}
    assert [each["verdict"]["kind"] for each in state["evaluations"].values()] == ["accept", "accept"]


def test_without_a_model_nothing_of_models_is_loaded(project: Project) -> None:
    code = (
        "import sys\nfrom orchestra.cli.dispatch import run_command_line\n"
        "code = run_command_line(sys.argv[1:])\n"
        "print(sorted({each.partition('.')[0] for each in sys.modules}), file=sys.stderr)\nsys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *REVIEW, "--quiet"],
        cwd=project.folder,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"pydantic_ai", "openai", "genai_prices", "xllamacpp"} & set(done.stderr.split("'"))
    phases = project.json("show", "r1")["state"]["visits"]
    assert dict(phases) == {"survey": 1, "analyse": 1, "write": 1}


def test_a_model_that_cannot_be_asked_is_told_before_the_run(project: Project) -> None:
    done = project.run(*REVIEW, "--model", "opnai:gpt-5", code=2)
    assert "did you mean `openai`?" in done.stderr
