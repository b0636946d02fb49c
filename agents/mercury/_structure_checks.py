"""What no tool sees of the structure: circles, copies, and code that cannot run."""

import ast
import builtins
import re
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent

from _finding import Hit
from _nodes import FUNCTIONS, dotted
from _project import Project, Source
from _tools import Tools

MAX_FILE_LINES = 1_000
MIN_STATEMENTS = 6
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OWNERS = (*FUNCTIONS, ast.If, ast.For, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler)
_BEHIND_LEAVING = re.compile(
    r"^([ \t]+)(?:return|raise|break|continue)\b[^\n]*\n(?:[ \t]*(?:#[^\n]*)?\n)*\1"
    r"(?![ \t)\]}]|else|elif|except|finally)",
    re.MULTILINE,
)
_BROAD_FIRST = re.compile(
    r"^([ \t]*)except \(?[^\n]*\b(?:Base)?(?:Exception|OSError|LookupError|ValueError)\b[^\n]*:[^\n]*\n"
    r"(?:\1[ \t][^\n]*\n|\n)*\1except ",
    re.MULTILINE,
)
_SAME_BRANCHES = re.compile(
    r"^([ \t]*)(?:el)?if [^\n]*:\n((?:\1[ \t][^\n]*\n){1,30}?)\1else:\n\2(?!\1[ \t])", re.MULTILINE
)
_PROSE = re.compile(r"^[ \t]*[rbu]?(\"\"\"|\'\'\')(?s:.*?)\1[ \t]*$|^[ \t]*#.*$", re.MULTILINE)
_DEFINITION = re.compile(r"^([ \t]*)(?:async )?def (\w+)", re.MULTILINE)
_PREFIX = re.compile(r"[\"'](_[A-Za-z]\w*_)(?:[\"'%{])")
_PRIVATE = re.compile(
    r"^[ \t]*(?:async[ ]+def|def|class)[ ]+(_[A-Za-z]\w*)"
    r"|^(_[A-Za-z]\w*)(?:[ ]*:[^=\n]+)?[ ]*=[ ]*(?![\w.]+[ ]*$)",
    re.MULTILINE,
)


def check_files(project: Project, _: Tools) -> Iterator[Hit]:
    """Files that cannot be read, and files nobody reads to the end."""
    for source in project.sources.values():
        if source.problem:
            rule = "unreadable-file" if "read:" in source.problem else "wrong-encoding"
            yield Hit(rule, source.name, 0, f"Python cannot use this file: {source.problem}.")
        elif source.is_product and len(source.lines) > MAX_FILE_LINES and _is_long_file(source):
            message = (
                f"The file has more than {MAX_FILE_LINES:,} lines of code; that is a lot to keep in mind."
            )
            yield Hit("long-file", source.name, 1, message)


def _is_long_file(source: Source) -> bool:
    """Whether enough lines are neither blank nor prose; only where that is close is the file parsed."""
    if sum(bool(line.strip()) for line in _PROSE.sub("", source.text).splitlines()) > MAX_FILE_LINES:
        return True
    code = {at for at, line in enumerate(source.lines, start=1) if line.strip() and line.lstrip()[0] != "#"}
    if len(code) <= MAX_FILE_LINES:
        return False
    texts = [node.value for node in source.of(ast.Expr) if isinstance(node.value, ast.Constant)]
    return len(code.difference(*(range(text.lineno, text.end_lineno + 1) for text in texts))) > MAX_FILE_LINES


def check_flow(project: Project, _: Tools) -> Iterator[Hit]:
    """Code that cannot run, and conditions that decide nothing. Only what looks like it is parsed."""
    for source in project.product:
        for line, _match in source.matches(_SAME_BRANCHES):
            message = "Both branches of this `if` are the same, so its condition decides nothing."
            yield Hit("identical-branches", source.name, line, message, end=line + 3)
        for owner in source.of(*_OWNERS) if _BEHIND_LEAVING.search(source.text) else ():
            blocks = [getattr(owner, name, ()) for name in ("body", "orelse", "finalbody")]
            for before, after in (pair for block in blocks for pair in pairwise(block)):
                if isinstance(before, _LEAVES) and "yield" not in ast.unparse(
                    after
                ):  # which makes a generator
                    message = f"This never runs: line {before.lineno} leaves the block."
                    yield Hit("unreachable-code", source.name, after.lineno, message, end=after.end_lineno)
        for node in source.of(ast.Try) if _BROAD_FIRST.search(source.text) else ():
            yield from _late_handlers(source, node)


def _late_handlers(source: Source, node: ast.Try) -> Iterator[Hit]:
    earlier: list[type[BaseException]] = []
    for handler in node.handlers:
        named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        kinds = [
            kind for each in named if isinstance(kind := getattr(builtins, dotted(each) or "-", None), type)
        ]
        for kind in kinds:
            broader = next((each for each in earlier if issubclass(kind, each)), None)
            if broader:
                message = f"`{kind.__name__}` never arrives: `except {broader.__name__}` stands before."
                yield Hit("unreachable-except", source.name, handler.lineno, message)
        earlier += kinds


