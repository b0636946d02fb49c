"""What a project says it needs: pyproject.toml, requirements files, setup.cfg and setup.py, read as data.

Nothing is executed. Where a project computes its dependencies the manifest says so (`open_ended`), and
rules about what is missing keep silent.
"""

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from _source import Project

_REQUIREMENT = re.compile(
    r"^\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?P<rest>[^;#]*)(?:;(?P<marker>[^#]*))?"
)
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([\w.*+!-]+)")


@dataclass(frozen=True)
class Requirement:
    """One line of a list of dependencies."""

    name: str  # normalised
    clauses: tuple[tuple[str, str], ...]
    marker: str
    file: str
    line: int
    group: str  # "" for what every user gets
    text: str
    url: str = ""


@dataclass
class Manifest:
    """All that a project declares."""

    requirements: list[Requirement] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    project: dict[str, Any] | None = None  # [project] of pyproject.toml
    requires_python: str | None = None
    mentioned: str = ""  # every text that may name a dependency in another way
    broken: tuple[str, int, str] | None = None  # a file that cannot be read: name, line, why
    open_ended: bool = False

    def names(self) -> set[str]:
        """The normalised names of everything that is declared."""
        return {each.name for each in self.requirements}


def normalised(name: str) -> str:
    """A distribution's name as it is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirement(text: str, file: str, line: int, group: str) -> Requirement | None:
    """One requirement, or None where the line is something else."""
    match = _REQUIREMENT.match(text)
    if match is None or text.lstrip().startswith(("-", "#")):
        return None
    rest = match["rest"].strip()
    url = rest.removeprefix("@").strip() if rest.startswith("@") else ""
    if not url and rest and not _CLAUSE.match(rest.lstrip("(")):
        return None
    clauses = tuple(_CLAUSE.findall(rest)) if not url else ()
    return Requirement(
        normalised(match["name"]),
        clauses,
        (match["marker"] or "").strip(),
        file,
        line,
        group,
        text.strip(),
        url,
    )


def read_manifest(project: Project) -> Manifest:
    """Everything a project declares, from all the files it may stand in."""
    manifest = Manifest()
    _pyproject(project, manifest)
    _requirement_files(project, manifest)
    _setup(project, manifest)
    for name in (
        "tox.ini",
        "noxfile.py",
        "setup.cfg",
        "environment.yml",
        "Pipfile",
        "pyproject.toml",
        "setup.py",
    ):
        manifest.mentioned += "\n" + (project.read(name) or "")
    return manifest


def _pyproject(project: Project, manifest: Manifest) -> None:
    text = project.read("pyproject.toml")
    if text is None:
        return
    manifest.files.append("pyproject.toml")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        manifest.broken = ("pyproject.toml", int(line[1]) if line else 0, str(error))
        manifest.open_ended = True
        return
    table = data.get("project")
    tool = data.get("tool", {})
    if isinstance(table, dict):
        manifest.project = table
        manifest.requires_python = table.get("requires-python")
        manifest.open_ended |= "dependencies" in table.get("dynamic", [])
    manifest.open_ended |= "poetry" in tool or "pdm" in tool or "flit" in tool
    for group, texts in _groups(data):
        manifest.requirements += _located(text, texts, group)


def _groups(data: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    table = data.get("project", {})
    yield "", [each for each in table.get("dependencies", []) if isinstance(each, str)]
    for group, texts in {
        **table.get("optional-dependencies", {}),
        **data.get("dependency-groups", {}),
    }.items():
        yield group, [each for each in texts if isinstance(each, str)]
    yield (
        "build",
        [each for each in data.get("build-system", {}).get("requires", []) if isinstance(each, str)],
    )


def _located(text: str, requirements: list[str], group: str) -> Iterator[Requirement]:
    """Requirements with the lines they stand on; a text that stands several times is found in order."""
    begin = 0
    for each in requirements:
        quoted = next((mark + each + mark for mark in "\"'" if mark + each + mark in text), each)
        place = text.find(quoted, begin)
        place = place if place >= 0 else text.find(quoted)
        begin = place + 1 if place >= 0 else begin
        line = text.count("\n", 0, max(place, 0)) + 1
        found = parse_requirement(each, "pyproject.toml", line, group)
        if found is not None:
            yield found


def _requirement_files(project: Project, manifest: Manifest) -> None:
    folders = [project.root, project.root / "requirements"]
    paths = [path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.txt"))]
    for path in paths:
        if path.parent == project.root and "requirements" not in path.name and "constraints" not in path.name:
            continue
        name = path.relative_to(project.root).as_posix()
        manifest.files.append(name)
        group = "" if path.name == "requirements.txt" else path.stem
        for number, line in enumerate((project.read(name) or "").splitlines(), start=1):
            found = parse_requirement(line.split(" #")[0].rstrip("\\ "), name, number, group)
            manifest.requirements += [found] if found else []


def _setup(project: Project, manifest: Manifest) -> None:
    config = project.read("setup.cfg")
    if config is not None:
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(config)
        except configparser.Error:
            manifest.open_ended = True
        if parser.has_section("options"):
            manifest.files.append("setup.cfg")
            manifest.requires_python = manifest.requires_python or parser.get(
                "options", "python_requires", fallback=None
            )
            texts = parser.get("options", "install_requires", fallback="").splitlines()
            manifest.requirements += [
                found for each in texts if (found := parse_requirement(each, "setup.cfg", 0, ""))
            ]
    script = project.read("setup.py")
    if script is not None:
        manifest.files.append("setup.py")
        manifest.open_ended = True  # it may compute anything
        manifest.requires_python = manifest.requires_python or _keyword(script, "python_requires")


def _keyword(script: str, name: str) -> str | None:
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == name:
            return str(node.value.value) if isinstance(node.value, ast.Constant) else "computed"
    return None


def lowest_python(requires: str | None) -> tuple[int, int] | None:
    """The oldest Python a project says it works with, as (3, 9)."""
    match = re.search(r"(?:>=|~=|==)\s*3\.(\d+)", requires or "")
    return (3, int(match[1])) if match else None


def version_key(version: str) -> tuple[int, ...]:
    """A version as numbers that can be compared."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
