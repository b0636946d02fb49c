"""What no tool sees of tests: those that assert nothing, never run, or are there twice, and what none reaches."""

import ast
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from _finding import Hit
from _nodes import FUNCTIONS, Function, decorators, dotted, is_stub, last_line, within, without_docstring
from _project import Project, Source
from _tools import Tools

SLEEP_SECONDS = 0.5
MIN_FUNCTIONS = 2
MIN_STATEMENTS = 10
BARELY_PERCENT = 30
_ASSERTING = re.compile(
    r"assert|check|verify|expect|ensure|should|raises|warns|fail|must|compare|match|approx", re.IGNORECASE
)
_SKIP = re.compile(r"^[ \t]*@(pytest\.mark\.(skip|xfail)|unittest\.skip)(\(\s*\))?\s*$", re.MULTILINE)
_SLEEP = re.compile(r"^[ \t]+time\.sleep\((\d+(?:\.\d+)?)\)", re.MULTILINE)
_SPECIAL = frozenset({"__init__.py", "__main__.py", "setup.py", "conf.py", "noxfile.py"})


def _tests(source: Source) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """The tests pytest or unittest would collect, with the class each stands in."""
    for node in source.tree.body:
        is_class = isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_unittest(node))
        for each in node.body if is_class else [node]:
            if (
                isinstance(each, FUNCTIONS)
                and each.name.startswith("test")
                and "fixture" not in "".join(decorators(each))
            ):
                yield each, node if is_class else None


def _is_unittest(node: ast.ClassDef) -> bool:
    return any(dotted(base).endswith(("TestCase", "Tests", "Test")) for base in node.bases)


def check_assertions(project: Project, _: Tools) -> Iterator[Hit]:
    """Tests that assert nothing, and assertions that cannot fail or never run."""
    for source in project.tests:
        helpers = _helpers(source)
        for test, _owner in _tests(source):
            name, line = test.name, test.lineno
            if is_stub(test) and not source.has_comment(line, last_line(test)):
                yield Hit(
                    "empty-test", source.name, line, f"`{name}` is empty: it passes whatever the code does."
                )
            elif not _asserts(test, helpers - {name}) and (unread := _unread(test)):
                message = f"`{name}` puts a result into `{unread}` and asserts nothing about it."
                yield Hit("test-without-assertion", source.name, line, message)
            for node in within(test):
                yield from _vain(source, node)


def _vain(source: Source, node: ast.AST) -> Iterator[Hit]:
    """An assertion that holds whatever the code does, or whose failure nobody sees."""
    if (
        isinstance(node, ast.Assert)
        and isinstance(node.test, ast.BoolOp)
        and isinstance(node.test.op, ast.Or)
    ):
        if any(isinstance(each, ast.Constant) and each.value for each in node.test.values):
            message = "This assertion cannot fail: one side of the `or` is always true."
            yield Hit("assertion-cannot-fail", source.name, node.lineno, message)
    elif isinstance(node, ast.With | ast.AsyncWith):
        names = {
            dotted(item.optional_vars)
            for item in node.items
            if "raises" in ast.unparse(item.context_expr).lower()
        }
        for each in node.body[1:]:
            used = {inner.id for inner in ast.walk(each) if isinstance(inner, ast.Name)} & names
            if isinstance(each, ast.Assert) and used:
                message = f"This looks at `{used.pop()}` inside the block that ends when the exception is raised, so it never runs."
                yield Hit("unreached-assertion", source.name, each.lineno, message)
    elif isinstance(node, ast.Try) and any(isinstance(each, ast.Assert) for each in node.body):
        for handler in node.handlers:
            broad = dotted(handler.type) in ("", "Exception", "BaseException", "AssertionError")
            if broad and all(isinstance(each, ast.Pass) for each in handler.body):
                message = "The failure of the assertion above ends here, so the test passes all the same."
                yield Hit("swallowed-assertion", source.name, handler.lineno, message, end=last_line(handler))


