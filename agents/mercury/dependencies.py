"""Dependencies: packages that are imported and not declared, declared and not used, or cannot be had.

Nothing is executed: pyproject.toml and the lists of requirements are read as data.
"""

import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _finding import Hit, listed
from _project import Project, indent
from _specialist import lowest_python, review
from _tools import Tools
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestra import Result

FILTERS = {"newer-syntax": lambda source, hit: "syntax was added" in hit.message}
MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "environment.yml", "requirements.txt")
TEST_TOOLS = re.compile(
    r"(pytest(-cov|-mock|-asyncio|-xdist)?|coverage|tox|nox|black|flake8|isort|mypy|pylint|ruff|pre-commit|twine"
    r"|hypothesis)$"
)
# Modules by the minor version of Python 3 that no longer has them, or first has them.
_REMOVED = {
    10: "parser symbol formatter",
    12: "asynchat asyncore distutils imp smtpd",
    13: "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes "
    "sndhdr spwd sunau telnetlib uu xdrlib",
}
_YOUNG = {9: "zoneinfo graphlib", 11: "tomllib", 14: "compression annotationlib"}
_PYTHONS_OWN = frozenset(" ".join([*_REMOVED.values(), *_YOUNG.values()]).split())
_ABSTRACT = "Mapping|MutableMapping|Sequence|MutableSequence|Iterable|Iterator|Callable|Set|Hashable|Sized"
_HOSTS = re.compile(
    r"_|(pyodide|js|machine|micropython|bpy|bmesh|mathutils|gi|maya|hou|nuke|idaapi|gdb|lldb)$"
)
_PLUGINS = re.compile(r"^(types-|pytest-|sphinx|mkdocs|flake8|.*-stubs$|.*-binary$|.*-plugin)")


def agent(ctx: Any) -> Result:
    """What is found about the dependencies of the project."""
    checks = (check_manifest, check_versions, check_pairs, check_promises, check_declared, check_python)
    return review(ctx, "dependencies", FILTERS, checks)


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
        pins = [
            each.version for each in self.what.specifier if each.operator == "==" and "*" not in each.version
        ]
        return next(iter(pins), "")


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
    optional = {**table.get("optional-dependencies", {}), **data.get("dependency-groups", {})}
    found: list[Declared] = []
    for group, requirements in {"": table.get("dependencies", []), **optional}.items():
        begin = 0
        for each in (one for one in requirements if isinstance(one, str)):
            begin = max(text.find(f'"{each}"', begin), text.find(f"'{each}'", begin), begin)
            found += _parsed(each, "pyproject.toml", text.count("\n", 0, begin) + 1, group)
            begin += 1
    for file in requirement_files(project):
        for number, line in enumerate(project.lines(file), start=1):
            bare = re.sub(r"(^|\s)#.*|\\$|\s--hash.*", "", line).strip()
            found += _parsed(bare, file, number, "" if file == "requirements.txt" else file)
    return found


def _parsed(text: str, file: str, line: int, group: str) -> list[Declared]:
    try:
        return [Declared(Requirement(text), file, line, group)]
    except InvalidRequirement:
        return []


def requirement_files(project: Project) -> list[str]:
    """The lists of requirements, by name."""
    paths = [*project.root.glob("*requirements*.txt"), *project.root.glob("requirements/*.txt")]
    return sorted(path.relative_to(project.root).as_posix() for path in paths)


def line_of(project: Project, pattern: str) -> int:
    """The line of pyproject.toml that shows something; 0 if none does."""
    text = project.read("pyproject.toml")
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def check_manifest(project: Project, tools: Tools) -> Iterator[Hit]:
    """Whether there is a manifest, whole, and saying for which Python."""
    if not any((project.root / name).exists() for name in MANIFESTS):
        if len(project.sources) > 1:
            message = "Nothing says what this project needs: no pyproject.toml, no requirements.txt."
            yield Hit("no-manifest", ".", 0, message)
        return
    for raw in tools.ruff(["RUF200"], ["pyproject.toml"]) if project.read("pyproject.toml") else ():
        line, message = raw["location"]["row"], raw["message"].partition("\n")[0].rstrip(".") + "."
        yield Hit("broken-manifest", "pyproject.toml", line, message, code="RUF200")
    table = read_pyproject(project).get("project")
    if table and "requires-python" not in {*table, *table.get("dynamic", [])}:
        message = "`requires-python` is missing: an older Python installs the project and fails when it runs."
        yield Hit("no-requires-python", "pyproject.toml", line_of(project, r"^\[project\]"), message)


