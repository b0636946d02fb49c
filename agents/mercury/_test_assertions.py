"""Assertions: tests that assert nothing, and assertions that cannot fail or never run."""

import ast
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import Function, dotted, is_constant, is_stub, keyword, last_line, within, without_docstring
from _source import Source
from _test_cases import asserts, calls_any, helpers_that_assert, test_functions

ASSERTION_RULES = {
    "test-without-assertion": Rule("medium", "Assert what the value should be, or remove the test."),
    "assertion-cannot-fail": Rule("high", "Assert something that can be false."),
    "comparison-not-asserted": Rule("high", "Write `assert` before it."),
    "assertion-not-called": Rule("high", "Add the parentheses, and the arguments that are expected."),
    "unreached-assertion": Rule("high", "Move it behind the `with` block."),
    "swallowed-assertion": Rule(
        "high", "Let the assertion's failure through: catch only what the test is about."
    ),
    "assertion-in-except": Rule("medium", "Use `with pytest.raises(…) as caught` and assert behind it."),
    "broad-raises": Rule("medium", "Name the exception that is meant, or add `match=`."),
    "empty-test": Rule("medium", "Write it, mark it as skipped with a reason, or remove it."),
}
_MOCK_WORDS = frozenset(
    {"called_once", "called_once_with", "called_with", "not_called", "has_calls", "any_call"}
)


def check_without(source: Source) -> Iterator[Hit]:
    """Tests that compute a value and assert nothing about it; one that only must not raise is fine."""
    helpers = helpers_that_assert(source) if source.is_test else set()
    for test, _ in test_functions(source):
        body = without_docstring(test.body)
        if is_stub(test) and not any(
            line in source.comments for line in range(test.lineno, last_line(test) + 1)
        ):
            yield Hit("empty-test", test.lineno, f"`{test.name}` is empty: it passes whatever the code does.")
        elif not asserts(test) and not calls_any(ast.Module(body, []), helpers - {test.name}):
            name = _unread(test)
            if name:
                message = f"`{test.name}` puts a result into `{name}` and asserts nothing about it."
                yield Hit("test-without-assertion", test.lineno, message)


def _unread(test: Function) -> str:
    """A local name that is given a call's result and never read."""
    stored = {
        target.id: node
        for node in within(test)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Await)
        for target in node.targets
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    }
    read = {
        node.id
        for node in ast.walk(test)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    }
    return next((name for name in stored if name not in read), "")


def check_cannot_fail(source: Source) -> Iterator[Hit]:
    """Assertions that hold whatever the code does."""
    for node in source.of(ast.Assert, ast.Expr) if source.is_test else ():
        if isinstance(node, ast.Assert):
            reason = always_true(node.test)
            if reason:
                yield Hit("assertion-cannot-fail", node.lineno, f"This assertion cannot fail: {reason}.")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _assert_true(node.value)


def always_true(test: ast.expr) -> str:
    """Why a condition always holds; empty if it may not."""
    if isinstance(test, ast.Tuple) and test.elts:
        return "a tuple with something in it is true"
    if isinstance(test, ast.Constant) and test.value:
        return f"`{ast.unparse(test)[:40]}` is always true"
    if isinstance(test, ast.Lambda | ast.GeneratorExp):
        return "a function or a generator is always true"
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return next((reason for each in test.values if (reason := always_true(each))), "")
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _self_comparison(test) or _length(test)
    attribute = test.func if isinstance(test, ast.Call) else test
    if isinstance(attribute, ast.Attribute) and attribute.attr in _MOCK_WORDS and isinstance(test, ast.Call):
        return f"`{attribute.attr}` is no method of a mock, so it gives another mock, which is true"
    return ""


def _self_comparison(test: ast.Compare) -> str:
    same = ast.dump(test.left) == ast.dump(test.comparators[0])
    simple = isinstance(test.left, ast.Constant)
    holds = isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
    return "both sides are the same literal" if same and simple and holds else ""


def _length(test: ast.Compare) -> str:
    is_length = isinstance(test.left, ast.Call) and dotted(test.left.func) == "len"
    at_least = isinstance(test.ops[0], ast.GtE) and is_constant(test.comparators[0], 0)
    return "no length is below 0" if is_length and at_least else ""


def _assert_true(call: ast.Call) -> Iterator[Hit]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name != "assertTrue" or not call.args:
        return
    second = call.args[1] if len(call.args) > 1 else None
    if isinstance(second, ast.Constant) and not isinstance(second.value, str):
        message = "`assertTrue` takes the second value as a message, so the two are not compared."
        yield Hit("assertion-cannot-fail", call.lineno, message)
    elif always_true(call.args[0]):
        yield Hit(
            "assertion-cannot-fail", call.lineno, f"This assertion cannot fail: {always_true(call.args[0])}."
        )


