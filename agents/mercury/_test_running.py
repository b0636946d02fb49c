"""Running: tests that are never collected, are skipped without a word, or wait by the clock."""

import ast
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import FUNCTIONS, Function, aliases, decorators, dotted, full_name, keyword, within
from _source import Source
from _test_cases import is_unittest, test_functions

SLEEP_SECONDS = 0.5
_SETS_ASIDE = frozenset({"pytest.mark.skip", "pytest.mark.xfail", "unittest.skip"})

RUNNING_RULES = {
    "duplicate-test": Rule("high", "Give each test a name of its own."),
    "uncollected-class": Rule("high", "Remove `__init__` and prepare in a fixture."),
    "nested-test": Rule("high", "Move it out of the function, to where it is collected."),
    "skip-without-reason": Rule("low", "Say why: reason='…'."),
    "sleep-in-test": Rule("low", "Wait for the event instead, or hand the code a clock of your own."),
}


def check_duplicates(source: Source) -> Iterator[Hit]:
    """Two tests of one name: the first is replaced and never runs."""
    seen: dict[tuple[int, str], Function] = {}
    for test, owner in test_functions(source):
        earlier = seen.get((id(owner), test.name))
        if earlier is not None and not decorators(test):
            message = f"`{test.name}` of line {earlier.lineno} is replaced by this one and never runs."
            yield Hit("duplicate-test", test.lineno, message)
        seen[id(owner), test.name] = test


def check_classes(source: Source) -> Iterator[Hit]:
    """Test classes that pytest refuses to collect because they have an `__init__`."""
    for node in source.tree.body if source.is_test else ():
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not is_unittest(node):
            methods = [each for each in node.body if isinstance(each, FUNCTIONS)]
            tests = [each for each in methods if each.name.startswith("test")]
            init = next((each for each in methods if each.name == "__init__"), None)
            if tests and init:
                message = f"`{node.name}` has an `__init__`, so pytest leaves out its {len(tests)} tests."
                yield Hit("uncollected-class", init.lineno, message)


def check_nested(source: Source) -> Iterator[Hit]:
    """Tests defined inside tests, which nobody calls."""
    for test, _ in test_functions(source):
        names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        for node in test.body:
            lonely = isinstance(node, FUNCTIONS) and node.name not in names and not node.decorator_list
            if lonely and node.name.startswith("test_"):
                message = f"`{node.name}` inside `{test.name}` is called by nobody, so it never runs."
                yield Hit("nested-test", node.lineno, message)


def check_skips(source: Source) -> Iterator[Hit]:
    """Skipped tests that do not say why."""
    for node in source.of(*FUNCTIONS, ast.ClassDef) if source.is_test else ():
        for mark in getattr(node, "decorator_list", ()):
            explained = _comment_near(source, mark.lineno) or ast.get_docstring(node) is not None
            if _sets_aside(mark) and not explained:
                message = (
                    f"`{node.name}` is set aside without a reason, so nobody knows when to bring it back."
                )
                yield Hit("skip-without-reason", mark.lineno, message)


def _sets_aside(mark: ast.expr) -> bool:
    """Whether a decorator takes a test out of the run without a word."""
    call = mark if isinstance(mark, ast.Call) else None
    said = call is not None and bool(call.args or keyword(call, "reason"))
    return dotted(call.func if call else mark) in _SETS_ASIDE and not said


def _comment_near(source: Source, line: int) -> bool:
    return line in source.comments or line - 1 in source.comments


def check_sleeps(source: Source) -> Iterator[Hit]:
    """Tests that wait by the clock: slow on a good day, failing on a bad one."""
    names = aliases(source)
    for test, _ in test_functions(source):
        for node in within(test):
            if isinstance(node, ast.Call) and full_name(node.func, names) == "time.sleep" and node.args:
                seconds = node.args[0].value if isinstance(node.args[0], ast.Constant) else 0
                if isinstance(seconds, int | float) and seconds >= SLEEP_SECONDS:
                    message = (
                        f"`{test.name}` sleeps {seconds} s: too long when all is well, too short on a busy "
                        "machine."
                    )
                    yield Hit("sleep-in-test", node.lineno, message)


RUNNING_CHECKS = (check_duplicates, check_classes, check_nested, check_skips, check_sleeps)
