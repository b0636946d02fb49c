"""Mistakes in single statements that Python accepts in silence."""

import ast
from collections import Counter
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import CHANGES, FUNCTIONS, Function, decorators, dotted, functions, is_constant, within
from _source import Source

MISTAKE_RULES = {
    "mutable-default": Rule("medium", "Default to None and make the value inside the function."),
    "shadowed-builtin": Rule("low", "Choose another name."),
    "is-literal": Rule("high", "Compare with `==`."),
    "duplicate-key": Rule("medium", "Remove one of the two."),
    "redefined-function": Rule("medium", "Remove the one that is never used, or give it a name of its own."),
    "strip-characters": Rule("medium", "Use removeprefix or removesuffix."),
    "pointless-comparison": Rule("medium", "Assign, return or assert it; or remove it."),
    "unclosed-file": Rule("low", "Open it in a `with` statement, or use Path.read_text and its like."),
    "assert-tuple": Rule("high", "Remove the parentheses: `assert condition, message`."),
}
_MAKERS = frozenset({"list", "dict", "set", "bytearray", "collections.defaultdict", "collections.deque"})
_BUILTINS = frozenset(
    [
        "list",
        "dict",
        "set",
        "str",
        "int",
        "float",
        "tuple",
        "bytes",
        "bool",
        "object",
        "type",
        "id",
        "len",
        "max",
        "min",
        "sum",
        "all",
        "any",
        "map",
        "filter",
        "zip",
        "range",
        "sorted",
        "iter",
        "next",
        "open",
        "print",
        "input",
        "hash",
        "format",
        "vars",
        "dir",
    ]
)


def check_defaults(source: Source) -> Iterator[Hit]:
    """Defaults that all calls share, where the function changes them or lets them out."""
    for function in functions(source):
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args]
        pairs = list(zip(reversed(named), reversed(arguments.defaults), strict=False))
        pairs += [
            (arg, default)
            for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default
        ]
        for arg, default in pairs:
            if _mutable(default) and _altered(function, arg.arg):
                message = (
                    f"The default of `{arg.arg}` is made once and shared by all calls, and "
                    f"`{function.name}` changes it or lets it out."
                )
                yield Hit("mutable-default", default.lineno, message)


def _mutable(node: ast.expr) -> bool:
    literal = isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
    return literal or (isinstance(node, ast.Call) and dotted(node.func) in _MAKERS)


