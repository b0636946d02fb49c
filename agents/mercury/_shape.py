"""The shape of the code: what does not parse, is too long, too tangled, too deep, or there twice."""

import ast
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import Function, decorators, functions, last_line, within, without_docstring
from _source import Project, Source

MAX_FUNCTION_LINES = 100  # of code: comments, blank lines and the docstring do not count
MAX_FILE_LINES = 1_000
MAX_BRANCHES = 20
MAX_DEPTH = 5
MIN_DUPLICATE_STATEMENTS = 6

SHAPE_RULES = {
    "syntax-error": Rule(
        "high", "Mend the syntax; until then the file can be neither imported nor reviewed."
    ),
    "wrong-encoding": Rule("medium", "Save the file as UTF-8, or declare its encoding in the first line."),
    "unreadable-file": Rule("medium", "Give the file permissions that let tools read it."),
    "invalid-escape": Rule("low", "Double the backslash, or write a raw string: r'…'."),
    "long-file": Rule("low", "Split it by subject into modules that can be read in one go."),
    "long-function": Rule("low", "Move its steps into functions with names of their own."),
    "complex-function": Rule(
        "medium", "Split it along its branches, or replace chains of conditions by a table."
    ),
    "deep-nesting": Rule("low", "Return early, or move the inner blocks into functions."),
    "duplicated-function": Rule("low", "Keep one and use it in both places."),
}


def check_problem(source: Source) -> Iterator[Hit]:
    """A file that cannot be read or parsed is a finding, not a reason to stop."""
    problem = source.problem
    if problem is not None:
        yield Hit(problem.rule, problem.line, f"Python cannot use this file: {problem.message}.")
    for line, text in source.warnings:
        if "invalid escape" in text:
            message = (
                f"{text[:1].upper()}{text[1:]}: newer Pythons warn of it, and it is going to be an error."
            )
            yield Hit("invalid-escape", line, message)


def check_file_length(source: Source) -> Iterator[Hit]:
    """A file nobody reads to the end."""
    lines = code_lines(source, 1, len(source.lines))
    if lines > MAX_FILE_LINES and not source.is_test:
        message = f"The file has {lines:,} lines of code; {MAX_FILE_LINES:,} is a lot to keep in mind."
        yield Hit("long-file", 1, message)


def code_lines(source: Source, first: int, last: int) -> int:
    """How many lines are neither blank nor only a comment or a docstring."""
    prose = source.docstring_lines
    numbered = enumerate(source.lines[first - 1 : last], start=first)
    return sum(
        1 for number, line in numbered if line.strip() and line.lstrip()[0] != "#" and number not in prose
    )


def check_function_size(source: Source) -> Iterator[Hit]:
    """Functions that are too long, have too many ways through, or are nested too deeply."""
    if not source.is_product:
        return
    for function in functions(source):
        yield from _too_long(source, function)
        branches = 1 + sum(_branches(node) for node in within(function))
        if branches > MAX_BRANCHES:
            message = (
                f"`{function.name}` has {branches} ways through it, more than tests can be expected to take."
            )
            yield Hit("complex-function", function.lineno, message)
        depth, line = _deepest(function.body, 1)
        if depth > MAX_DEPTH:
            message = (
                f"A block in `{function.name}` is nested {depth} levels deep; it is hard to say when it runs."
            )
            yield Hit("deep-nesting", line, message)


def _too_long(source: Source, function: Function) -> Iterator[Hit]:
    body = without_docstring(function.body)
    if not body:
        return
    nested = [
        node
        for node in function.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    inner = sum(code_lines(source, node.lineno, last_line(node)) for node in nested)
    lines = code_lines(source, body[0].lineno, last_line(function)) - inner
    if lines > MAX_FUNCTION_LINES:
        message = f"`{function.name}` has {lines} lines of code in one function."
        yield Hit("long-function", function.lineno, message, severity="medium" if lines > 200 else "low")


def _branches(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    if isinstance(node, ast.Match):
        return len(node.cases)
    branching = ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.IfExp
    return int(isinstance(node, branching))


def _deepest(body: list[ast.stmt], depth: int) -> tuple[int, int]:
    """The deepest block and where it begins; `elif` is no level of its own."""
    best = (depth - 1, body[0].lineno if body else 0)
    for node in body:
        if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try):
            best = max(best, *(_deepest(block, depth + step) for block, step in _inner(node)))
    return best


def _inner(node: ast.stmt) -> Iterator[tuple[list[ast.stmt], int]]:
    yield node.body, 1
    orelse = getattr(node, "orelse", [])
    chained = isinstance(node, ast.If) and len(orelse) == 1 and isinstance(orelse[0], ast.If)
    if orelse:
        yield orelse, 0 if chained else 1
    for handler in getattr(node, "handlers", []):
        yield handler.body, 1
    if getattr(node, "finalbody", []):
        yield node.finalbody, 1


def check_duplicates(project: Project) -> Iterator[Hit]:
    """Functions that are word for word the same."""
    seen: dict[str, tuple[Source, Function]] = {}
    for source in project.sources:
        for function in functions(source) if source.is_product else ():
            key = _body_key(function)
            first = seen.setdefault(key, (source, function)) if key else None
            if first is not None and first[1] is not function and not _nested(first, source, function):
                place = f"{first[0].name}:{first[1].lineno}"
                message = (
                    f"`{function.name}` is word for word `{first[1].name}` of {place}; a mend of one "
                    "misses the other."
                )
                yield Hit("duplicated-function", function.lineno, message, file=source.name)


def _nested(first: tuple[Source, Function], source: Source, function: Function) -> bool:
    """Whether two functions are one inside the other, or one file is made from its async twin by a tool."""
    twins = first[0].name.replace("async", "sync") == source.name.replace("async", "sync")
    inside = first[1].lineno <= function.lineno <= last_line(first[1])
    return inside if first[0] is source else twins


def _body_key(function: Function) -> str:
    """What a function does, without its name and docstring; empty where it is too short to matter."""
    body = without_docstring(function.body)
    statements = sum(isinstance(node, ast.stmt) for each in body for node in ast.walk(each))
    if statements < MIN_DUPLICATE_STATEMENTS or "overload" in "".join(decorators(function)):
        return ""
    return ast.dump(function.args) + "".join(ast.dump(each) for each in body)


SHAPE_CHECKS = (check_problem, check_file_length, check_function_size)
SHAPE_PROJECT_CHECKS = (check_duplicates,)
