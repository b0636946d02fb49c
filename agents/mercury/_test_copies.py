"""Copies: tests and cases of tests that are there twice and prove nothing more."""

import ast
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import Function, dotted, is_stub, without_docstring
from _source import Source
from _test_cases import test_functions

MIN_STATEMENTS = 2
COPY_RULES = {
    "duplicated-test": Rule("medium", "Let it test what its name says, or remove it."),
    "duplicate-case": Rule("low", "Remove one, or make it the case that was meant."),
}


def check_bodies(source: Source) -> Iterator[Hit]:
    """Tests of different names that do word for word the same."""
    seen: dict[tuple[int, str], Function] = {}
    for test, owner in test_functions(source):
        body = without_docstring(test.body)
        if is_stub(test) or len(body) < MIN_STATEMENTS:
            continue
        key = "".join(ast.dump(each) for each in (test.args, *test.decorator_list, *body))
        first = seen.setdefault((id(owner), key), test)
        if first.name != test.name:
            message = (
                f"`{test.name}` does word for word what `{first.name}` of line {first.lineno} does, so it "
                "proves nothing more."
            )
            yield Hit("duplicated-test", test.lineno, message)


def check_cases(source: Source) -> Iterator[Hit]:
    """The same case twice in one `parametrize`."""
    for test, _ in test_functions(source):
        for mark in test.decorator_list:
            if (
                isinstance(mark, ast.Call)
                and dotted(mark.func).endswith("parametrize")
                and len(mark.args) > 1
            ):
                yield from _repeated(test, mark.args[1])


def _repeated(test: Function, cases: ast.expr) -> Iterator[Hit]:
    seen: dict[str, ast.expr] = {}
    for case in cases.elts if isinstance(cases, ast.List | ast.Tuple) else ():
        first = seen.setdefault(ast.dump(case), case)
        if first is not case and not any(isinstance(each, ast.Call | ast.Lambda) for each in ast.walk(case)):
            message = f"This case of `{test.name}` stands on line {first.lineno} already."
            yield Hit("duplicate-case", case.lineno, message)


COPY_CHECKS = (check_bodies, check_cases)
