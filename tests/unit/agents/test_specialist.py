"""How a specialist works: it saves as it goes, goes on where it was, and drops what was refuted."""

from pathlib import Path
from typing import Any

from tests.unit.agents.cast import helper, load, made, surveyed

BAD = "def f(x):\n    return x is 'a'\n"


def project(folder: Path, count: int) -> Path:
    return made(folder, {f"pack/m{number:03}.py": BAD for number in range(count)})


def test_it_saves_and_goes_on_where_it_was(tmp_path: Path) -> None:
    said = surveyed(project(tmp_path, 60))
    whole = load("mercury/structure").agent(said).output
    milestone = said.saved[0]
    assert (milestone["done"], len(milestone["found"])) == (50, 50)
    again = surveyed(tmp_path, private={**milestone, "found": milestone["found"][:1]})
    resumed = load("mercury/structure").agent(again).output
    assert [each["file"] for each in resumed if each["rule"] == "is-literal"] == [
        "pack/m000.py",
        *(f"pack/m{number:03}.py" for number in range(50, 60)),
    ]
    assert len(whole) == 40  # more of one rule are counted, not listed


def test_work_on_other_sources_is_not_continued(tmp_path: Path) -> None:
    said = surveyed(project(tmp_path, 3), private={"stand": "another", "done": 3, "found": []})
    assert len(load("mercury/structure").agent(said).output) == 3


def test_what_was_refuted_is_dropped(tmp_path: Path) -> None:
    feedback = "These do not hold:\n- is-literal at pack/m001.py:2: line 2 does not read as quoted"
    said = surveyed(project(tmp_path, 3), feedback=(feedback,))
    found = load("mercury/structure").agent(said).output
    assert [each["file"] for each in found] == ["pack/m000.py", "pack/m002.py"]


def test_more_of_one_rule_are_counted_in_words(tmp_path: Path) -> None:
    found = load("mercury/structure").agent(surveyed(project(tmp_path, 45))).output
    assert found[-1]["message"].endswith("(5 more like this are not listed.)")


def test_confidence_falls_with_what_cannot_be_understood(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": "", "b.py": "def (:\n"})
    assert load("mercury/structure").agent(surveyed(tmp_path)).confidence < 0.75
    (tmp_path / "b.py").write_text("")
    assert load("mercury/structure").agent(surveyed(tmp_path)).confidence == 0.95


def test_a_check_that_fails_costs_only_itself(tmp_path: Path) -> None:
    def failing(_: Any) -> list[Any]:
        raise RecursionError("too deep")

    said = surveyed(project(tmp_path, 1))
    structure = load("mercury/structure")
    result = helper("specialist").review(
        said, "structure", structure.RULES, (failing, *structure.FILE_CHECKS)
    )
    assert [each["rule"] for each in result.output] == ["is-literal"]
    assert "failing failed on pack/m000.py: RecursionError: too deep" in said.text
    assert result.confidence < 0.95
