"""What a project says it needs: what is there twice, contradicts itself, is left to chance or is not true.

Nothing is executed: pyproject.toml and the lists of requirements are read as data.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _finding import Hit, listed
from _project import Project
from _specialist import lowest_python
from _tools import Tools
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

TEST_TOOLS = frozenset(
    "pytest pytest-cov pytest-mock pytest-asyncio pytest-xdist coverage tox nox black flake8 isort mypy pylint ruff "
    "pre-commit twine hypothesis".split()
)
BACKPORTS = frozenset(
    "argparse asyncio contextlib2 dataclasses enum34 futures functools32 importlib ipaddress pathlib pathlib2 statistics "
    "subprocess32 typing unittest2 uuid wsgiref".split()
)
_GIT = re.compile(r"(?P<url>git\+[^\s\"']+)")
_ANY_MANIFEST = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "environment.yml", "requirements.txt")


@dataclass(frozen=True)
class Declared:
    """One line of a list of dependencies."""

    what: Requirement
    file: str
    line: int
    group: str  # "" for what every user gets

    @property
    def name(self) -> str:
        """The name as it is compared."""
        return canonicalize_name(self.what.name)

    @property
    def exact(self) -> str:
        """The one version that is accepted; empty if there are more."""
        return next(
            (
                each.version
                for each in self.what.specifier
                if each.operator == "==" and "*" not in each.version
            ),
            "",
        )


def read_pyproject(project: Project) -> dict[str, Any]:
    """The tables of pyproject.toml; none where it is missing or broken."""
    try:
        return tomllib.loads(project.read("pyproject.toml"))
    except tomllib.TOMLDecodeError:
        return {}


def declared(project: Project) -> list[Declared]:
    """Everything pyproject.toml and the lists of requirements declare."""
    data, text = read_pyproject(project), project.read("pyproject.toml")
    table = data.get("project", {})
    groups = {
        "": table.get("dependencies", []),
        **table.get("optional-dependencies", {}),
        **data.get("dependency-groups", {}),
    }
    found: list[Declared] = []
    for group, requirements in groups.items():
        begin = 0
        for each in (one for one in requirements if isinstance(one, str)):
            begin = max(text.find(f'"{each}"', begin), text.find(f"'{each}'", begin), begin)
            found += _parsed(each, "pyproject.toml", text.count("\n", 0, begin) + 1, group)
            begin += 1
    for name in requirement_files(project):
        group = "" if name == "requirements.txt" else name
        for number, line in enumerate(project.lines(name), start=1):
            found += _parsed(re.sub(r"(^|\s)#.*|\\$|\s--hash.*", "", line).strip(), name, number, group)
    return found


def requirement_files(project: Project) -> list[str]:
    """The lists of requirements, by name."""
    paths = [*project.root.glob("*requirements*.txt"), *project.root.glob("requirements/*.txt")]
    return sorted(path.relative_to(project.root).as_posix() for path in paths)


def _parsed(text: str, file: str, line: int, group: str) -> list[Declared]:
    try:
        return [Declared(Requirement(text), file, line, group)]
    except InvalidRequirement:
        return []


def line_of(project: Project, pattern: str) -> int:
    """The line of pyproject.toml that shows something; 0 if none does."""
    text = project.read("pyproject.toml")
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def check_manifest(project: Project, tools: Tools) -> Iterator[Hit]:
    """Whether there is a manifest, whole, and saying for which Python."""
    if not any((project.root / name).exists() for name in _ANY_MANIFEST):
        if len(project.sources) > 1:
            message = "Nothing says what this project needs: no pyproject.toml, no requirements.txt."
            yield Hit("no-manifest", ".", 0, message)
        return
    for raw in tools.ruff(["RUF200"], ["pyproject.toml"]) if project.read("pyproject.toml") else ():
        yield Hit(
            "broken-manifest",
            "pyproject.toml",
            raw["location"]["row"],
            raw["message"].rstrip(".") + ".",
            code="RUF200",
        )
    table = read_pyproject(project).get("project")
    if table and not {"requires-python"} & {*table, *table.get("dynamic", [])}:
        message = "`requires-python` is missing: an older Python installs the project and fails when it runs."
        yield Hit("no-requires-python", "pyproject.toml", line_of(project, r"^\[project\]"), message)


def check_versions(project: Project, _: Tools) -> Iterator[Hit]:
    """Requirements that any version meets, that none meets, or that are another thing every day."""
    everything = declared(project)
    for file in dict.fromkeys(each.file for each in everything):
        loose = [
            each
            for each in everything
            if each.file == file and not each.group and not each.what.specifier and not each.what.url
        ]
        if loose:
            names = listed([each.name for each in loose])
            message = f"No version is asked for, so any release is accepted, the oldest and the one of tomorrow: {names}."
            yield Hit("unpinned-requirement", file, loose[0].line, message)
    for each in everything:
        if each.what.specifier.is_unsatisfiable():
            message = f"No version can meet `{each.what}`, so the project cannot be installed."
            yield Hit("impossible-requirement", each.file, each.line, message)
    for file in ("pyproject.toml", *requirement_files(project)):
        for number, line in enumerate(project.lines(file), start=1):
            match = _GIT.search(line.partition("#")[0])
            if match and "@" not in match["url"].rpartition("/")[2]:
                message = f"`{match['url'][:80]}` names no commit, so it is another thing every day."
                yield Hit("unpinned-source", file, number, message)


def check_pairs(project: Project, _: Tools) -> Iterator[Hit]:
    """The same dependency twice in one list, or in ways that cannot both be met."""
    seen: dict[tuple[str, str], Declared] = {}
    for each in declared(project):
        if each.what.marker or "constraints" in each.file:
            continue
        first = seen.setdefault((each.name, each.group), each)  # other lists are for other environments
        if first is each:
            continue
        if first.exact and each.exact and first.exact != each.exact:
            message = f"`{each.name}` is {each.exact} here and {first.exact} in {first.file}:{first.line}; both cannot be met."
            yield Hit("conflicting-requirement", each.file, each.line, message)
        elif first.file == each.file and first.what.extras == each.what.extras:
            message = f"`{each.name}` stands on line {first.line} already."
            yield Hit("duplicate-requirement", each.file, each.line, message)


def check_kinds(project: Project, _: Tools) -> Iterator[Hit]:
    """Dependencies of every user that are part of Python, or tools of developers."""
    for each in declared(project):
        if each.file == "pyproject.toml" and not each.group:
            if each.name in BACKPORTS and not each.what.marker:
                message = f"`{each.name}` is part of Python; the package of that name is old, and may replace what is newer."
                yield Hit("backport-of-stdlib", each.file, each.line, message)
            elif each.name in TEST_TOOLS and not _is_imported(project, each.name):
                message = f"`{each.name}` is a tool for developers, and every user of the project has to install it."
                yield Hit("test-tool-in-dependencies", each.file, each.line, message)


def _is_imported(project: Project, name: str) -> bool:
    """Whether the product imports a package, or starts it as a program."""
    word = name.replace("-", "_")
    pattern = re.compile(rf"^\s*(import|from)\s+{word}\b|[\"']{name}[\"']", re.MULTILINE)
    return any(pattern.search(each.text) for each in project.sources.values() if not each.is_test)


def check_promises(project: Project, _: Tools) -> Iterator[Hit]:
    """Files, commands and versions that the manifest names and the project does not have."""
    table = read_pyproject(project).get("project", {})
    readme = table.get("readme")
    name = readme.get("file", "") if isinstance(readme, dict) else readme
    if name and not (project.root / str(name)).exists():
        message = f"The readme `{name}` does not exist, so the project cannot be built."
        yield Hit("missing-file", "pyproject.toml", line_of(project, r"^readme"), message)
    for command, target in {**table.get("scripts", {}), **table.get("gui-scripts", {})}.items():
        if not _leads_somewhere(project, str(target)):
            message = f"The command `{command}` leads to `{target}`, which does not exist; it fails when somebody runs it."
            line = line_of(project, rf"^\"?{re.escape(command)}\"?\s*=")
            yield Hit("broken-entry-point", "pyproject.toml", line, message)
    yield from _classifiers(project, table)


def _leads_somewhere(project: Project, target: str) -> bool:
    module, _, attribute = target.partition(":")
    source = next((each for each in project.sources.values() if each.module == module), None)
    first = re.split(r"[\[.]", attribute)[0].strip()
    if source is None:
        return module.partition(".")[0] not in project.packages
    return not first or bool(re.search(rf"\b{re.escape(first)}\b|import \*", source.text))


def _classifiers(project: Project, table: dict[str, Any]) -> Iterator[Hit]:
    lowest, given = lowest_python(project), table.get("license")
    for each in map(str, table.get("classifiers", [])):
        line = line_of(project, rf".*{re.escape(each)}[\"']")
        match = re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", each)
        if match and int(match[1]) < lowest:
            message = f"The classifiers promise Python 3.{match[1]}, and `requires-python` refuses it."
            yield Hit("classifier-mismatch", "pyproject.toml", line, message)
        if each.startswith("License ::") and isinstance(given, str):
            message = f"The licence is `{given}` and also a classifier; that one is deprecated, and build tools may refuse the two together."
            yield Hit("license-twice", "pyproject.toml", line, message)


MANIFEST_CHECKS = (check_manifest, check_versions, check_pairs, check_kinds, check_promises)
