"""Which files are looked at, and files that are strange."""

import os
from pathlib import Path

import pytest

from tests.unit.shipped_agents.review import Said, findings, load, made, surveyed


def files(project: Path, **settings: int) -> list[str]:
    said = Said(project=project, settings=dict(settings))
    listed: list[str] = load("mercury/survey").agent(said).output["files"]
    return listed


def test_what_is_no_source_is_left_alone(tmp_path: Path) -> None:
    made(
        tmp_path,
        {
            "pack/a.py": "",
            ".hidden/b.py": "",
            "node_modules/c.py": "",
            "build/lib/d.py": "",
            "outputs/e.py": "",
            "my-env/pyvenv.cfg": "",
            "my-env/f.py": "",
            "tests/fixtures/g.py": "",
            "ignored/h.py": "",
            "made_i.py": "",
            ".gitignore": "# comment\nignored/\nmade_*.py\n*.log\n",
        },
    )
    assert files(tmp_path) == ["pack/a.py"]


def test_a_package_may_be_called_build(tmp_path: Path) -> None:
    assert files(made(tmp_path, {"build/__init__.py": ""})) == ["build/__init__.py"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    made(tmp_path, {"pack/a.py": ""})
    (tmp_path / "pack" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "pack" / "b.py").symlink_to(tmp_path / "pack" / "a.py")
    found = surveyed(tmp_path).context["survey"]
    assert found["files"] == ["pack/a.py"]
    assert found["skipped"] == [{"file": "pack/b.py", "why": "a link"}]


def test_large_files_and_too_many_are_left_out_with_a_note(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": "x = 1\n" * 200_000, "b.py": "", "c.py": ""})
    found = load("mercury/survey").agent(Said(project=tmp_path, settings={"max_files": 1})).output
    assert found["files"] == ["b.py"]
    assert [each["file"] for each in found["skipped"]] == ["a.py", "c.py"]


def test_a_single_file_can_be_reviewed(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": "x = 1 is 1\n", "b.py": ""})
    said = surveyed(tmp_path, inputs={"path": "a.py"})
    assert said.context["survey"]["files"] == ["a.py"]
    found = load("mercury/structure").agent(said).output
    assert {(each["file"], each["rule"]) for each in found} == {("a.py", "is-literal")}


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        surveyed(tmp_path, inputs={"path": "nowhere"})


def test_latin_1_is_read_and_reported(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": b"name = '\xe9'\n", "b.py": b"# coding: latin-1\nx = '\xe9'\n"})
    found = findings(tmp_path, "structure")
    assert [(each["file"], each["rule"]) for each in found] == [("a.py", "wrong-encoding")]


def test_a_file_nested_too_deep_for_the_parser_is_no_crash(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": "(" * 5_000 + ")" * 5_000, "b.py": "x = 1 is 1\n"})
    assert [each["file"] for each in findings(tmp_path)] == ["b.py", ".", "."]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    made(tmp_path, {"a.py": ""})
    (tmp_path / "a.py").chmod(0)
    assert [each["rule"] for each in findings(tmp_path, "structure")] == ["unreadable-file"]


def test_a_file_that_vanished_is_no_crash(tmp_path: Path) -> None:
    said = surveyed(made(tmp_path, {"a.py": ""}))
    (tmp_path / "a.py").unlink()
    assert [each["rule"] for each in load("mercury/structure").agent(said).output] == ["unreadable-file"]


def test_exceptions_in_gitignore_are_not_guessed_at(tmp_path: Path) -> None:
    made(tmp_path, {".gitignore": "/made/*\n!/made/keep.py\n", "made/keep.py": ""})
    assert files(tmp_path) == ["made/keep.py"]
