"""Imports compared with what is declared, by deptry, and with what newer and older Pythons bring."""

import re
from collections.abc import Iterator

from _finding import Hit
from _manifest_checks import BACKPORTS, TEST_TOOLS, declared, read_pyproject
from _project import Project, indent
from _specialist import lowest_python
from _tools import Tools

# Modules by the minor version of Python 3 that no longer has them, or first has them.
_REMOVED = {
    10: "parser symbol formatter",
    12: "asynchat asyncore distutils imp smtpd",
    13: "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau "
    "telnetlib uu xdrlib",
}
_YOUNG = {9: "zoneinfo graphlib", 11: "tomllib", 14: "compression annotationlib"}
_ABSTRACT = "Mapping|MutableMapping|Sequence|MutableSequence|Iterable|Iterator|Callable|Set|Hashable|Sized"
_HOSTS = frozenset(
    "pyodide js pyscript machine micropython bpy bmesh mathutils gi maya hou nuke unreal idaapi gdb lldb".split()
)
_PLUGINS = re.compile(r"^(types-|pytest-|sphinx|mkdocs|flake8|.*-stubs$|.*-binary$|.*-plugin)")


def check_declared(project: Project, tools: Tools) -> Iterator[Hit]:
    """Packages that are imported and not declared, or declared for every user and not imported."""
    data = read_pyproject(project)
    table = data.get("project", {})
    listed = bool(table) and "dependencies" not in table.get("dynamic", [])
    if not project.product or not (
        listed or "poetry" in data.get("tool", {}) or project.read("requirements.txt")
    ):
        return
    everything = {each.name for each in declared(project)}
    seen: set[str] = set()
    for raw in tools.deptry():
        module = str(raw["module"])
        if raw["code"] in ("DEP001", "DEP003") and module not in seen | _HOSTS:
            hit = _undeclared(project, raw["file"], raw["line"], module, everything)
            seen.update({module} if hit else ())
            yield from [hit] if hit else []
        elif raw["code"] == "DEP002":
            yield from _unused(project, module)


def _undeclared(project: Project, file: str, line: int, module: str, everything: set[str]) -> Hit | None:
    """An import whatever happens; one that is guarded, or made only where it is needed, many do without."""
    source = project.sources.get(file)
    known = any(
        name == module.lower().replace("_", "-") or name.startswith(f"{module.lower()}-")
        for name in everything
    )
    if source is None or not source.in_package or known or module.startswith("_"):
        return None
    if (
        indent(source.line(line))
        or source.is_silenced(line)
        or module in " ".join((*_REMOVED.values(), *_YOUNG.values())).split()
    ):
        return None
    message = f"`{module}` is declared nowhere; it is missing unless another package happens to bring it."
    return Hit("undeclared-import", file, line, message, code="DEP001")


def _unused(project: Project, name: str) -> Iterator[Hit]:
    """A dependency of every user that no file of the project names in any way."""
    for each in declared(project):
        ours = (
            each.file == "pyproject.toml"
            and not each.group
            and not each.what.marker
            and each.name == name.lower()
        )
        if ours and not _PLUGINS.match(name) and name not in BACKPORTS | TEST_TOOLS:
            word = re.compile(rf"\b{re.escape(name).replace('-', '[-_]')}\b", re.IGNORECASE)
            if not any(word.search(source.text) for source in project.sources.values()):
                message = f"`{name}` is installed for every user, and no file imports or names it."
                yield Hit("unused-dependency", each.file, each.line, message, code="DEP002")


def check_python(project: Project, _: Tools) -> Iterator[Hit]:
    """Modules that newer Pythons no longer have, or that older ones do not have yet, imported whatever happens."""
    lowest = lowest_python(project)
    capped = re.search(r"requires-python.*<\s*=?\s*3\.(\d+)", project.read("pyproject.toml"))
    gone = {
        name: minor
        for minor, names in _REMOVED.items()
        for name in names.split()
        if not capped or int(capped[1]) > minor
    }
    young = {
        name: minor for minor, names in _YOUNG.items() for name in names.split() if lowest and minor > lowest
    }
    pattern = re.compile(
        rf"^(?:import|from)[ ]+({'|'.join((*gone, *young))})\b|^from[ ]+collections[ ]+import[ ].*\b({_ABSTRACT})\b",
        re.MULTILINE,
    )
    for source in project.product:
        for line, match in source.matches(pattern):
            name = match[1] or f"collections.{match[2]}"
            if name in project.packages:
                continue
            if name in young:
                message = (
                    f"`{name}` came with Python 3.{young[name]}; the project says it works with 3.{lowest}."
                )
                yield Hit("newer-module", source.name, line, message)
            else:
                message = f"`{name}` is no longer part of Python from 3.{gone.get(name, 10)} on, so importing it fails there."
                yield Hit("removed-module", source.name, line, message)


IMPORT_CHECKS = (check_declared, check_python)
