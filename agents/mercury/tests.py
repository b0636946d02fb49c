"""Tests: what they prove. Modules no test reaches, tests that cannot fail, tests that never run."""

import ast
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _finding import Hit
from _nodes import FUNCTIONS, Function, decorators, dotted, is_stub, within, without_docstring
from _project import Project, Source
from _specialist import review
from _tools import ToolFailed, Tools

from orchestra import Result

SLEEP_SECONDS = 0.5
MIN_FUNCTIONS = 2
MIN_STATEMENTS = 10
BARELY_PERCENT = 30
_SAYS_SO = "assert|check|verify|expect|ensure|should|raises|warns|fail|must|compare|match|approx"
_ASSERTING = re.compile(_SAYS_SO, re.IGNORECASE)
_SKIP = re.compile(r"^[ \t]*@(pytest\.mark\.(skip|xfail)|unittest\.skip)(\(\s*\))?\s*$", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*(?:async )?def ", re.MULTILINE)
_SPECIAL = frozenset({"__init__.py", "__main__.py", "setup.py", "conf.py", "noxfile.py"})


def agent(ctx: Any) -> Result:
    """What is found about the tests of the project."""
    return review(ctx, "tests", FILTERS, (check_assertions, check_running, check_reach))


# Which hits of ruff are worth telling.


def _is_forgotten(source: Source, hit: Hit) -> bool:
    """A comparison in a test, not in a block where it stands for what it raises."""
    heads = [line for _, line in source.heads(hit.line)]
    raising = any(re.match(r"(async )?with\b|try\b", line) for line in heads)
    return not raising and any(re.match(r"(async )?def test", line) for line in heads)


def _is_alone(source: Source, hit: Hit) -> bool:
    """Whether nothing else in the test can fail: then it passes when nothing is raised."""
    head, name = source.function(hit.line)
    handler = next(at for at, line in source.heads(hit.line) if line.startswith("except"))
    rest = source.block(head).replace(source.block(handler), "")
    return name.startswith("test") and not re.search(r"\bassert|raise|fail\(|\belse\s*:|/ 0\b", rest)


FILTERS = {
    "comparison-not-asserted": _is_forgotten,
    "assertion-in-except": _is_alone,
    "broad-raises": lambda source, hit: (
        not source.has_comment(hit.line - 1, hit.line) and " as " not in source.line(hit.line)
    ),
    "duplicate-test": lambda source, hit: "def test" in source.line(hit.line),
}


# What no tool sees.


def _tests(source: Source) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """The tests pytest or unittest would collect, with the class each stands in."""
    for node in source.tree.body:
        owner = (
            node if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or node.bases) else None
        )
        for each in owner.body if owner else [node]:
            is_test = isinstance(each, FUNCTIONS) and each.name.startswith("test")
            if is_test and "fixture" not in "".join(decorators(each)):
                yield each, owner


def check_assertions(project: Project, _: Tools) -> Iterator[Hit]:
    """Tests that assert nothing, and assertions that cannot fail or never run."""
    for source in project.tests:
        for test, _owner in _tests(source):
            name, line = test.name, test.lineno
            if is_stub(test) and not source.has_comment(line, test.end_lineno):
                yield Hit("empty-test", source.name, line, f"`{name}` is empty: it always passes.")
            elif (unread := _unread(test)) and not _asserts(test, _helpers(source) - {name}):
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
    elif isinstance(node, ast.With | ast.AsyncWith) and "raises" in ast.unparse(node.items[0]).lower():
        name = dotted(node.items[0].optional_vars)
        for each in node.body[1:]:
            if name and isinstance(each, ast.Assert) and re.search(rf"\b{name}\b", ast.unparse(each)):
                message = f"The block ends when `{name}` is raised, so this never runs."
                yield Hit("unreached-assertion", source.name, each.lineno, message)
    elif isinstance(node, ast.Try) and any(isinstance(each, ast.Assert) for each in node.body):
        for handler in node.handlers:
            broad = dotted(handler.type) in ("", "Exception", "BaseException", "AssertionError")
            if broad and all(isinstance(each, ast.Pass) for each in handler.body):
                message = "The failure of the assertion above ends here, so the test passes all the same."
                yield Hit("swallowed-assertion", source.name, handler.lineno, message, end=handler.end_lineno)


def _asserts(node: ast.AST, helpers: set[str]) -> bool:
    """Whether something can fail on purpose: an assertion, what sounds like one, or a helper that does."""
    for each in ast.walk(node):
        name = getattr(each, "attr", "") or getattr(each, "id", "")
        if isinstance(each, ast.Assert | ast.Raise) or name in helpers or (name and _ASSERTING.search(name)):
            return True
    return False


def _helpers(source: Source) -> set[str]:
    """Functions of the file that assert something, directly or through one another."""
    known: set[str] = set()
    while found := {
        node.name for node in source.functions if node.name not in known and _asserts(node, known)
    }:
        known |= found
    return known


def _unread(test: Function) -> str:
    """A local name that is given a call's result and never read."""
    given = [each for each in within(test) if isinstance(each, ast.Assign)]
    called = [each for each in given if isinstance(each.value, ast.Call | ast.Await)]
    names = [goal.id for each in called for goal in each.targets if isinstance(goal, ast.Name)]
    read = {
        each.id
        for each in ast.walk(test)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store)
    }
    return next((name for name in names if name not in read and name[0] != "_"), "")


