"""What no tool sees of the structure: circles, copies, code that cannot run, and what is overdue."""

import ast
import builtins
import datetime
import re
from collections.abc import Iterator
from itertools import pairwise

from _finding import Hit
from _nodes import FUNCTIONS, Function, decorators, dotted, last_line, statements, within, without_docstring
from _project import Project, Source
from _tools import Tools

MAX_FILE_LINES = 1_000
MIN_DUPLICATE_STATEMENTS = 6
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OWNERS = (*FUNCTIONS, ast.If, ast.For, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler)
_BLOCKS = ("body", "orelse", "finalbody")
_PREFIX = re.compile(r"[\"'](_[A-Za-z]\w*_)(?:[\"'%{])")
_DEFINED = re.compile(r"^[ \t]*(?:async[ ]+def|def|class)[ ]+(_[A-Za-z]\w*)", re.MULTILINE)
_GIVEN = re.compile(r"^(_[A-Za-z]\w*)(?:[ ]*:[^=\n]+)?[ ]*=[ ]*(?![\w.]+[ ]*$)", re.MULTILINE)
_MONTHS = "January February March April May June July August September October November December".split()
_WORDS = r"(?:(?:will|shall|to) be (?:removed|dropped)|removal)\b"
_SOON = re.compile(_WORDS, re.IGNORECASE)
_DATE = re.compile(
    rf"{_WORDS}[^.;\d]{{0,30}}?\b(?P<month>{'|'.join(_MONTHS)})? ?(?P<date>20\d\d(?:-\d\d){{0,2}})\b",
    re.IGNORECASE,
)
_VERSION = re.compile(
    rf"{_WORDS}[^.;\d]{{0,20}}?\b(?:in|with) (?P<what>[\w-]+ )??v?(?P<version>\d+\.\d+(?:\.\d+)?)\b(?!-)",
    re.IGNORECASE,
)


def check_files(project: Project, _: Tools) -> Iterator[Hit]:
    """Files that cannot be read, and files nobody reads to the end."""
    for source in project.sources.values():
        if source.problem:
            rule = "unreadable-file" if "read:" in source.problem else "wrong-encoding"
            yield Hit(rule, source.name, 0, f"Python cannot use this file: {source.problem}.")
        elif source.is_product and len(source.lines) > MAX_FILE_LINES:
            count = _code_lines(source)
            if count > MAX_FILE_LINES:
                message = (
                    f"The file has {count:,} lines of code; {MAX_FILE_LINES:,} is a lot to keep in mind."
                )
                yield Hit("long-file", source.name, 1, message)


def _code_lines(source: Source) -> int:
    """How many lines are neither blank nor only a comment or a docstring."""
    texts = [node.value for node in source.of(ast.Expr) if isinstance(node.value, ast.Constant)]
    prose = {line for text in texts for line in range(text.lineno, last_line(text) + 1)}
    numbered = enumerate(source.lines, start=1)
    return sum(bool(line.strip()) and line.lstrip()[0] != "#" and at not in prose for at, line in numbered)


def check_flow(project: Project, _: Tools) -> Iterator[Hit]:
    """Code that cannot run, and conditions that decide nothing."""
    for source in project.product:
        for owner in source.of(*_OWNERS):
            yield from _unreachable(source, owner)
            if isinstance(owner, ast.Try):
                yield from _late_handlers(source, owner)
            if isinstance(owner, ast.If) and owner.orelse and _same(owner.body, owner.orelse):
                message = "Both branches of this `if` are the same, so its condition decides nothing."
                yield Hit("identical-branches", source.name, owner.lineno, message, end=last_line(owner))


def _unreachable(source: Source, owner: ast.AST) -> Iterator[Hit]:
    for block in (getattr(owner, name, ()) for name in _BLOCKS):
        for before, after in pairwise(block):
            if isinstance(before, _LEAVES) and "yield" not in ast.unparse(after):  # which makes a generator
                word = type(before).__name__.lower()
                message = f"This never runs: the `{word}` on line {before.lineno} leaves the block."
                yield Hit("unreachable-code", source.name, after.lineno, message, end=last_line(after))
                break


def _late_handlers(source: Source, node: ast.Try) -> Iterator[Hit]:
    earlier: list[type[BaseException]] = []
    for handler in node.handlers:
        named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        kinds = [kind for each in named if (kind := _exception(dotted(each)))]
        for kind in kinds:
            broader = next((each for each in earlier if issubclass(kind, each)), None)
            if broader:
                message = f"`except {kind.__name__}` never gets anything: `except {broader.__name__}` stands before it."
                yield Hit("unreachable-except", source.name, handler.lineno, message)
        earlier += kinds


def _exception(name: str) -> type[BaseException] | None:
    kind = getattr(builtins, name, None) if name else None
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


def _same(left: list[ast.stmt], right: list[ast.stmt]) -> bool:
    return len(left) == len(right) and [ast.dump(each) for each in left] == [ast.dump(each) for each in right]


def check_awaits(project: Project, _: Tools) -> Iterator[Hit]:
    """Calls of a file's own async functions, as statements, that are not awaited."""
    for source in project.product:
        for owner in [source.tree, *source.of(ast.ClassDef)] if "async def" in source.text else ():
            prefix = "self." if isinstance(owner, ast.ClassDef) else ""
            own = [node for node in owner.body if isinstance(node, FUNCTIONS)]
            plain = {node.name for node in own if isinstance(node, ast.FunctionDef)}
            names = {prefix + node.name for node in own if _is_coroutine(node) and node.name not in plain}
            for scope in own if prefix else source.functions if names else ():
                yield from _unawaited(source, scope, names)