def _asserts(node: ast.AST, helpers: set[str]) -> bool:
    """Whether something can fail on purpose: an assertion, a call whose name sounds like one, or a helper's."""
    for each in ast.walk(node):
        name = each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else ""
        if isinstance(each, ast.Assert | ast.Raise) or name in helpers or (name and _ASSERTING.search(name)):
            return True
    return False


def _helpers(source: Source) -> set[str]:
    """Functions of the file that assert something, directly or through one another."""
    known: set[str] = set()
    while True:
        found = {node.name for node in source.functions if node.name in known or _asserts(node, known)}
        if found == known:
            return known
        known = found


def _unread(test: Function) -> str:
    """A local name that is given a call's result and never read."""
    assigned = [
        each
        for each in within(test)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call | ast.Await)
    ]
    stored = [
        goal.id
        for each in assigned
        for goal in each.targets
        if isinstance(goal, ast.Name) and goal.id[0] != "_"
    ]
    read = {
        each.id
        for each in ast.walk(test)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store)
    }
    return next((name for name in stored if name not in read), "")


def check_running(project: Project, _: Tools) -> Iterator[Hit]:
    """Tests that are never collected, are there twice, are skipped without a word, or wait by the clock."""
    for source in project.tests:
        yield from _uncollected(source)
        yield from _copies(source)
        for line, _match in source.matches(_SKIP):
            if not source.has_comment(line - 1, line) and '"""' not in source.line(line + 2):
                message = "This is set aside without a reason, so nobody knows when to bring it back."
                yield Hit("skip-without-reason", source.name, line, message)
        for line, match in source.matches(_SLEEP):
            if float(match[1]) >= SLEEP_SECONDS and source.function(line)[1].startswith("test"):
                message = (
                    f"The test sleeps {match[1]} s: too long when all is well, too short on a busy machine."
                )
                yield Hit("sleep-in-test", source.name, line, message)


def _uncollected(source: Source) -> Iterator[Hit]:
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not _is_unittest(node):
            methods = {each.name: each for each in node.body if isinstance(each, FUNCTIONS)}
            tests = [name for name in methods if name.startswith("test")]
            if tests and "__init__" in methods:
                message = f"`{node.name}` has an `__init__`, so pytest leaves out its {len(tests)} tests."
                yield Hit("uncollected-class", source.name, methods["__init__"].lineno, message)
    for test, _ in _tests(source):
        names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        for node in test.body:
            lonely = isinstance(node, FUNCTIONS) and node.name not in names and not node.decorator_list
            if lonely and node.name.startswith("test_"):
                message = f"`{node.name}` inside `{test.name}` is called by nobody, so it never runs."
                yield Hit("nested-test", source.name, node.lineno, message)


def _copies(source: Source) -> Iterator[Hit]:
    """Tests of different names that do word for word the same."""
    seen: dict[tuple[int, str], Function] = {}
    for test, owner in _tests(source):
        body = without_docstring(test.body)
        if len(body) > 1 and not is_stub(test):
            key = "".join(ast.dump(each) for each in (test.args, *test.decorator_list, *body))
            first = seen.setdefault((id(owner), key), test)
            if first.name != test.name:
                message = (
                    f"`{test.name}` does word for word what `{first.name}` of line {first.lineno} does, so it proves "
                    "nothing more."
                )
                yield Hit("duplicated-test", source.name, test.lineno, message)


# What the tests reach.


def check_reach(project: Project, tools: Tools) -> Iterator[Hit]:
    """Modules that could break without a test noticing: as measured, or else as imported."""
    product = [each for each in project.product if _is_worth_testing(each)]
    if not any(re.search(r"def test", each.text) for each in project.tests):
        if product:
            message = (
                f"The project has no tests: nothing notices when one of its {len(product)} modules breaks."
            )
            yield Hit("no-tests", ".", 0, message)
        return
    measured = read_coverage(project, tools)
    yield from _uncovered(project, measured) if measured else _unimported(project, tools, product)


