"""What stands on loan: private parts of others, silenced checkers, and removals that are overdue."""

import ast
import datetime
import re
import sys
from collections import Counter
from collections.abc import Iterator

from _finding import Hit, Rule
from _import_graph import is_guarded
from _manifest import version_key
from _nodes import aliases, dotted, full_name
from _source import Project, Source

MIN_BLANKET = 5
NAMED = 5

BORROWED_RULES = {
    "private-api": Rule("low", "Use the public way, or guard it and test against the next release."),
    "blanket-ignore": Rule("low", "Name the code: `# type: ignore[arg-type]`, `# noqa: F401`."),
    "overdue-removal": Rule("low", "Remove it now, or announce another date."),
}
_DOCUMENTED = frozenset(
    ["_replace", "_asdict", "_fields", "_make", "_field_defaults", "_get_running_loop", "_set_running_loop"]
)
_OPEN = frozenset({"sys", "os", "ctypes", "_thread", "_typeshed", "__future__", "__main__"})
_BLANKET = re.compile(r"#\s*(type:\s*ignore|noqa)\s*(?=$|#)")
_SOON = r"(?:(?:will|shall|to) be (?:removed|dropped)|removal)\b"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE = re.compile(
    rf"{_SOON}[^.;\d]{{0,30}}?\b(?P<month>{'|'.join(_MONTHS)})? ?(?P<date>20\d\d(?:-\d\d){{0,2}})\b",
    re.IGNORECASE,
)
_VERSION = re.compile(
    rf"{_SOON}[^.;\d]{{0,20}}?\b(?:in|with) (?P<what>[\w-]+ )??v?(?P<version>\d+\.\d+(?:\.\d+)?)\b(?!-)",
    re.IGNORECASE,
)


def check_private(project: Project) -> Iterator[Hit]:
    """Names with an underscore that belong to other packages: one finding for each file."""
    own = {source.module.partition(".")[0] for source in project.sources}
    for source in project.sources:
        found = dict(_borrowed(source, own)) if source.is_product else {}
        if found:
            names = sorted(found, key=lambda name: found[name])
            quoted = ", ".join(f"`{name}`" for name in names[:NAMED])
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            them = "it" if len(names) == 1 else "them"
            message = f"{quoted}{more}: private to others, whose next release may change or remove {them}."
            yield Hit("private-api", found[names[0]], message, file=source.name)


def _borrowed(source: Source, own: set[str]) -> Iterator[tuple[str, int]]:
    places = [*_imported(source), *_reached(source)]
    for name, node in sorted(places, key=lambda each: -each[1].lineno):
        head = name.partition(".")[0]
        strange = head not in own and head not in _OPEN and _is_private(name)
        if strange and not is_guarded(source, node) and not source.silenced(node.lineno):
            yield name, node.lineno


def _imported(source: Source) -> Iterator[tuple[str, ast.AST]]:
    for node in source.imports:
        if isinstance(node, ast.Import):
            yield from ((each.name, node) for each in node.names)
        elif not node.level:
            yield from ((f"{node.module}.{each.name}", node) for each in node.names)


def _reached(source: Source) -> Iterator[tuple[str, ast.AST]]:
    """Private attributes of what was imported; what stands in an annotation is never looked up."""
    names = aliases(source)
    given = {node.id for node in source.of(ast.Name) if isinstance(node.ctx, ast.Store)}
    given |= {node.arg for node in source.of(ast.arg)}
    annotated = {id(inner) for each in _annotations(source) for inner in ast.walk(each)}
    for node in source.of(ast.Attribute):
        head = dotted(node).partition(".")[0] if node.attr.startswith("_") else ""
        if head in names.keys() - given and id(node) not in annotated:
            yield full_name(node, names), node


def _annotations(source: Source) -> Iterator[ast.expr]:
    for node in source.of(ast.arg, ast.AnnAssign, *(ast.FunctionDef, ast.AsyncFunctionDef)):
        noted = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if noted is not None:
            yield noted


def _is_private(name: str) -> bool:
    head, *rest = name.split(".")
    private = [each for each in rest if each.startswith("_") and not each.endswith("_")]
    hidden = head.startswith("_") and (head in sys.stdlib_module_names or head == "_pytest")
    return hidden or any(each not in _DOCUMENTED for each in private)


def check_blanket(project: Project) -> Iterator[Hit]:
    """Comments that silence a checker altogether: one finding for the project."""
    found = [
        (source, line, "noqa" if "noqa" in match[1] else "type: ignore")
        for source in project.sources
        if source.is_product
        for line, comment in source.comments.items()
        if (match := _BLANKET.search(comment))
    ]
    if len(found) >= MIN_BLANKET:
        kinds = Counter(kind for _, _, kind in found)
        counted = " and ".join(f"`# {kind}` ({count})" for kind, count in sorted(kinds.items(), reverse=True))
        message = (
            f"Comments that name no code hide every mistake that is made on their line later: {counted}."
        )
        yield Hit("blanket-ignore", found[0][1], message, file=found[0][0].name)


def check_overdue(project: Project) -> Iterator[Hit]:
    """Things that were to be removed by now; what docstrings say of it is often history."""
    current = _version(project)
    for source in project.sources:
        for number, line in enumerate(source.lines, start=1) if source.is_product else ():
            due = _past_date(line) or _past_version(line, current, project.root.name)
            if due and number not in source.docstring_lines and not source.silenced(number):
                message = f"This was to be removed by {due}, and is still there."
                yield Hit("overdue-removal", number, message, file=source.name)


def _past_date(line: str) -> str:
    """The day something should have gone by, if that is past; empty otherwise."""
    match = _DATE.search(line)
    if match is None:
        return ""
    year, *rest = (int(part) for part in match["date"].split("-"))
    named = _MONTHS.index(match["month"].capitalize()) + 1 if match["month"] else 12
    month, day = (*(rest or [named]), 28)[:2]
    past = (year, month, day) < datetime.date.today().timetuple()[:3]
    return f"{match['month'] or ''} {match['date']}".strip() if past else ""


def _past_version(line: str, current: str, name: str) -> str:
    """The version something should have gone with, if this is a later one; empty otherwise."""
    match = _VERSION.search(line) if current else None
    if match is None:
        return ""
    what = (match["what"] or "").strip().lower()
    ours = what in ("", "version", "release") or name.lower().startswith(what)
    past = version_key(match["version"]) <= version_key(current)
    return f"version {match['version']} (it is {current})" if ours and past else ""


def _version(project: Project) -> str:
    """The version of the project, where it is written down plainly."""
    for name in ("PKG-INFO", "pyproject.toml"):
        match = re.search(r"^[Vv]ersion\s*[:=]\s*[\"']?(\d[\w.]*)", project.read(name) or "", re.MULTILINE)
        if match:
            return match[1]
    return ""


BORROWED_PROJECT_CHECKS = (check_private, check_blanket, check_overdue)
