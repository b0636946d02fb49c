"""Signatures and what belongs together: parameters nobody can keep apart, or nobody reads; `__eq__` alone."""

import ast
import builtins
import re
from collections.abc import Iterator

from _docstrings import is_public, reexported
from _finding import Hit, Rule
from _nodes import CHANGES, FUNCTIONS, Function, decorators, dotted, functions, is_stub, within
from _source import Project, Source

MAX_POSITIONAL = 10
MANY_ARGUMENTS = 5

SIGNATURE_RULES = {
    "many-positional": Rule("low", "Put a `*` before all but the first few, so that calls must name them."),
    "unused-parameter": Rule("low", "Remove it here and in the calls; or begin its name with `_`."),
    "eq-without-hash": Rule("low", "Add `__hash__` over the same parts, or write `__hash__ = None`."),
    "assert-on-argument": Rule("low", "Raise a TypeError or ValueError that says what is wrong."),
}
_BINDS = frozenset({"classmethod", "staticmethod"})
_PLAIN_BASE = re.compile(r"(typing\.)?(object|Generic\b.*|Protocol\b.*|ABC|abc\.ABC)$")
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setstate__"})
_CHANGING = frozenset({"__setitem__", "__delitem__", "__setattr__", "__iadd__", "__ior__"})
_CANNOT = re.compile(r"unreachable|\bbug\b|never|impossible|internal", re.IGNORECASE)


def check_positional(project: Project) -> Iterator[Hit]:
    """Functions that take so many parameters by position that two of them are easily swapped."""
    spoken = _called_by_position(project)
    for source in project.sources:
        owners = {each: owner.name for owner in source.of(ast.ClassDef) for each in owner.body}
        for function in functions(source) if source.is_product else ():
            owner = owners.get(function, "")
            called = owner if function.name == "__init__" else function.name
            count = _positions(function, method=bool(owner))
            if count <= MAX_POSITIONAL or (called.startswith("_") and called not in spoken):
                continue  # what is private and always called by name does no harm
            if not source.silenced(function.lineno):
                name = f"{owner}.{function.name}" if owner else function.name
                message = (
                    f"`{name}` takes {count} parameters by position; a call that swaps two of them is not "
                    "noticed."
                )
                yield Hit("many-positional", function.lineno, message, file=source.name)


def _positions(function: Function, *, method: bool) -> int:
    """How many parameters a caller can give by position; 0 where a decorator may be the caller."""
    names = set(decorators(function))
    if names - _BINDS or is_stub(function):
        return 0
    bound = method and "staticmethod" not in names
    return len(function.args.posonlyargs) + len(function.args.args) - bound


def _called_by_position(project: Project) -> set[str]:
    calls = [call for source in project.sources for call in source.calls]
    return {dotted(call.func).rpartition(".")[2] for call in calls if len(call.args) > MANY_ARGUMENTS}


def check_unused(project: Project) -> Iterator[Hit]:
    """Parameters that a private function never reads, where nobody else decides on its signature."""
    handed = _handed_on(project)
    for source in project.sources:
        for node in source.tree.body if source.is_product else ():
            own = isinstance(node, FUNCTIONS) and node.name.startswith("_") and node.name not in handed
            if own and not node.decorator_list and not is_stub(node) and not source.silenced(node.lineno):
                for name in _unread(node):
                    message = f"`{node.name}` takes `{name}` and never reads it; its callers believe it does."
                    yield Hit("unused-parameter", node.lineno, message, file=source.name)


def _handed_on(project: Project) -> set[str]:
    """Names that are used as values, not only called: who gets them decides what they must take."""
    found: set[str] = set()
    for source in project.sources:
        called = {id(call.func) for call in source.calls}
        for node in source.of(ast.Name, ast.Attribute, ast.alias):
            if isinstance(node, ast.alias):
                found.update([node.name] if node.asname else [])
            elif id(node) not in called:
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def _unread(function: Function) -> list[str]:
    nodes = [node for each in function.body for node in ast.walk(each)]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    if used & {"locals", "eval", "exec", "vars"}:
        return []
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return [each.arg for each in given if each.arg not in used and not each.arg.startswith("_")]


