"""Skills: folders of knowledge that a model is told about, and reads when it needs them.

A skill is a folder with a `SKILL.md`, whose front matter says when it is of use, and with whatever files that
text speaks of. An agent names its skills by path, or by name: `pdf` is looked for in `skills/`, and in the
folders where coding agents keep theirs, beside the workflow and above it up to the root of the project.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from orchestra.agents.llm.front_matter import FrontMatter, bad_file, read_file, split_front_matter
from orchestra.errors import BadName
from orchestra.limits import (
    KB,
    SKILL_DEPTH,
    SKILL_DESCRIPTION_CHARS,
    SKILL_FILE_BYTES,
    SKILL_FILES,
    SKILLS_ABOVE,
)
from orchestra.suggest import meant

MAIN_FILE: Final = "SKILL.md"
_HOMES: Final = ("skills", ".claude/skills", ".agents/skills")
_ROOT: Final = (".git", "pyproject.toml")
_KNOWN: Final = ("name", "description")


@attrs.frozen(kw_only=True)
class Skill:
    """A folder of knowledge."""

    name: str
    description: str  # when it is of use
    folder: Path
    files: tuple[str, ...] = ()  # beside the main one, by their paths below the folder

    @property
    def paths(self) -> list[Path]:
        """Every file that a model may read, the main one first."""
        return [self.folder / file for file in (MAIN_FILE, *self.files)]


def find_skills(names: Iterable[str], folder: Path) -> tuple[Skill, ...]:
    """The skills that an agent names; `folder` is the workflow's.

    Raises `BadName` for one that is not there or named twice, and `BadAgentFile` for one that cannot be read.
    """
    found: dict[str, Skill] = {}
    for name in dict.fromkeys(names):
        skill = _open_skill(_place(name, folder))
        if skill.name in found:
            rule = f"a name of its own: {found[skill.name].folder} has the same"
            raise BadName(what="a skill", name=name, rule=rule)
        found[skill.name] = skill
    return tuple(found.values())


def offer_skills(skills: Iterable[Skill], tool: str = "read_skill") -> str:
    """What a model is told of its skills; empty when it has none. `tool` reads them."""
    lines = [_offer(skill) for skill in skills]
    if not lines:
        return ""
    begin = (
        "You have skills: knowledge that is read when it is needed. "
        f"Before you do what one of them is for, read it with the tool `{tool}`."
    )
    return "\n".join([begin, "", *lines])


def read_skill(skill: Skill, file: str = MAIN_FILE) -> str:
    """The text of a file of a skill, of the main one without its front matter.

    Only what lies in the skill's own folder can be read, and nothing that a link leads to. Raises `BadName`,
    and `BadAgentFile` for a main file that was broken since the skill was found.
    """
    data = _read_inside(skill, file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refusal(skill, file, "it is no text") from None
    return split_front_matter(text, file, _KNOWN).body if file == MAIN_FILE else text


# --- finding ----------------------------------------------------------------------------------------------


def _place(name: str, folder: Path) -> Path:
    """The folder of a skill."""
    homes = list(_homes(folder))
    try:
        for place in (folder / Path(name).expanduser(), *(home / name for home in homes)):
            if name.strip() and (place / MAIN_FILE).is_file():
                return place
    except (OSError, ValueError, RuntimeError):  # a name that can be no path
        pass
    known = {each.name for home in homes for each in _folders(home)}
    rule = f"the path of a folder with a {MAIN_FILE}, or the name of one in `skills/`{meant(name, known)}"
    raise BadName(what="a skill", name=name, rule=rule)


def _homes(folder: Path) -> Iterator[Path]:
    """Folders that may hold skills, the nearest first."""
    here = folder.absolute()
    above = [here, *here.parents][:SKILLS_ABOVE]
    root = next((at for at, each in enumerate(above) if any((each / mark).exists() for mark in _ROOT)), 0)
    return (each / home for each in above[: root + 1] for home in _HOMES)


def _folders(home: Path) -> list[Path]:
    try:
        return [each for each in home.iterdir() if (each / MAIN_FILE).is_file()]
    except OSError:
        return []


def _open_skill(folder: Path) -> Skill:
    main = folder / MAIN_FILE
    matter = split_front_matter(read_file(main, limit=SKILL_FILE_BYTES), str(main), _KNOWN)
    description = " ".join(_text(matter, "description").split())
    if not description:
        advice = "Write `description:` and when the skill is of use; a model reads nothing else beforehand."
        raise bad_file(str(main), 1, "the skill has no description", advice)
    return Skill(
        name=_text(matter, "name") or folder.absolute().name,
        description=_shortened(description),
        folder=folder.resolve(),
        files=tuple(_other_files(folder)),
    )


def _text(matter: FrontMatter, key: str) -> str:
    return matter.texts.get(key, "").strip() if matter.values.get(key) is not None else ""


def _shortened(text: str) -> str:
    return text if len(text) <= SKILL_DESCRIPTION_CHARS else f"{text[: SKILL_DESCRIPTION_CHARS - 1]}…"


def _other_files(folder: Path) -> list[str]:
    """The files of a folder, without hidden ones and what links lead to."""
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        below = Path(place).relative_to(folder)
        deep = len(below.parts) >= SKILL_DEPTH
        folders[:] = [] if deep else sorted(each for each in folders if not _is_hidden(each))
        shown = [each for each in files if not _is_hidden(each) and not (Path(place) / each).is_symlink()]
        found += [(below / each).as_posix() for each in sorted(shown)]
        if len(found) > SKILL_FILES:
            break
    return [each for each in found if each != MAIN_FILE][:SKILL_FILES]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _offer(skill: Skill) -> str:
    files = f" (with {', '.join(skill.files)})" if skill.files else ""
    return f"- `{skill.name}`: {skill.description}{files}"


# --- reading ----------------------------------------------------------------------------------------------


def _read_inside(skill: Skill, file: str) -> bytes:
    """The bytes of a file, reached from the skill's folder step by step so that nothing leads out of it."""
    parts = Path(file).parts
    if not parts or Path(file).is_absolute() or ".." in parts or "\0" in file:
        raise _refusal(skill, file, "it does not lie in the skill's folder")
    try:
        descriptor = os.open(skill.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in parts:
                inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            return _read_regular(skill, file, descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _refusal(skill, file, error.strerror or type(error).__name__) from None


def _read_regular(skill: Skill, file: str, descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise _refusal(skill, file, "it is no file")
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        data = stream.read(SKILL_FILE_BYTES + 1)
    if len(data) > SKILL_FILE_BYTES:
        raise _refusal(skill, file, f"it is larger than {SKILL_FILE_BYTES // KB} kB")
    return data


def _refusal(skill: Skill, file: str, reason: str) -> BadName:
    known = ", ".join((MAIN_FILE, *skill.files))
    return BadName(what=f"a file of the skill {skill.name!r} ({reason})", name=file, rule=f"one of {known}")
