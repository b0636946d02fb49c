"""What documentation leaves out: exceptions of a function that lists others, names no page mentions."""

import ast
import builtins
import re
from collections.abc import Iterator

from _docstrings import documented, is_public
from _finding import Hit, Rule
from _nodes import FUNCTIONS, Function, dotted, within
from _source import Project, Source
from _walk import all_files

MIN_NAMES = 10
MIN_SHARE = 0.8  # of the exported names: below that the pages do not claim to list them
MAX_PAGES = 300
NAMED = 5

COVERAGE_RULES = {
    "undocumented-exception": Rule("low", "Add it to what the docstring says is raised, and when."),
    "undocumented-export": Rule("low", "Add it to the reference; or take it out of `__all__`."),
}
_RAISES = re.compile(r"^\s*:(?:raises?|exception)\s|^Raises(?::[ \t]*$|\n-{4,})", re.MULTILINE)
_PAGES = frozenset({".rst", ".md", ".markdown", ".txt"})
_WHOLE_MODULE = re.compile(r"(?:automodule::|^:::)\s*([\w.]+)", re.MULTILINE)
_OWN_WAY = frozenset(
    [
        "NotImplementedError",
        "AssertionError",
        "TypeError",
        "StopIteration",
        "StopAsyncIteration",
        "SystemExit",
    ]
)


def check_exceptions(project: Project) -> Iterator[Hit]:
    """Exceptions that a function raises itself and its docstring, which lists others, does not name."""
    bases = _bases(project)
    for source in project.sources:
        for node, text in documented(source) if source.is_product else ():
            public = isinstance(node, FUNCTIONS) and not node.name.startswith("_")
            if public and _RAISES.search(text) and not source.silenced(node.lineno):
                yield from _unnamed(source, node, text, bases)


def _bases(project: Project) -> dict[str, list[str]]:
    """The bases of every class of the project, by name."""
    classes = [node for source in project.sources for node in source.of(ast.ClassDef)]
    return {node.name: [dotted(base).rpartition(".")[2] for base in node.bases] for node in classes}


def _unnamed(source: Source, function: Function, text: str, bases: dict[str, list[str]]) -> Iterator[Hit]:
    caught = _caught_inside(function)
    renamed = {each.asname: each.name for each in source.of(ast.alias) if each.asname}
    said: set[str] = set()
    raising = [node for node in within(function) if isinstance(node, ast.Raise) and id(node) not in caught]
    for node in sorted(raising, key=lambda each: each.lineno):
        name = dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc).rpartition(".")[2]
        meant = renamed.get(name, name)
        known = [name, meant, *_ancestors(meant, bases)]
        if not name[:1].isupper() or name in said or any(re.search(rf"\b{each}\b", text) for each in known):
            continue
        if name not in _OWN_WAY and _is_exception(known):
            said.add(name)
            message = f"The docstring of `{function.name}` lists what it raises and leaves out `{name}`."
            yield Hit("undocumented-exception", node.lineno, message, file=source.name)


def _ancestors(name: str, bases: dict[str, list[str]]) -> list[str]:
    """The names of all classes above one: whoever names one of them has named this one too."""
    found: list[str] = []
    waiting = _above(name, bases)
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.append(current)
            waiting += _above(current, bases)
    return found


def _above(name: str, bases: dict[str, list[str]]) -> list[str]:
    if name in bases:
        return [each for each in bases[name] if each]
    kind = getattr(builtins, name, None)
    return [each.__name__ for each in kind.__mro__[1:-1]] if isinstance(kind, type) else []


def _is_exception(names: list[str]) -> bool:
    return any(each.endswith(("Error", "Exception", "Warning")) or _builtin(each) for each in names)


def _builtin(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _caught_inside(function: Function) -> set[int]:
    """What is raised in a `try` that may take it itself, because a handler does not raise again."""
    found: set[int] = set()
    for node in within(function):
        if isinstance(node, ast.Try) and not all(map(_raises_again, node.handlers)):
            found.update(id(each) for statement in node.body for each in ast.walk(statement))
    return found


def _raises_again(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for node in within(handler))


def check_exports(project: Project) -> Iterator[Hit]:
    """Exported names that no page mentions, in a project whose pages mention almost all of them."""
    text = "\n".join(_pages(project))
    whole = set(_WHOLE_MODULE.findall(text))
    words = set(re.findall(r"\w+", text))
    listed = [(source, name, line) for source in project.sources for name, line in _listed(source, whole)]
    missing = [each for each in listed if each[1] not in words]
    if len(listed) < MIN_NAMES or len(missing) > (1 - MIN_SHARE) * len(listed):
        return
    seen: set[str] = set()
    for source in project.sources:
        left = [(name, line) for other, name, line in missing if other is source and name not in seen]
        seen.update(name for name, _ in left)
        if left:
            yield _unmentioned(source, left)


def _listed(source: Source, whole: set[str]) -> Iterator[tuple[str, int]]:
    """The names in `__all__` of a public module, with their lines, unless a page shows the module whole."""
    if not is_public(source) or source.module in whole:
        return
    for node in source.tree.body:
        named = isinstance(node, ast.Assign) and "__all__" in map(dotted, node.targets)
        for each in getattr(node.value, "elts", ()) if named else ():
            if isinstance(each, ast.Constant) and not str(each.value).startswith("_"):
                yield str(each.value), each.lineno


def _pages(project: Project) -> Iterator[str]:
    folders = [project.root / name for name in ("docs", "doc") if (project.root / name).is_dir()]
    paths = [path for folder in folders for path in all_files(folder) if path.suffix in _PAGES]
    for path in paths[:MAX_PAGES]:
        yield project.read(path.relative_to(project.root).as_posix()) or ""


def _unmentioned(source: Source, left: list[tuple[str, int]]) -> Hit:
    names = ", ".join(f"`{name}`" for name, _ in left[:NAMED])
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    verb, them = ("is", "it") if len(left) == 1 else ("are", "them")
    message = f"{names}{more} {verb} offered in `__all__`, and no page of the documentation mentions {them}."
    return Hit("undocumented-export", left[0][1], message, file=source.name)


COVERAGE_CHECKS = (check_exceptions, check_exports)