def check_equality(source: Source) -> Iterator[Hit]:
    """Classes of values that can be compared and, because of that, no longer be hashed."""
    for node in source.of(ast.ClassDef) if source.is_product else ():
        plain = all(_PLAIN_BASE.match(ast.unparse(base)) for base in node.bases)
        names = _class_names(node)
        lacks = "__eq__" in names and "__hash__" not in names
        if lacks and plain and not node.decorator_list and not node.keywords and not _changes(node):
            message = (
                f"`{node.name}` defines `__eq__` and no `__hash__`, so its objects can be neither in a set "
                "nor keys of a dictionary."
            )
            yield Hit("eq-without-hash", node.lineno, message)


def _class_names(node: ast.ClassDef) -> set[str]:
    methods = {each.name for each in node.body if isinstance(each, FUNCTIONS)}
    values = [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    stored = [each for value in values for each in ast.walk(value) if isinstance(each, ast.Name)]
    return methods | {each.id for each in stored if isinstance(each.ctx, ast.Store)}


def _changes(node: ast.ClassDef) -> bool:
    """Whether objects of a class change after they were made: then not to be hashed is right."""
    methods = [each for each in node.body if isinstance(each, FUNCTIONS)]
    return any(
        method.name in _CHANGING or (method.name not in _MAKING and any(map(_alters_self, ast.walk(method))))
        for method in methods
    )


def _alters_self(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return _of_self(node.value if isinstance(node, ast.Subscript) else node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        return _of_self(node.func.value)
    return False


def _of_self(node: ast.expr) -> bool:
    return dotted(node).startswith("self.")


def check_asserts(project: Project) -> Iterator[Hit]:
    """Public functions that check what they are given with `assert`."""
    handed_on = reexported(project)
    for source in project.sources:
        offered = handed_on.get(source.module, set())
        for function in _offered(source, offered):
            checks = [node for node in within(function) if _checks_argument(node, function)]
            if checks and not source.silenced(checks[0].lineno):
                yield _on_argument(source, function, sorted(checks, key=lambda each: each.lineno))


def _offered(source: Source, offered: set[str]) -> Iterator[Function]:
    """The functions, and methods of the classes, that others may call."""
    everything = is_public(source)
    for node in source.tree.body if source.is_product and not source.is_side else ():
        named = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_")
        if named and (everything or node.name in offered):
            inner = node.body if isinstance(node, ast.ClassDef) else [node]
            yield from (each for each in inner if isinstance(each, FUNCTIONS) and _callable(each.name))


def _callable(name: str) -> bool:
    return name in ("__init__", "__call__") or not name.startswith("_")


def _checks_argument(node: ast.AST, function: Function) -> bool:
    """Whether an assertion speaks of a parameter as it was given; types are narrowed for a checker."""
    if not isinstance(node, ast.Assert) or isinstance(node.test, ast.Call | ast.Constant):
        return False
    if node.msg is not None and _CANNOT.search(ast.unparse(node.msg)):
        return False
    return bool(_given(node.test, function))


def _given(test: ast.expr, function: Function) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = {each.arg for each in named} - {"self", "cls"}
    inner = list(within(function))
    stored = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    stored |= {node.name for node in inner if isinstance(node, FUNCTIONS)}
    used = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    if stored & used or any(
        each.islower() and each not in names and each not in dir(builtins) for each in used
    ):
        return []  # it speaks of more than what was given
    return [each.id for each in _sides(test) if isinstance(each, ast.Name) and each.id in names]


def _sides(test: ast.expr) -> Iterator[ast.AST]:
    """What a condition compares and joins; a part of something is not the thing itself."""
    yield test
    if isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        for each in ast.iter_child_nodes(test):
            yield from _sides(each) if isinstance(each, ast.expr) else ()


def _on_argument(source: Source, function: Function, checks: list[ast.Assert]) -> Hit:
    names = list(dict.fromkeys(name for each in checks for name in _given(each.test, function)))
    quoted = ", ".join(f"`{name}`" for name in names)
    message = f"`{function.name}` checks {quoted} with `assert`, which `python -O` leaves out"
    mute = not any(each.msg for each in checks)
    message += "; and the caller is not told what is wrong." if mute else "."
    return Hit("assert-on-argument", checks[0].lineno, message, file=source.name)


SIGNATURE_CHECKS = (check_equality,)
SIGNATURE_PROJECT_CHECKS = (check_positional, check_unused, check_asserts)
