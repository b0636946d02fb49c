"""The evaluator believes no finding it has not seen for itself."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.ports.agent import Judgement, RubricLine
from tests.unit.shipped_agents.review import KINDS, PLANTED, Finding, Said, load, made, results, surveyed

RUBRIC = (RubricLine(name="evidence", weight=2.0), RubricLine(name="coverage"))
TRUE: Finding = {
    "rule": "dangerous-eval",
    "severity": "high",
    "kind": "security",
    "file": "a.py",
    "line": 2,
    "message": "m.",
    "advice": "a.",
    "excerpt": "y = eval(x)",
}


def judged(said: Said) -> Judgement:
    judgement = load("apollo/evidence").agent(said)
    assert isinstance(judgement, Judgement)
    return judgement


def judge(folder: Path, *found: Any) -> Judgement:
    made(folder, {"a.py": "x = input()\ny = eval(x)\n"})
    return judged(surveyed(folder, results={"security": list(found)}, rubric=RUBRIC))


def test_what_the_specialists_say_of_the_planted_project_holds() -> None:
    said = surveyed(PLANTED / "project", results=dict(results(PLANTED / "project")), rubric=RUBRIC)
    judgement = judged(said)
    assert judgement.feedback == ""
    assert said.scores == {"evidence": 1.0, "coverage": 1.0}


def test_a_true_finding_is_accepted(tmp_path: Path) -> None:
    assert judge(tmp_path, TRUE).scores["evidence"] == 1.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"file": "b.py"}, "there is no such file"),
        ({"file": "../a.py"}, "there is no such file"),
        ({"line": 9}, "the file has only 3 lines"),
        ({"line": 1}, "line 1 does not read as quoted"),
        ({"line": "two"}, "its line is no number"),
        ({"excerpt": "y = evil(x)"}, "line 2 does not read as quoted"),
        ({"rule": "unsafe-load"}, "line 2 and those after it show nothing of the kind"),
    ],
)
def test_what_does_not_hold_is_named(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    false = {**TRUE, **change}
    judgement = judge(tmp_path, TRUE, false)
    assert judgement.scores["evidence"] == 0.5
    assert f"- {false['rule']} at {false['file']}:{false['line']}: {reason}" in judgement.feedback
    assert len(judgement.issues) == 1


def test_a_finding_without_its_parts_does_not_hold(tmp_path: Path) -> None:
    assert judge(tmp_path, {"rule": "x"}).scores["evidence"] == 0.0


def test_masked_secrets_are_recognised(tmp_path: Path) -> None:
    made(tmp_path, {"b.py": "KEY = 'abcdef'\n"})
    masked = {**TRUE, "rule": "hard-coded-secret", "file": "b.py", "line": 1, "excerpt": "KEY = 'ab…'"}
    assert judge(tmp_path, masked).scores["evidence"] == 1.0


def test_coverage_falls_when_a_specialist_did_not_answer(tmp_path: Path) -> None:
    answers: dict[str, Any] = {kind: [] for kind in KINDS[:4]} | {"dependencies": None}
    said = surveyed(made(tmp_path, {"a.py": ""}), results=answers, rubric=RUBRIC)
    assert judged(said).scores == {"evidence": 1.0, "coverage": 0.8}


def test_what_is_scored_already_is_not_scored_again(tmp_path: Path) -> None:
    rubric = (RubricLine(name="evidence", score=0.4), RubricLine(name="coverage"))
    said = surveyed(made(tmp_path, {"a.py": ""}), results={"security": []}, rubric=rubric)
    assert judged(said).scores == {"evidence": 0.4, "coverage": 1.0}
    assert list(said.scores) == ["coverage"]
