"""`orchestra init --template llm`: a project whose workflow runs and whose own tests pass, offline."""

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.project import ROOT, Project


def test_the_project_runs_and_its_tests_pass(tmp_path: Path) -> None:
    made = Project(tmp_path).run("init", "new", "--template", "llm")
    assert "next       cd new && orchestra run configs/answer.yaml" in made.stdout
    project = Project(tmp_path / "new")
    assert "✔ completed" in project.run("run", "configs/answer.yaml").stdout
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=project.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_first_template_is_still_the_one_in_python(tmp_path: Path) -> None:
    made = Project(tmp_path).json("init", "new")
    assert "agents/survey.py" in made["files"]
    assert "agents/librarian.md" not in made["files"]


def test_a_template_that_is_not_there(tmp_path: Path) -> None:
    done = Project(tmp_path).run("init", "new", "--template", "lllm", code=2)
    assert "there is no such template; did you mean `llm`?" in done.stderr
    assert not (tmp_path / "new").exists()