def check_versions(project: Project, _: Tools) -> Iterator[Hit]:
    """Requirements that any version meets, that none meets, or that are another thing every day."""
    loose: dict[str, list[Declared]] = {}
    for each in declared(project):
        if not each.group and not each.what.specifier and not each.what.url:
            loose.setdefault(each.file, []).append(each)
        if each.what.specifier.is_unsatisfiable():
            message = f"No version can meet `{each.what}`, so the project cannot be installed."
            yield Hit("impossible-requirement", each.file, each.line, message)
    for file, found in loose.items():
        names = listed([each.name for each in found])
        message = f"Any release is accepted, the oldest and the one of tomorrow: {names}."
        yield Hit("unpinned-requirement", file, found[0].line, message)
    for file in ("pyproject.toml", *requirement_files(project)):
        for number, line in enumerate(project.lines(file), start=1):
            match = re.search(r"git\+[^\s\"']+", line.partition("#")[0])
            if match and "@" not in match[0].rpartition("/")[2]:
                message = f"`{match[0][:80]}` names no commit, so it is another thing every day."
                yield Hit("unpinned-source", file, number, message)


def check_pairs(project: Project, _: Tools) -> Iterator[Hit]:
    """The same dependency twice, or in ways that cannot both be met; tools among what users need."""
    seen: dict[tuple[str, str], Declared] = {}
    for each in (one for one in declared(project) if not one.what.marker):
        name, file, line = each.name, each.file, each.line
        first = seen.setdefault((name, each.group), each)  # other lists are for other environments
        if first.exact and each.exact and first.exact != each.exact:
            message = f"`{name}` is {first.exact} in {first.file}:{first.line}, and here {each.exact}."
            yield Hit("conflicting-requirement", file, line, message)
        elif first is not each and first.file == file and first.what.extras == each.what.extras:
            yield Hit("duplicate-requirement", file, line, f"`{name}` stands on line {first.line} already.")
        if (
            file == "pyproject.toml"
            and not each.group
            and TEST_TOOLS.match(name)
            and not _is_used(project, name)
        ):
            message = f"`{name}` is a tool for developers, and every user of the project has to install it."
            yield Hit("test-tool-in-dependencies", file, line, message)


def _is_used(project: Project, name: str) -> bool:
    """Whether the product imports a package, or starts it as a program."""
    pattern = re.compile(rf"^\s*(import|from)\s+{name.replace('-', '_')}\b|[\"']{name}[\"']", re.MULTILINE)
    return any(pattern.search(each.text) for each in project.sources.values() if not each.is_test)


def check_promises(project: Project, _: Tools) -> Iterator[Hit]:
    """Files, commands and versions that the manifest names and the project does not have."""
    table = read_pyproject(project).get("project", {})
    readme, lowest, given = table.get("readme"), lowest_python(project), table.get("license")
    name = readme.get("file", "") if isinstance(readme, dict) else readme
    if name and not (project.root / str(name)).exists():
        message = f"The readme `{name}` does not exist, so the project cannot be built."
        yield Hit("missing-file", "pyproject.toml", line_of(project, r"^readme"), message)
    for command, target in {**table.get("scripts", {}), **table.get("gui-scripts", {})}.items():
        if not _leads_somewhere(project, str(target)):
            message = f"The command `{command}` leads to `{target}`, which does not exist."
            line = line_of(project, rf"^\"?{re.escape(command)}\"?\s*=")
            yield Hit("broken-entry-point", "pyproject.toml", line, message)
    for each in map(str, table.get("classifiers", [])):
        line = line_of(project, rf".*{re.escape(each)}[\"']")
        minor = re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", each)
        if minor and int(minor[1]) < lowest:
            message = f"The classifiers promise Python 3.{minor[1]}, and `requires-python` refuses it."
            yield Hit("classifier-mismatch", "pyproject.toml", line, message)
        if each.startswith("License ::") and isinstance(given, str):
            message = f"The licence is `{given}` and also a classifier; build tools may refuse both."
            yield Hit("license-twice", "pyproject.toml", line, message)


