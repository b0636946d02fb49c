"""Twins: functions that are written twice in a file, once to be awaited and once not."""

import ast
import re
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import Function, without_docstring
from _source import Source

MIN_STATEMENTS = 6
MIN_TWINS = 3
NAMED = 5

TWIN_RULES = {
    "async-twins": Rule("low", "Move what does not wait into functions that both use."),
}
_WAITING = re.compile(r"\b(?:await|async) ")
_NAMED_SO = re.compile(r"Async|(?<![A-Za-z0-9])(?:async_|a(?=[a-z]))")  # `aclose` beside `close`


def check_twins(source: Source) -> Iterator[Hit]:
    """Functions that differ in waiting alone, where there are several: one finding for each file."""
    waiting = source.of(ast.AsyncFunctionDef) if source.is_product else []
    if len(waiting) < MIN_TWINS:
        return
    plain = {key for each in source.of(ast.FunctionDef) if (key := _key(each))}
    twins = sorted((each for each in waiting if _key(each) in plain), key=lambda each: each.lineno)
    if len(twins) >= MIN_TWINS:
        names = ", ".join(f"`{each.name}`" for each in twins[:NAMED])
        more = f" and {len(twins) - NAMED} more" if len(twins) > NAMED else ""
        message = (
            f"{len(twins)} functions are there twice, with `await` and without: {names}{more}; a mend of one "
            "misses the other."
        )
        yield Hit("async-twins", twins[0].lineno, message)


def _key(function: Function) -> str:
    """What a function does apart from waiting; empty where it is too short to matter."""
    body = without_docstring(function.body)
    if sum(isinstance(node, ast.stmt) for each in body for node in ast.walk(each)) < MIN_STATEMENTS:
        return ""
    text = "\n".join(ast.unparse(each) for each in body)
    return _NAMED_SO.sub("", _WAITING.sub("", text))


TWIN_CHECKS = (check_twins,)