def check_running(project: Project, _: Tools) -> Iterator[Hit]:
    """Tests that are never collected, are there twice, are skipped without a word, or wait by the clock."""
    for source in project.tests:
        yield from _uncollected(source)
        yield from _copies(source)
        for line, _match in source.matches(_SKIP):
            if not source.has_comment(line - 1, line) and '"""' not in source.line(line + 2):
                message = "This is set aside without a reason, so nobody knows when to bring it back."
                yield Hit("skip-without-reason", source.name, line, message)
        for call in source.of(ast.Call) if "sleep(" in source.text else ():
            value = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else 0
            slow = (
                dotted(call.func) == "time.sleep"
                and isinstance(value, int | float)
                and value >= SLEEP_SECONDS
            )
            if slow and source.function(call.lineno)[1].startswith("test"):
                message = f"The test sleeps {value} s: too long as a rule, too short on a busy day."
                yield Hit("sleep-in-test", source.name, call.lineno, message)


def _uncollected(source: Source) -> Iterator[Hit]:
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not node.bases:
            methods = {each.name: each for each in node.body if isinstance(each, FUNCTIONS)}
            tests = [name for name in methods if name.startswith("test")]
            if tests and "__init__" in methods:
                message = f"`{node.name}` has an `__init__`, so pytest leaves out its {len(tests)} tests."
                yield Hit("uncollected-class", source.name, methods["__init__"].lineno, message)
    for test, _ in _tests(source):
        names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        for node in (each for each in test.body if isinstance(each, FUNCTIONS)):
            if node.name.startswith("test_") and node.name not in names and not node.decorator_list:
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
                message = f"`{test.name}` does word for word what `{first.name}` of line {first.lineno} does."
                yield Hit("duplicated-test", source.name, test.lineno, message)


# What the tests reach.


def check_reach(project: Project, tools: Tools) -> Iterator[Hit]:
    """Modules that could break without a test noticing: as measured, or else as imported."""
    product = [each for each in project.product if _is_worth_testing(each)]
    if any("def test" in each.text for each in project.tests):
        measured = read_coverage(project, tools)
        yield from _uncovered(project, measured) if measured else _unimported(project, tools, product)
    elif product:
        message = f"The project has no tests: nothing notices when one of its {len(product)} modules breaks."
        yield Hit("no-tests", ".", 0, message)


def _is_worth_testing(source: Source) -> bool:
    """Whether a file is part of a package and does something."""
    inside = source.in_package and (source.path.parent / "__init__.py").exists()
    return (
        inside and source.path.name not in _SPECIAL and len(_FUNCTION.findall(source.text)) >= MIN_FUNCTIONS
    )


def _unimported(project: Project, tools: Tools, product: list[Source]) -> Iterator[Hit]:
    graph, seen, waiting = tools.imports(), set(), [each.name for each in project.tests]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            packages = [f"{folder.as_posix()}/__init__.py" for folder in Path(name).parents if folder.name]
            waiting += [*graph.get(name, ()), *packages]
    for source in (each for each in product if each.name not in seen):
        package, module = (re.escape(name) for name in (source.module.rpartition(".")[0], source.module))
        named = re.compile(rf"{module}\b|[\"']{source.path.stem}[\"']|{package}\._?[\"'{{%]")
        if not any(named.search(each.text) for each in project.sources.values()):  # it may be loaded by name
            message = f"No test imports `{source.module}`, not even through another module."
            yield Hit("untested-module", source.name, 0, message)


def _uncovered(project: Project, measured: dict[str, tuple[int, int]]) -> Iterator[Hit]:
    for name, (run, total) in sorted(measured.items()):
        source = project.sources.get(name)
        if source and source.is_product and total >= MIN_STATEMENTS and 100 * run < BARELY_PERCENT * total:
            message = f"The tests ran {run or 'none'} of its {total} statements, says the coverage file."
            yield Hit("barely-tested" if run else "untested-module", name, 0, message)


def read_coverage(project: Project, tools: Tools) -> dict[str, tuple[int, int]]:
    """Statements run and statements in all, by file, from a coverage file that no source is newer than."""
    newest = max((each.path.stat().st_mtime for each in project.product if each.path.exists()), default=0.0)
    for name in ("coverage.json", "coverage.xml", ".coverage"):
        path = project.root / name
        if path.is_file() and path.stat().st_mtime >= newest:
            try:
                found = _from_xml(path) if name.endswith("xml") else _from_report(path, tools)
            except (ValueError, KeyError, TypeError, ElementTree.ParseError) as error:
                raise ToolFailed(f"`{name}` is no coverage file: {error}") from error
            return {
                (project.root / file).resolve().relative_to(project.root).as_posix(): each
                for file, each in found
            }
    return {}


def _from_report(path: Path, tools: Tools) -> list[tuple[str, tuple[int, int]]]:
    report = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else tools.coverage()
    summaries = [(name, file["summary"]) for name, file in report["files"].items()]
    return [(name, (each["covered_lines"], each["num_statements"])) for name, each in summaries]


def _from_xml(path: Path) -> list[tuple[str, tuple[int, int]]]:
    tree = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    roots = [Path(each.text or "") for each in tree.iter("source")]
    found: list[tuple[str, tuple[int, int]]] = []
    for file in tree.iter("class"):
        hits = [int(line.get("hits", "0")) > 0 for line in file.iter("line")]
        paths = [root / file.get("filename", "") for root in roots]
        found += [(str(each), (sum(hits), len(hits))) for each in paths if each.exists()][:1]
    return found