def _is_worth_testing(source: Source) -> bool:
    """Whether a file is part of a package and does something."""
    inside = source.in_package and (source.path.parent / "__init__.py").exists()
    return (
        inside
        and source.path.name not in _SPECIAL
        and len(re.findall(r"^\s*(?:async )?def ", source.text, re.M)) >= MIN_FUNCTIONS
    )


def _unimported(project: Project, tools: Tools, product: list[Source]) -> Iterator[Hit]:
    graph = tools.imports()
    seen: set[str] = set()
    waiting = [each.name for each in project.tests]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [*graph.get(name, ()), *_around(name)]
    for source in product:
        if source.name not in seen and not _is_named(project, source):
            message = f"No test imports `{source.module}`, not even through another module."
            yield Hit("untested-module", source.name, 0, message)


def _around(name: str) -> list[str]:
    """The packages that are loaded with a module."""
    return [f"{folder.as_posix()}/__init__.py" for folder in Path(name).parents if folder.name]


def _is_named(project: Project, source: Source) -> bool:
    """Whether a text of the tests names the module: it may be loaded by that name."""
    names = (source.module, source.name, f'"{source.path.stem}"', f"'{source.path.stem}'")
    return any(name in each.text for each in project.tests for name in names)


def _uncovered(project: Project, measured: dict[str, tuple[int, int]]) -> Iterator[Hit]:
    for name, (run, total) in sorted(measured.items()):
        source = project.sources.get(name)
        if source is None or not source.is_product or total < MIN_STATEMENTS:
            continue
        if run == 0:
            yield Hit(
                "untested-module",
                name,
                0,
                f"The tests ran none of its {total} statements, says the coverage file.",
            )
        elif 100 * run < BARELY_PERCENT * total:
            message = f"The tests ran {run} of its {total} statements, says the coverage file."
            yield Hit("barely-tested", name, 0, message)


def read_coverage(project: Project, tools: Tools) -> dict[str, tuple[int, int]]:
    """Statements run and statements in all, by file, from a coverage file no source is newer than."""
    for name, read in (("coverage.json", _from_json), ("coverage.xml", _from_xml), (".coverage", _from_data)):
        path = project.root / name
        if path.is_file() and all(path.stat().st_mtime >= _written(each) for each in project.product):
            return {_relative(project, file): counts for file, counts in read(project, tools)}
    return {}


def _written(source: Source) -> float:
    return source.path.stat().st_mtime if source.path.exists() else 0.0


def _relative(project: Project, name: str) -> str:
    path = Path(name)
    return path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else path.as_posix()


def _from_json(project: Project, _: Tools) -> Iterator[tuple[str, tuple[int, int]]]:
    return _from_report(json.loads(project.read("coverage.json")))


def _from_data(project: Project, tools: Tools) -> Iterator[tuple[str, tuple[int, int]]]:
    return _from_report(tools.coverage(str(project.root / ".coverage")))


def _from_report(
    report: dict[str, dict[str, dict[str, dict[str, int]]]],
) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, file in report["files"].items():
        yield name, (file["summary"]["covered_lines"], file["summary"]["num_statements"])


def _from_xml(project: Project, _: Tools) -> Iterator[tuple[str, tuple[int, int]]]:
    tree = ElementTree.fromstring(project.read("coverage.xml"))
    roots = [Path(each.text or "") for each in tree.iter("source")]
    for file in tree.iter("class"):
        hits = [int(line.get("hits", "0")) > 0 for line in file.iter("line")]
        name = file.get("filename", "")
        whole = next((root / name for root in roots if (root / name).exists()), Path(name))
        yield str(whole), (sum(hits), len(hits))


TEST_CHECKS = (check_assertions, check_running, check_reach)
