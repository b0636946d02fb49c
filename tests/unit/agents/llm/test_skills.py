"""Skills are found by path and by name, offered by description, and read from their own folder alone."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from orchestra.agents.llm.skills import Skill, find_skills, offer_skills, read_skill
from orchestra.errors import BadAgentFile, BadName
from orchestra.limits import SKILL_DESCRIPTION_CHARS, SKILL_FILE_BYTES, SKILL_FILES


def _skill(folder: Path, matter: str = "description: Use for: forms.", body: str = "Read forms.md.") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\n{matter}\n---\n\n{body}\n")
    return folder


def test_a_skill_has_a_name_a_description_and_files(tmp_path: Path) -> None:
    folder = _skill(tmp_path / "skills" / "pdf", "name: pdf-forms\ndescription: Use when: filling\n  forms.")
    (folder / "forms.md").write_text("Forms.")
    (folder / "scripts" / "deep").mkdir(parents=True)
    (folder / "scripts" / "fill.py").write_text("pass")
    (folder / ".hidden").write_text("no")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("no")
    (folder / "link.md").symlink_to(folder / "forms.md")
    (skill,) = find_skills(["pdf"], tmp_path)
    assert skill == Skill(
        name="pdf-forms",
        description="Use when: filling forms.",
        folder=folder.resolve(),
        files=("forms.md", "scripts/fill.py"),
    )
    assert [path.name for path in skill.paths] == ["SKILL.md", "forms.md", "fill.py"]


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("flows/skills/pdf", "pdf"),
        ("flows/.claude/skills/pdf", "pdf"),
        ("flows/.agents/skills/pdf", "pdf"),
        ("skills/pdf", "pdf"),
        (".claude/skills/pdf", "pdf"),
        ("flows/knowledge/pdf", "knowledge/pdf"),
        ("knowledge/pdf", "../knowledge/pdf"),
        ("skills/office/pdf", "office/pdf"),
    ],
)
def test_where_skills_are_found(tmp_path: Path, place: str, name: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "flows").mkdir()
    _skill(tmp_path / place)
    (skill,) = find_skills([name], tmp_path / "flows")
    assert (skill.name, skill.folder) == ("pdf", (tmp_path / place).resolve())


def test_absolute_paths_lead_there(tmp_path: Path) -> None:
    _skill(tmp_path / "elsewhere" / "pdf")
    assert find_skills([str(tmp_path / "elsewhere" / "pdf")], tmp_path / "flows")[0].name == "pdf"


def test_the_nearest_skill_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    _skill(tmp_path / "skills" / "pdf", "description: far")
    _skill(tmp_path / "flows" / "skills" / "pdf", "description: near")
    assert find_skills(["pdf"], tmp_path / "flows")[0].description == "near"


def test_nothing_above_the_project_is_looked_at(tmp_path: Path) -> None:
    _skill(tmp_path / "skills" / "pdf")
    project = tmp_path / "project"
    (project / "flows").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    with pytest.raises(BadName):
        find_skills(["pdf"], project / "flows")


@pytest.mark.parametrize("name", ["pfd", "", " ", ".", "..", "/", "a\0b", "~nobody-at-all/x", "x" * 5000])
def test_skills_that_are_not_there(tmp_path: Path, name: str) -> None:
    _skill(tmp_path / "skills" / "pdf")
    with pytest.raises(BadName, match=r"a folder with a SKILL\.md") as caught:
        find_skills([name], tmp_path)
    if name == "pfd":
        assert "did you mean `pdf`?" in str(caught.value)


def test_two_skills_of_one_name(tmp_path: Path) -> None:
    _skill(tmp_path / "a" / "pdf")
    _skill(tmp_path / "b" / "pdf")
    with pytest.raises(BadName, match="has the same"):
        find_skills(["a/pdf", "b/pdf"], tmp_path)
    assert len(find_skills(["a/pdf", "a/pdf"], tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Just text.", "no description"),
        ("---\nname: x\n---\n", "no description"),
        ("---\ndescription: ''\n---\n", "no description"),
        ("---\ndescription:\n---\n", "no description"),
        ("---\ndescription: [a]\n---\n", "no description"),
        ("---\ndescription: x\n", "never ends"),
        ("x" * (SKILL_FILE_BYTES + 1), "larger than 256 kB"),
    ],
)
def test_skills_that_cannot_be_read(tmp_path: Path, text: str, reason: str) -> None:
    folder = tmp_path / "skills" / "pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    with pytest.raises(BadAgentFile, match=reason) as caught:
        find_skills(["pdf"], tmp_path)
    assert str(caught.value.file).endswith("skills/pdf/SKILL.md")


def test_much_is_cut_short(tmp_path: Path) -> None:
    folder = _skill(tmp_path / "skills" / "pdf", f"description: {'long ' * 1000}")
    for number in range(SKILL_FILES + 50):
        (folder / f"{number:03}.md").touch()
    deep = folder / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / "deep.md").touch()
    (skill,) = find_skills(["pdf"], tmp_path)
    assert len(skill.description) == SKILL_DESCRIPTION_CHARS
    assert len(skill.files) == SKILL_FILES
    assert not any("deep" in file for file in skill.files)


def test_skills_are_offered_by_description(tmp_path: Path) -> None:
    (_skill(tmp_path / "skills" / "pdf") / "forms.md").touch()
    _skill(tmp_path / "skills" / "mail", "description: Use for mail.")
    text = offer_skills(find_skills(["pdf", "mail"], tmp_path), tool="look_up")
    assert "`look_up`" in text
    assert "- `pdf`: Use for: forms. (with forms.md)" in text
    assert "- `mail`: Use for mail." in text
    assert offer_skills(()) == ""


def test_reading(tmp_path: Path) -> None:
    folder = _skill(tmp_path / "skills" / "pdf")
    (folder / "sub").mkdir()
    (folder / "sub" / "forms.md").write_bytes("\ufeff---\nnot: matter\n---\nForms: é\r\n".encode())
    (skill,) = find_skills(["pdf"], tmp_path)
    assert read_skill(skill) == "Read forms.md."
    assert read_skill(skill, "sub/forms.md") == "---\nnot: matter\n---\nForms: é\r\n"
    assert read_skill(skill, "./sub/./forms.md").startswith("---")


@pytest.fixture
def guarded(tmp_path: Path) -> Skill:
    """A skill beside a secret, with ways that seem to lead to it."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("do not tell")
    folder = _skill(tmp_path / "skills" / "pdf")
    (folder / "inside").mkdir()
    (folder / "link.txt").symlink_to(secret / "key.txt")
    (folder / "linked").symlink_to(secret)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "large.md").write_bytes(b"x" * (SKILL_FILE_BYTES + 1))
    (folder / "binary.png").write_bytes(b"\x89PNG\xff")
    os.mkfifo(folder / "pipe")
    (skill,) = find_skills(["pdf"], tmp_path)
    return skill


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("../../secret/key.txt", "does not lie in"),
        ("inside/../../../secret/key.txt", "does not lie in"),
        ("link.txt", "symbolic link"),
        ("linked/key.txt", "directory|symbolic link"),
        ("loop", "symbolic link"),
        ("inside", "no file"),
        ("pipe", "no file"),
        (".", "does not lie in"),
        ("", "does not lie in"),
        ("a\0b", "does not lie in"),
        ("missing.md", "No such file"),
        ("SKILL.md/x", "Not a directory"),
        ("x" * 5000, "too long"),
        ("large.md", "larger than 256 kB"),
        ("binary.png", "no text"),
    ],
)
def test_nothing_else_can_be_read(guarded: Skill, file: str, reason: str) -> None:
    with pytest.raises(BadName, match=reason) as caught:
        read_skill(guarded, file)
    assert "SKILL.md" in str(caught.value)


def test_nor_by_an_absolute_path(guarded: Skill) -> None:
    with pytest.raises(BadName, match="does not lie in"):
        read_skill(guarded, str(guarded.folder / "SKILL.md"))


def test_nor_when_the_folder_is_gone(guarded: Skill) -> None:
    guarded.folder.rename(guarded.folder.with_name("gone"))
    with pytest.raises(BadName, match="No such file"):
        read_skill(guarded)


def test_descriptors_are_closed(guarded: Skill) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for file in ("SKILL.md", "link.txt", "missing.md", "pipe", "inside/none") * 5:
        with suppress(BadName):
            read_skill(guarded, file)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