def _leads_somewhere(project: Project, target: str) -> bool:
    module, _, attribute = target.partition(":")
    source = next((each for each in project.sources.values() if each.module == module), None)
    if source is None:
        return module.partition(".")[0] not in project.packages
    first = re.split(r"[\[.]", attribute)[0].strip()
    return not first or bool(re.search(rf"\b{re.escape(first)}\b|import \*", source.text))


# Imports compared with what is declared, by deptry, and with what newer and older Pythons bring.


def check_declared(project: Project, tools: Tools) -> Iterator[Hit]:
    """Packages that are imported and not declared, or declared for every user and not imported."""
    data = read_pyproject(project)
    table = data.get("project", {})
    is_list = bool(table) and "dependencies" not in table.get("dynamic", [])
    if not project.product or not (
        is_list or "poetry" in data.get("tool", {}) or project.read("requirements.txt")
    ):
        return
    seen: set[str] = set()
    for raw in tools.deptry():
        module, code, place = raw["module"], raw["error"]["code"], raw["location"]
        file, line = os.path.relpath(place["file"], project.root), place["line"] or 0
        if code in ("DEP001", "DEP003") and module not in seen and _is_needed(project, module, file, line):
            seen.add(module)
            message = f"`{module}` is declared nowhere; it is there only if another package brings it."
            yield Hit("undeclared-import", file, line, message, code=code)
        elif code in ("DEP002", "DEP005"):
            yield from _superfluous(project, module, code)


def _is_needed(project: Project, module: str, file: str, line: int) -> bool:
    """Imported whatever happens: what is guarded, or imported only where it is used, many do without."""
    source = project.sources.get(file)
    if source is None or not source.in_package or indent(source.line(line)) or source.is_silenced(line):
        return False
    name = module.lower().replace("_", "-")
    known = any(each.name == name or each.name.startswith(f"{name}-") for each in declared(project))
    return not known and not _HOSTS.match(module) and module not in _PYTHONS_OWN


def _superfluous(project: Project, name: str, code: str) -> Iterator[Hit]:
    """A dependency of every user that is part of Python, or that no file of the project names in any way."""
    word = re.compile(rf"\b{re.escape(name).replace('-', '[-_]')}\b", re.IGNORECASE)
    for each in declared(project):
        if each.file != "pyproject.toml" or each.group or each.what.marker or each.name != name.lower():
            continue
        if TEST_TOOLS.match(name) or (code == "DEP002" and name in sys.stdlib_module_names):
            continue  # other rules speak of these
        if code == "DEP005":
            message = f"`{name}` is part of Python; the package of that name is old."
            yield Hit("backport-of-stdlib", each.file, each.line, message, code=code)
        elif not _PLUGINS.match(name) and not any(word.search(one.text) for one in project.sources.values()):
            message = f"`{name}` is installed for every user, and no file imports or names it."
            yield Hit("unused-dependency", each.file, each.line, message, code=code)


def check_python(project: Project, _: Tools) -> Iterator[Hit]:
    """Modules that newer Pythons no longer have, or older ones not yet, imported whatever happens."""
    lowest = lowest_python(project)
    capped = re.search(r"requires-python.*<\s*=?\s*3\.(\d+)", project.read("pyproject.toml"))
    last = int(capped[1]) if capped else 99
    gone = {name: minor for minor, names in _REMOVED.items() for name in names.split() if minor < last}
    young = {name: minor for minor, names in _YOUNG.items() for name in names.split() if minor > lowest > 0}
    names = "|".join([*gone, *young])
    old = rf"^(?:import|from)[ ]+({names})\b|^from[ ]+collections[ ]+import[ ].*?\b({_ABSTRACT})\b"
    for source in project.product:
        for line, match in source.matches(re.compile(old, re.MULTILINE)):
            name = match[1] or f"collections.{match[2]}"
            if name in young:
                message = f"`{name}` came with Python 3.{young[name]}; 3.{lowest} is promised."
                yield Hit("newer-module", source.name, line, message)
            elif name not in project.packages:
                message = f"`{name}` is no longer part of Python from 3.{gone.get(name, 10)} on."
                yield Hit("removed-module", source.name, line, message)