def check_awaits(project: Project, _: Tools) -> Iterator[Hit]:
    """Calls of a file's own async functions, as statements, that are not awaited."""
    for source in project.product:
        found = source.matches(_DEFINITION) if "async def" in source.text else ()
        lines = {match[2]: line for line, match in found if "async " in match[0]}
        plain = set(re.findall(r"^\s*def (\w+)", source.text, re.MULTILINE)) if lines else set()
        names = "|".join(name for name in lines if name not in plain and _is_coroutine(source, lines[name]))
        bare = re.compile(rf"^[ \t]+((?:self\.)?(?:{names}))\(.*\)\s*(?:#.*)?$", re.MULTILINE)
        for line, match in source.matches(bare) if names else ():
            if not source.line(line - 1).rstrip().endswith(("(", ",", "[", "{", "=", "\\")):
                message = f"`{match[1]}` is async: without `await` this call does nothing at all."
                yield Hit("missing-await", source.name, line, message)


def _is_coroutine(source: Source, line: int) -> bool:
    """Neither a generator, nor something else that a decorator makes of it, nor local to a function."""
    outer = [text for _, text in source.heads(line)]
    decorated = source.line(line - 1).lstrip().startswith("@")
    return not decorated and "yield" not in source.block(line) and not any("def " in text for text in outer)


def check_duplicates(project: Project, _: Tools) -> Iterator[Hit]:
    """Functions that are word for word the same, but not in a file made from its async twin."""
    seen: dict[str, tuple[Source, int, str]] = {}
    for source in project.product:
        end = 0
        for line, match in source.matches(_DEFINITION):
            block = source.block(line) if line > end else ""  # what stands in a function goes with it
            end = max(end, line + block.count("\n")) if match[1] == "" else end
            body = _body_of(block)
            if body.partition(":\n")[2].count("\n") + 1 < MIN_STATEMENTS or "@overload" in source.line(
                line - 1
            ):
                continue
            other, first, name = seen.setdefault(body, (source, line, match[2]))
            twins = other.name.replace("async", "sync") == source.name.replace("async", "sync")
            if (other, first) != (source, line) and (other is source or not twins) and _is_long(block):
                message = f"`{match[2]}` is word for word `{name}` of {other.name}:{first}."
                yield Hit("duplicated-function", source.name, line, message)


def _is_long(block: str) -> bool:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(dedent(block)))) > MIN_STATEMENTS


def _body_of(block: str) -> str:
    """What a function does, without its name, its docstring and comments, and where it stands."""
    bare = _PROSE.sub("", re.sub(r"^\s*(async )?def \w+", "", block))
    return "\n".join(line.strip() for line in bare.splitlines() if line.strip())


def check_private(project: Project, _: Tools) -> Iterator[Hit]:
    """Private functions, methods, classes and values of the product that nothing names a second time."""
    made = tuple({prefix for source in project.sources.values() for prefix in _PREFIX.findall(source.text)})
    for source in project.product:
        for line, match in source.matches(_PRIVATE):
            name = match[1] or match[2]
            decorated = source.line(line - 1).lstrip().startswith("@")
            if project.private_names[name] == 1 and not decorated and not name.startswith(("__", *made)):
                yield Hit("unused-private", source.name, line, f"`{name}` is private and nothing uses it.")


def check_cycles(project: Project, tools: Tools) -> Iterator[Hit]:
    """Modules that import one another while they are being imported: one finding for each circle."""
    names = {each.name for each in project.product}
    graph = {
        name: [each for each in following if each in names - {name} and _import_line(project, name, each)]
        for name, following in tools.imports().items()
        if name in names
    }
    told: set[str] = set()
    for start in sorted(graph):
        circle = _shortest_circle(graph, start) if start not in told else []
        if circle and not told & set(circle):
            told.update(circle)
            way = " → ".join(project.sources[name].module for name in (*circle, start))
            message = f"Modules import one another in a circle: {way}. It works or not by which comes first."
            yield Hit("import-cycle", start, _import_line(project, start, (*circle, start)[1]), message)


def _import_line(project: Project, name: str, target: str) -> int:
    """The line on which a file imports another at its top level; 0 where it does so only later."""
    stem = project.sources[target].module.rpartition(".")[2]
    pattern = re.compile(rf"^(?:import|from)\s[^\n(]*(?:\([^)]*)?(?<!\w){stem}\b", re.MULTILINE)
    return next((line for line, _ in project.sources[name].matches(pattern)), 0)


def _shortest_circle(graph: dict[str, list[str]], start: str) -> list[str]:
    """A shortest way from a module back to itself; empty if there is none."""
    ways, seen = [[start]], {start}
    while ways:
        following: list[list[str]] = []
        for way in ways:
            if start in graph.get(way[-1], ()):
                return way
            fresh = [each for each in graph.get(way[-1], ()) if each not in seen]
            seen.update(fresh)
            following += [[*way, each] for each in fresh]
        ways = following
    return []


STRUCTURE_CHECKS = (
    check_files,
    check_flow,
    check_awaits,
    check_duplicates,
    check_private,
    check_cycles,
)