def _altered(function: Function, name: str) -> bool:
    """Whether a function changes a parameter's value, keeps it or gives it back."""
    for node in within(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in CHANGES and dotted(node.func.value) == name:
                return True
        elif (isinstance(node, ast.Return) and dotted(node.value) == name) or (
            isinstance(node, ast.Assign | ast.AugAssign | ast.Delete) and _stores(node, name)
        ):
            return True
    return False


def _stores(node: ast.Assign | ast.AugAssign | ast.Delete, name: str) -> bool:
    goals = [node.target] if isinstance(node, ast.AugAssign) else node.targets
    into = any(isinstance(goal, ast.Subscript) and dotted(goal.value) == name for goal in goals)
    grown = isinstance(node, ast.AugAssign) and dotted(node.target) == name
    kept = isinstance(node, ast.Assign) and dotted(node.value) == name
    return into or grown or (kept and any(isinstance(goal, ast.Attribute) for goal in goals))


def check_shadowing(source: Source) -> Iterator[Hit]:
    """A builtin's name given to something else, in a scope that also calls it."""
    for scope in [source.tree, *functions(source)]:
        inner = list(within(scope))
        called = {dotted(node.func) for node in inner if isinstance(node, ast.Call)}
        stored = [node for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        for node in sorted(stored, key=lambda each: each.lineno):
            if node.id in _BUILTINS & called:
                message = f"`{node.id}` is given a new meaning in a scope that also calls it as the builtin."
                yield Hit("shadowed-builtin", node.lineno, message)
                called.discard(node.id)


def check_comparisons(source: Source) -> Iterator[Hit]:
    """Identity of literals, comparisons whose result is thrown away, and assertions that are tuples."""
    for node in source.of(ast.Compare, ast.Expr, ast.Assert):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            yield from _identity(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare) and source.is_product:
            message = "The result of this comparison is thrown away, so the line does nothing."
            yield Hit("pointless-comparison", node.lineno, message)
        elif (
            isinstance(node, ast.Assert)
            and isinstance(node.test, ast.Tuple)
            and not source.is_test
            and node.test.elts
        ):
            yield Hit(
                "assert-tuple",
                node.lineno,
                "`assert` on a tuple never fails: a tuple with something in it is true.",
            )


def _identity(node: ast.Compare) -> Iterator[Hit]:
    for side in (node.left, *node.comparators):
        if (
            is_constant(side)
            and isinstance(side.value, str | int | float | bytes)
            and not isinstance(side.value, bool)
        ):
            value = ast.unparse(side)
            message = (
                f"`is {value}` asks whether it is the same object, which differs between Pythons and runs."
            )
            yield Hit("is-literal", node.lineno, message)


def check_keys(source: Source) -> Iterator[Hit]:
    """A dictionary with one key twice: the first value is lost."""
    for node in source.of(ast.Dict):
        if isinstance(node, ast.Dict):
            keys = [key for key in node.keys if isinstance(key, ast.Constant)]
            counts = Counter(key.value for key in keys)
            for key in reversed(keys):
                if counts[key.value] > 1:
                    counts[key.value] = 0
                    message = (
                        f"The key `{key.value!r}` stands twice in this dictionary; only the last one counts."
                    )
                    yield Hit("duplicate-key", key.lineno, message)


def check_redefinitions(source: Source) -> Iterator[Hit]:
    """Two functions of one name in one block, the first of which nobody can reach."""
    for node in source.of(ast.Module, ast.ClassDef):
        if isinstance(node, ast.Module | ast.ClassDef) and not source.is_test:
            last: dict[str, Function] = {}
            for each in node.body:
                if isinstance(each, FUNCTIONS):
                    earlier = last.get(each.name)
                    if earlier and not _linked(earlier, each) and not _used_between(node.body, earlier, each):
                        message = (
                            f"`{each.name}` was defined on line {earlier.lineno} already; that one is "
                            "never used."
                        )
                        yield Hit("redefined-function", each.lineno, message)
                    last[each.name] = each


def _linked(earlier: Function, later: Function) -> bool:
    """Whether decorators bind the two together, as for properties, overloads and registrations."""
    return bool(decorators(earlier)) or any(name.startswith(f"{later.name}.") for name in decorators(later))


def _used_between(body: list[ast.stmt], earlier: Function, later: Function) -> bool:
    between = body[body.index(earlier) + 1 : body.index(later) + 1]
    return any(
        isinstance(node, ast.Name) and node.id == later.name for each in between for node in ast.walk(each)
    )


def check_calls(source: Source) -> Iterator[Hit]:
    """Calls that do not do what they seem to."""
    for node in source.calls:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in ("strip", "lstrip", "rstrip") and len(node.args) == 1:
            yield from _strip(node, node.func.attr)
        opened = node.func.value
        opens = isinstance(opened, ast.Call) and dotted(opened.func) in ("open", "io.open")
        if opens and node.func.attr.startswith(("read", "write")) and not source.is_test:
            message = (
                f"The file opened for `.{node.func.attr}()` is never closed; some systems keep it locked, "
                "and Python warns."
            )
            yield Hit("unclosed-file", node.lineno, message)


def _strip(node: ast.Call, method: str) -> Iterator[Hit]:
    value = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    if (
        isinstance(value, str)
        and len(value) > 2
        and len(set(value)) < len(value)
        and any(each.isalnum() for each in value)
    ):
        message = f"`{method}({value!r})` removes any of these characters, not this text."
        yield Hit("strip-characters", node.lineno, message)


MISTAKE_CHECKS = (
    check_defaults,
    check_shadowing,
    check_comparisons,
    check_keys,
    check_redefinitions,
    check_calls,
)