def _is_coroutine(node: Function) -> bool:
    generates = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in within(node))
    return isinstance(node, ast.AsyncFunctionDef) and not node.decorator_list and not generates


def _unawaited(source: Source, scope: Function, names: set[str]) -> Iterator[Hit]:
    local = {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}
    local |= {node.name for node in within(scope) if isinstance(node, FUNCTIONS)}
    for node in within(scope):
        call = node.value if isinstance(node, ast.Expr) else None
        name = dotted(call.func) if isinstance(call, ast.Call) else ""
        if name in names and name not in local:
            message = f"`{name}` is async: without `await` this call does nothing at all."
            yield Hit("missing-await", source.name, node.lineno, message)


def check_duplicates(project: Project, _: Tools) -> Iterator[Hit]:
    """Functions that are word for word the same."""
    seen: dict[str, tuple[Source, Function]] = {}
    for source in project.product:
        for function in source.functions:
            key = _body_key(function)
            other, first = seen.setdefault(key, (source, function)) if key else (source, function)
            if first is not function and not _belong_together(other, first, source, function):
                message = (
                    f"`{function.name}` is word for word `{first.name}` of {other.name}:{first.lineno}; a mend of "
                    "one misses the other."
                )
                yield Hit("duplicated-function", source.name, function.lineno, message)


def _belong_together(other: Source, first: Function, source: Source, function: Function) -> bool:
    """Whether two functions are one inside the other, or one file is made from its async twin by a tool."""
    twins = other.name.replace("async", "sync") == source.name.replace("async", "sync")
    return first.lineno <= function.lineno <= last_line(first) if other is source else twins


def _body_key(function: Function) -> str:
    """What a function does, without its name and docstring; empty where it is too short to matter."""
    body = without_docstring(function.body)
    if (
        last_line(function) - function.lineno < MIN_DUPLICATE_STATEMENTS
        or statements(body) < MIN_DUPLICATE_STATEMENTS
    ):
        return ""
    return (
        ""
        if "overload" in "".join(decorators(function))
        else ast.dump(ast.Module([function.args, *body], []))
    )


def check_private(project: Project, _: Tools) -> Iterator[Hit]:
    """Private functions, methods, classes and values of the product that nothing names a second time."""
    made = tuple({prefix for source in project.sources.values() for prefix in _PREFIX.findall(source.text)})
    for source in project.product:
        for line, match in (*source.matches(_DEFINED), *source.matches(_GIVEN)):
            decorated = source.line(line - 1).lstrip().startswith("@")
            if project.words[match[1]] == 1 and not decorated and not match[1].startswith(("__", *made)):
                message = f"`{match[1]}` is private and nothing in the project uses it."
                yield Hit("unused-private", source.name, line, message)


def check_overdue(project: Project, _: Tools) -> Iterator[Hit]:
    """Things that were to be removed by now; what docstrings say of it is often history."""
    manifests = project.read("PKG-INFO") + project.read("pyproject.toml")
    version = re.search(r"^[Vv]ersion\s*[:=]\s*[\"']?(\d[\w.]*)", manifests, re.MULTILINE)
    for source in project.product:
        for number, _match in source.matches(_SOON):
            line = source.line(number)
            due = _past_date(line) or _past_version(line, version[1] if version else "", project.root.name)
            if due and not _in_docstring(source, number):
                message = f"This was to be removed by {due}, and is still there."
                yield Hit("overdue-removal", source.name, number, message)


def _in_docstring(source: Source, line: int) -> bool:
    texts = [node.value for node in source.of(ast.Expr) if isinstance(node.value, ast.Constant)]
    return any(text.lineno <= line <= last_line(text) for text in texts)


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
    return (
        f"version {match['version']} (it is {current})"
        if ours and _key(match["version"]) <= _key(current)
        else ""
    )


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


# Circles of imports.


def check_cycles(project: Project, tools: Tools) -> Iterator[Hit]:
    """Modules that import one another while they are being imported: one finding for each circle."""
    names = {each.name for each in project.product}
    graph = {
        name: {
            target for target in following & names if target != name and _import_line(project, name, target)
        }
        for name, following in tools.imports().items()
        if name in names
    }
    told: set[str] = set()
    for start in sorted(graph):
        circle = _shortest_circle(graph, start)
        if circle and not told & set(circle):
            told.update(circle)
            modules = [project.sources[name].module for name in (*circle, start)]
            way = " → ".join(modules)
            message = (
                f"Modules import one another in a circle: {way}. Which comes first decides whether it works."
            )
            yield Hit("import-cycle", start, _import_line(project, start, (*circle, start)[1]), message)


def _import_line(project: Project, name: str, target: str) -> int:
    """The line on which a file imports another at its top level; 0 where it does so only later."""
    stem = project.sources[target].module.rpartition(".")[2]
    pattern = re.compile(rf"^(?:import|from)\s[^\n(]*(?:\([^)]*)?(?<!\w){stem}\b", re.MULTILINE)
    return next((line for line, _ in project.sources[name].matches(pattern)), 0)


def _shortest_circle(graph: dict[str, set[str]], start: str) -> list[str]:
    """A shortest way from a module back to itself; empty if there is none."""
    ways, seen = [[start]], {start}
    while ways:
        following: list[list[str]] = []
        for way in ways:
            for target in sorted(graph.get(way[-1], ())):
                if target == start:
                    return way
                if target not in seen:
                    seen.add(target)
                    following.append([*way, target])
        ways = following
    return []


STRUCTURE_CHECKS = (
    check_files,
    check_flow,
    check_awaits,
    check_duplicates,
    check_private,
    check_overdue,
    check_cycles,
)
