"""What language models say of a project becomes a finding only where the lines they quote stand."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.shipped_agents.review import Said, load

CODE = '''"""Mean."""


def mean(values):
    return sum(values) / len(values)


def last(values):
    return values[-1]
'''


def opinion(**more: Any) -> dict[str, Any]:
    return {
        "rule": "Empty input",
        "severity": "high",
        "file": "m.py",
        "line": 5,
        "quote": "    return sum(values) / len(values)",
        "message": "An empty list ends in a ZeroDivisionError.",
        "advice": "Refuse it.",
        **more,
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(CODE)
    return tmp_path


def placed(project: Path, *said: Any, **more: Any) -> tuple[list[dict[str, Any]], Said]:
    ctx = Said(project=project, needs={"correctness": {"findings": list(said)}}, **more)
    return load("mercury/quotes").agent(ctx).output, ctx


def test_a_finding_is_put_where_its_quote_stands(project: Path) -> None:
    (found,), ctx = placed(project, opinion(line=99, quote="return sum(values) / len(values)"))
    assert found == {
        "rule": "empty-input",
        "severity": "high",
        "kind": "models",
        "file": "m.py",
        "line": 5,
        "message": "An empty list ends in a ZeroDivisionError.",
        "advice": "Refuse it.",
        "excerpt": "    return sum(values) / len(values)",
        "found_by": "correctness",
    }
    assert ctx.decided == []


def test_of_several_places_the_nearest_counts(project: Path) -> None:
    (project / "m.py").write_text(CODE + CODE)
    (found,), _ = placed(project, opinion(line=15))
    assert found["line"] == 14


@pytest.mark.parametrize(
    "wrong",
    [
        {"quote": "return values[0]"},
        {"quote": ""},
        {"file": "../m.py"},
        {"file": "gone.py"},
        {"file": "."},
        {"quote": CODE + "more"},
    ],
)
def test_what_is_quoted_from_nowhere_is_dropped_on_the_record(project: Path, wrong: dict[str, Any]) -> None:
    (project.parent / "m.py").write_text(CODE)
    found, ctx = placed(project / "", opinion(**wrong), opinion())
    assert len(found) == 1
    assert len(ctx.decided) == 1
    assert ctx.decided[0].startswith("Drop 1 of 2 findings of correctness: the lines")


def test_what_the_evaluator_refuted_is_dropped(project: Path) -> None:
    told = "- empty-input at m.py:5: line 5 does not read as quoted"
    assert placed(project, opinion(), feedback=(told,))[0] == []


@pytest.mark.parametrize("said", [None, "nothing to say", {"findings": "none"}, {"findings": ["x"]}])
def test_a_model_that_did_not_answer_found_nothing(project: Path, said: Any) -> None:
    ctx = Said(project=project, needs={"design": said})
    assert load("mercury/quotes").agent(ctx).output == []


def test_the_evaluator_looks_at_it_and_the_report_says_who_found_it(project: Path) -> None:
    found, _ = placed(project, opinion())
    proof = load("apollo/_proof")
    assert proof.why_not(proof.Places(project), found[0]) is None
    ctx = Said(project=project, context={"findings": [found], "survey": {"files": ["m.py"], "skipped": []}})
    load("mercury/report").agent(ctx)
    assert "(found by correctness, a language model)" in ctx.written["report.md"]
    assert "found by correctness, a language model" in ctx.written["report.html"]
    assert "| models | 1 | 0 | 0 |" in ctx.written["report.md"]