def check_forgotten(source: Source) -> Iterator[Hit]:
    """Comparisons and mock assertions that are written down and not made."""
    for test, _ in test_functions(source):
        raising = _raising_lines(test)
        for node in within(test):
            if not isinstance(node, ast.Expr) or node.lineno in raising:
                continue
            if isinstance(node.value, ast.Compare):
                message = (
                    "This comparison is made and forgotten: without `assert` the test passes either way."
                )
                yield Hit("comparison-not-asserted", node.lineno, message)
            elif isinstance(node.value, ast.Attribute) and node.value.attr.startswith("assert_"):
                message = f"`{node.value.attr}` is named and not called, so nothing is checked."
                yield Hit("assertion-not-called", node.lineno, message)


def _raising_lines(test: Function) -> set[int]:
    """Lines in `with` blocks and `try` bodies, where an expression may stand for what it raises."""
    lines: set[int] = set()
    for node in ast.walk(test):
        if isinstance(node, ast.With | ast.AsyncWith | ast.Try):
            lines.update(range(node.lineno, last_line(node) + 1))
    return lines


def check_raises(source: Source) -> Iterator[Hit]:
    """`pytest.raises` that accepts anything, or hides an assertion behind what raises."""
    for node in source.of(ast.With, ast.AsyncWith) if source.is_test else ():
        for item in node.items:
            call = item.context_expr
            name = dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
            if name in ("raises", "assertRaises"):
                yield from _broad(source, call, item)
                yield from _behind(node, item)


def _broad(source: Source, call: ast.Call, item: ast.withitem) -> Iterator[Hit]:
    """Anything is accepted, nobody looks at what it was, and no comment says why."""
    caught = dotted(call.args[0]) if call.args else ""
    looked_at = keyword(call, "match") is not None or item.optional_vars is not None
    explained = {call.lineno - 1, call.lineno} & source.comments.keys()
    if caught in ("Exception", "BaseException") and not looked_at and not explained:
        message = (
            f"`{caught}` is raised by almost any mistake, so this also passes when other code is broken."
        )
        yield Hit("broad-raises", call.lineno, message)


def _behind(node: ast.With | ast.AsyncWith, item: ast.withitem) -> Iterator[Hit]:
    name = dotted(item.optional_vars) if item.optional_vars else ""
    for statement in node.body[1:]:
        used = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
        if name and isinstance(statement, ast.Assert) and name in used:
            message = (
                f"This looks at `{name}` inside the block that ends when the exception is raised, so it "
                "never runs."
            )
            yield Hit("unreached-assertion", statement.lineno, message)


def check_swallowed(source: Source) -> Iterator[Hit]:
    """An assertion inside a `try` whose handler takes its failure away."""
    for test, _ in test_functions(source):
        for node in within(test):
            if isinstance(node, ast.Try) and any(isinstance(each, ast.Assert) for each in node.body):
                for handler in node.handlers:
                    broad = handler.type is None or dotted(handler.type) in (
                        "Exception",
                        "BaseException",
                        "AssertionError",
                    )
                    if broad and all(isinstance(each, ast.Pass) for each in handler.body):
                        message = (
                            "The failure of the assertion above ends here, so the test passes all the same."
                        )
                        yield Hit("swallowed-assertion", handler.lineno, message, end=last_line(handler))


def check_in_except(source: Source) -> Iterator[Hit]:
    """Tests whose only assertions stand where an exception is caught: without one they pass."""
    for test, _ in test_functions(source):
        for node in within(test):
            alone = isinstance(node, ast.Try) and not node.orelse and len(node.handlers) == 1
            if alone and not _raises_for_sure(node, test):
                handler = node.handlers[0]
                inside = {id(each) for each in ast.walk(handler)}
                others = [each for each in ast.walk(test) if id(each) not in inside and _can_fail(each)]
                if any(isinstance(each, ast.Assert) for each in handler.body) and not others:
                    message = f"`{test.name}` asserts something only here: when nothing is raised, it passes."
                    yield Hit("assertion-in-except", handler.lineno, message, end=last_line(handler))


def _raises_for_sure(node: ast.Try, test: Function) -> bool:
    """Whether the test makes the exception itself: in a function of its own, or by dividing by zero."""
    own = {each.name for each in within(test) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    inner = [each for statement in node.body for each in ast.walk(statement)]
    called = {dotted(each.func) for each in inner if isinstance(each, ast.Call)}
    divided = any(isinstance(each, ast.BinOp) and is_constant(each.right, 0) for each in inner)
    return divided or called <= own


def _can_fail(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert | ast.Raise) or (isinstance(node, ast.Call) and asserts(node))


ASSERTION_CHECKS = (
    check_without,
    check_cannot_fail,
    check_forgotten,
    check_raises,
    check_swallowed,
    check_in_except,
)
