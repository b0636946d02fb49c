"""How a specialist works: it says what failed and goes on, and drops what was refuted."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.shipped_agents.review import KINDS, helper, load, made, surveyed

BAD = "def f(x):\n    return x is 'a'\n"
SLEEPS = "import time; time.sleep(1000)"


def project(folder: Path, count: int) -> Path:
    return made(folder, {f"pack/m{number:03}.py": BAD for number in range(count)})


def test_it_says_how_far_it_is(tmp_path: Path) -> None:
    said = surveyed(project(tmp_path, 3))
    load("mercury/structure").agent(said)
    assert len(said.saved) > 3


def test_what_was_refuted_is_dropped(tmp_path: Path) -> None:
    feedback = "These do not hold:\n- is-literal at pack/m001.py:2: line 2 does not read as quoted"
    said = surveyed(project(tmp_path, 3), feedback=(feedback,))
    found = load("mercury/structure").agent(said).output
    assert [each["file"] for each in found] == ["pack/m000.py", "pack/m002.py"]


def test_more_of_one_rule_are_counted_in_words(tmp_path: Path) -> None:
    found = load("mercury/structure").agent(surveyed(project(tmp_path, 45))).output
    assert len(found) == 40
    assert found[-1]["message"].endswith("(5 more like this are not listed.)")


def test_confidence_falls_with_what_cannot_be_understood(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": "", "b.py": "def (:\n"})
    assert load("mercury/structure").agent(surveyed(tmp_path)).confidence < 0.75
    (tmp_path / "b.py").write_text("")
    assert load("mercury/structure").agent(surveyed(tmp_path)).confidence == 0.95


def test_a_check_that_fails_costs_only_itself(tmp_path: Path) -> None:
    def failing(*_: Any) -> list[Any]:
        raise RecursionError("too deep")

    said = surveyed(project(tmp_path, 1))
    result = helper("specialist").review(said, "structure", {}, (failing,))
    assert {each["rule"] for each in result.output} == {"is-literal", "tool-failed"}
    assert "`failing` failed: RecursionError: too deep." in said.text
    assert result.confidence < 0.75


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"ruff": "no-such-program"},
            "`ruff` cannot be started: No such file or directory. `pip install ruff`",
        ),
        (
            {"ruff": [sys.executable, "-c", "raise SystemExit('No module named ruff')"]},
            "`ruff` is not installed",
        ),
        ({"ruff": [sys.executable, "-c", "import os; os.abort()"]}, "`ruff` ended with code -6"),
        ({"ruff": [sys.executable, "-c", "1 / 0"]}, "`ruff` ended with code 1, saying: ZeroDivisionError"),
        ({"ruff": [sys.executable, "-c", "print('fine!')"]}, "`ruff` printed no JSON but 'fine!\\n'"),
        ({"ruff": [sys.executable, "-c", "print('[{}]')"]}, "`ruff` printed JSON of another form"),
        ({"ruff": [sys.executable, "-c", "print('[1, 2]')"]}, "`ruff` printed JSON of another form"),
        ({"ruff": [sys.executable, "-c", SLEEPS], "tool_seconds": 0.1}, "`ruff` did not end within 0.1 s"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_that_fails_is_told_and_the_rest_goes_on(
    tmp_path: Path, kind: str, settings: dict[str, Any], words: str
) -> None:
    made(project(tmp_path, 1), {"pack/__init__.py": "", "tests/test_x.py": "def test_x():\n    pass\n"})
    said = surveyed(tmp_path, settings=settings)
    result = load(f"mercury/{kind}").agent(said)
    told = [each for each in result.output if each["rule"] == "tool-failed"]
    assert any(words in each["message"] for each in told)
    assert words in said.text
    assert any(words in each for each in said.decided)
    assert result.confidence < 0.75
    others = {"tests": "empty-test", "docs": "readme-missing", "dependencies": "no-manifest"}
    assert kind not in others or others[kind] in {each["rule"] for each in result.output}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit(3)", "`deptry` ended with code 3, saying: nothing"),
        ("pass", "`deptry` printed no JSON but ''"),
        ("open('found.json', 'w').write('{]')", "`deptry` printed no JSON but '{]'"),
        ("open('found.json', 'w').write('[0]')", "`deptry` printed JSON of another form"),
        (SLEEPS, "`deptry` did not end within"),
    ],
)
def test_dependencies_go_on_without_deptry(tmp_path: Path, program: str, words: str) -> None:
    made(tmp_path, {"pyproject.toml": "[project]\nname = 'pack'\nversion = '1'\n", "pack/__init__.py": ""})
    settings = {"deptry": [sys.executable, "-c", program], "tool_seconds": 0.5 if "sleep" in program else 60}
    found = load("mercury/dependencies").agent(surveyed(tmp_path, settings=settings)).output
    assert "no-requires-python" in {each["rule"] for each in found}
    assert any(words in each["message"] for each in found if each["rule"] == "tool-failed")


def test_the_projects_own_settings_change_nothing(tmp_path: Path) -> None:
    silent = "[tool.ruff.lint]\nignore = ['ALL']\nexclude = ['*']\n[tool.deptry]\nignore = ['DEP001']\n"
    manifest = f"[project]\nname = 'pack'\nversion = '1'\nrequires-python = '>=3.11'\n{silent}"
    made(tmp_path, {"pyproject.toml": manifest, "ruff.toml": "exclude = ['*']\n", "pack/__init__.py": ""})
    made(tmp_path, {"pack/m.py": "import numpy\n\n\ndef f(x):\n    return numpy.array(x) is 'a'\n"})
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    said = surveyed(tmp_path)
    found = [each["rule"] for kind in KINDS for each in load(f"mercury/{kind}").agent(said).output]
    assert {"is-literal", "undeclared-import"} <= set(found)
    assert (
        sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
    )  # nothing is left behind


def test_a_module_of_the_project_is_not_taken_for_a_tool(tmp_path: Path) -> None:
    made(project(tmp_path, 1), {"ruff.py": "raise SystemExit('the project was run')\n"})
    said = surveyed(tmp_path)
    assert [each["rule"] for each in load("mercury/structure").agent(said).output] == ["is-literal"]
