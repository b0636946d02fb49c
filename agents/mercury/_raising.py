"""Warnings and exceptions that mislead whoever reads them."""

import ast
import re
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import aliases, dotted, full_name, keyword, within
from _source import Source

RAISING_RULES = {
    "warning-without-stacklevel": Rule("low", "Pass stacklevel=2, or as many levels as the caller is away."),
    "raise-without-from": Rule("low", "Write `from error` to name the cause, or `from None` to hide it."),
}
_DEPRECATIONS = ("DeprecationWarning", "PendingDeprecationWarning")
_CHANGE = re.compile(r"deprecat|FutureWarning|will be removed", re.IGNORECASE)
_SIGNALS = frozenset({"StopIteration", "StopAsyncIteration", "SystemExit", "KeyboardInterrupt"})


def check_warnings(source: Source) -> Iterator[Hit]:
    """Deprecations that point at the library and not at the code that has to change: one for each file."""
    names = aliases(source)
    functions = source.functions if source.is_product and not source.is_side else ()
    found = [
        node
        for function in functions
        for node in within(function)
        if isinstance(node, ast.Call)
        and full_name(node.func, names) == "warnings.warn"
        and _unplaced(node)
        and _asks_for_change(node, function)
        and not source.silenced(node.lineno)
    ]
    if found:
        first = min(found, key=lambda each: each.lineno)
        yield Hit("warning-without-stacklevel", first.lineno, _warned(first, len(found)))


def _unplaced(call: ast.Call) -> bool:
    given = {each.arg for each in call.keywords}
    return len(call.args) < 3 and not given & {"stacklevel", "skip_file_prefixes", None}


def _asks_for_change(call: ast.Call, function: ast.AST) -> bool:
    """Whether the caller is to write something else: a deprecation, by its category or its words."""
    texts = [ast.unparse(call)]
    names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
    texts += [
        ast.unparse(node.value)
        for node in within(function)
        if isinstance(node, ast.Assign) and names & set(map(dotted, node.targets))
    ]
    return any(_CHANGE.search(text) for text in texts)


def _warned(call: ast.Call, count: int) -> str:
    more = f" ({count} times in this file)" if count > 1 else ""
    message = f"Without `stacklevel`{more} the warning names this line, not the caller's, who has to act"
    category = call.args[1] if len(call.args) > 1 else keyword(call, "category")
    if dotted(category) in _DEPRECATIONS:
        return f"{message}; and Python does not show such a warning unless it names the program itself."
    return f"{message}."


def check_causes(source: Source) -> Iterator[Hit]:
    """Exceptions raised for another one without saying so: one finding for each file."""
    handlers = source.of(ast.ExceptHandler) if source.is_product else ()
    lines = sorted({line for each in handlers for line in _unlinked(each) if not source.silenced(line)})
    if lines:
        more = f" ({len(lines)} times in this file)" if len(lines) > 1 else ""
        message = (
            f"An exception is raised for another one without `from`{more}; the traceback reads as if "
            "handling the first had failed."
        )
        yield Hit("raise-without-from", lines[0], message)


def _unlinked(handler: ast.ExceptHandler) -> Iterator[int]:
    for node in within(handler):
        raised = node.exc if isinstance(node, ast.Raise) and node.cause is None else None
        made = raised.func if isinstance(raised, ast.Call) else raised
        name = dotted(made)
        same = handler.name is not None and name.partition(".")[0] == handler.name
        if name and not same and name.rpartition(".")[2][:1].isupper() and name not in _SIGNALS:
            yield node.lineno


RAISING_CHECKS = (check_warnings, check_causes)
