"""`configs/coding.yaml`: a command-line coding agent that is driven through `command:`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tidy.project import ROOT
from tests.unit.cli.project import Project

SLOW = """
import json, sys, time
from pathlib import Path
with open("told.jsonl", "a") as file:
    print(json.dumps([sys.argv[1:], sys.stdin.read()]), file=file)
print(json.dumps({"type": "system", "session_id": "s1"}), flush=True)
Path("began").touch()
while not Path("go").exists():
    time.sleep(0.01)
print(json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "half"}]}}))
print(json.dumps({"type": "user", "message": {"content": [{"type": "text", "text": "what a tool said"}]}}))
print(json.dumps({"type": "result", "result": "whole", "usage": {"input_tokens": 7, "output_tokens": 3},
                  "total_cost_usd": 0.02}))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in ("agents", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "slow.py").write_text(SLOW)
    return Project(tmp_path)


def _program(project: Project, **known: Any) -> None:
    """Let the workflow have a program of ours in the place of the stand-in."""
    file = project.folder / "configs" / "coding.yaml"
    flow = yaml.safe_load(file.read_text().replace("\ntrue", "\n'true'"))
    flow["agents"]["coder"]["with"] = {"stand-in": known}
    flow["policy"]["retry"] = {"attempts": 1}
    flow["phases"]["work"]["specialists"]["coder"]["on_failure"] = "fail"
    file.write_text(yaml.safe_dump(flow, sort_keys=False))


def _run(project: Project, *arguments: str, code: int = 0) -> Any:
    project.run("run", "configs/coding.yaml", "--run-id", "r1", *arguments, code=code)
    return json.loads(project.run("show", "r1", "--json").stdout)["state"]


def test_it_works_in_its_session_until_the_check_passes(project: Project) -> None:
    check = "test -e ok || { touch ok; echo not yet; false; }"
    state = _run(project, "--input", f"check={check}")
    assert dict(state["visits"]) == {"work": 2}
    first, second = (state["tasks"][f"work{visit}/coder"]["result"] for visit in ("", ".2"))
    assert first["session"] == second["session"]
    assert first["said"] == "I begin: Say hello."
    assert second["said"].startswith("I go on: Say hello. It is not done yet.")
    assert "not yet" in second["said"]


def test_a_check_that_never_passes_fails_the_run(project: Project) -> None:
    state = _run(project, "--input", "check=false", code=1)
    assert dict(state["visits"]) == {"work": 4}


def test_a_crash_goes_on_in_the_session(project: Project) -> None:
    command = ["python3", str(project.folder / "slow.py")]
    _program(project, run=command, resume=[*command, "--resume", "{session}"])
    process = project.start("run", "configs/coding.yaml", "--run-id", "r1")
    project.wait_for("began", process)
    project.wait_until(lambda: _private(project) == {"session": "s1"}, process)
    process.kill()
    process.communicate()
    project.go()
    project.run("resume", "r1")
    told = [json.loads(line) for line in (project.folder / "told.jsonl").read_text().splitlines()]
    assert told == [
        [[], "Say hello."],
        [["--resume", "s1"], "You were interrupted. Look at what is done, and go on."],
    ]
    state = json.loads(project.run("show", "r1", "--json").stdout)["state"]
    assert state["context"]["coder"] == {"said": "whole", "session": "s1"}
    assert (state["metrics"]["tokens_in"], state["metrics"]["cost_micros"]) == (7, 20_000)


def _private(project: Project) -> Any:
    state = json.loads(project.run("show", "r1", "--json").stdout)["state"]
    return state["agents"].get("coder", {}).get("private")


def test_a_program_may_speak_plain_text(project: Project) -> None:
    _program(project, run=["sh", "-c", 'echo "first"; echo "$0"', "{task}"])
    assert _run(project)["context"]["coder"] == {"said": "first\nSay hello."}


@pytest.mark.parametrize(
    ("known", "error", "message"),
    [
        (
            {"run": ["sh", "-c", "echo gone wrong >&2; exit 3"]},
            "ProgramFailed",
            "sh ended with 3: gone wrong",
        ),
        ({"run": ["no-such-program"]}, "NoProgram", "no-such-program: No such file or directory"),
        ({"run": ["sleep", "1000"], "seconds": 0.2}, "Silent", "sleep said nothing for 0.2 s"),
    ],
)
def test_what_goes_wrong_is_told(project: Project, known: Any, error: str, message: str) -> None:
    _program(project, **known)
    failure = _run(project, code=1)["failure"]
    assert (failure["error"], failure["message"]) == (error, message)
