"""Imports compared with what is declared, by deptry, and with what newer and older Pythons bring."""

import os
import re
import sys
from collections.abc import Iterator

from _finding import Hit
from _manifest_checks import TEST_TOOLS, declared, read_pyproject
from _project import Project, indent
from _specialist import lowest_python
from _tools import Tools

# Modules by the minor version of Python 3 that no longer has them, or first has them.
_REMOVED = {
    10: "parser symbol formatter",
    12: "asynchat asyncore distutils imp smtpd",
    13: "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr "
    "spwd sunau telnetlib uu xdrlib",
}
_YOUNG = {9: "zoneinfo graphlib", 11: "tomllib", 14: "compression annotationlib"}
_PYTHONS_OWN = frozenset(" ".join([*_REMOVED.values(), *_YOUNG.values()]).split())
_ABSTRACT = "Mapping|MutableMapping|Sequence|MutableSequence|Iterable|Iterator|Callable|Set|Hashable|Sized"
_HOSTS = re.compile(
    r"_|(pyodide|js|machine|micropython|bpy|bmesh|mathutils|gi|maya|hou|nuke|idaapi|gdb|lldb)$"
)
_PLUGINS = re.compile(r"^(types-|pytest-|sphinx|mkdocs|flake8|.*-stubs$|.*-binary$|.*-plugin)")


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
            message = (
                f"`{module}` is declared nowhere; it is missing unless another package happens to bring it."
            )
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
        if code == "DEP005":
            message = (
                f"`{name}` is part of Python; the package of that name is old, and may replace what is newer."
            )
            yield Hit("backport-of-stdlib", each.file, each.line, message, code=code)
        elif not _PLUGINS.match(name) and not TEST_TOOLS.match(name) and name not in sys.stdlib_module_names:
            if not any(word.search(source.text) for source in project.sources.values()):
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
                message = (
                    f"`{name}` came with Python 3.{young[name]}; the project says it works with 3.{lowest}."
                )
                yield Hit("newer-module", source.name, line, message)
            elif name not in project.packages:
                message = f"`{name}` is no longer part of Python from 3.{gone.get(name, 10)} on: importing it fails."
                yield Hit("removed-module", source.name, line, message)


IMPORT_CHECKS = (check_declared, check_python)
