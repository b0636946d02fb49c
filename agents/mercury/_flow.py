"""The flow of control: code that cannot run, and exceptions that vanish."""

import ast
import builtins
from collections.abc import Iterator
from itertools import pairwise

from _finding import Hit, Rule
from _nodes import FUNCTIONS, blocks, dotted, last_line, within
from _source import Source

FLOW_RULES = {
    "unreachable-code": Rule("medium", "Remove it, or move it before the statement that leaves."),
    "unreachable-except": Rule("medium", "Put the narrower handler before the broader one."),
    "swallowed-exception": Rule(
        "medium", "Catch what you expect, and log or explain in a comment why the rest may vanish."
    ),
    "bare-except": Rule("medium", "Write `except Exception:`, or raise again what was caught."),
    "return-in-finally": Rule("medium", "Move it behind the `finally` block."),
    "identical-branches": Rule("medium", "Drop the condition, or mend the branch that was copied."),
    "raise-notimplemented": Rule("high", "Raise NotImplementedError instead."),
}
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def check_unreachable(source: Source) -> Iterator[Hit]:
    """Statements behind one that always leaves the block."""
    if source.is_test and not source.name.rpartition("/")[2].startswith("test_"):
        return  # a sample for a test may be broken on purpose
    for node in source.nodes:
        for block in blocks(node):
            for before, after in pairwise(block):
                if isinstance(before, _LEAVES) and not _makes_generator(after):
                    word = type(before).__name__.lower()
                    message = f"This never runs: the `{word}` on line {before.lineno} leaves the block."
                    yield Hit("unreachable-code", after.lineno, message, end=last_line(after))
                    break


def _makes_generator(statement: ast.stmt) -> bool:
    """A `yield` that never runs still makes its function a generator: a known idiom."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))


def check_handlers(source: Source) -> Iterator[Hit]:
    """Handlers that hide failures, and handlers that never get one."""
    followed = _followed(source) if source.of(ast.Try) else set()
    deleting = [
        each for each in source.functions if each.name == "__del__"
    ]  # where nobody could catch anything
    finalizing = {line for each in deleting for line in range(each.lineno, last_line(each) + 1)}
    for node in source.of(ast.Try):
        yield from _late_handlers(node)
        yield from _leaving_finally(node)
        answers = node in followed and any(isinstance(each, ast.Return) for each in node.body)
        answers = answers or node.lineno in finalizing
        for handler in node.handlers:
            yield from _hiding(source, handler, answers)


def _followed(source: Source) -> set[ast.stmt]:
    """Statements behind which something stands: where these return early, falling through is an answer."""
    return {before for node in source.nodes for block in blocks(node) for before, _ in pairwise(block)}


def _hiding(source: Source, handler: ast.ExceptHandler, answers: bool) -> Iterator[Hit]:
    broad = handler.type is None or dotted(handler.type) in ("Exception", "BaseException")
    explained = any(line in source.comments for line in range(handler.lineno - 1, last_line(handler) + 1))
    quiet = all(isinstance(each, ast.Pass | ast.Continue) or _is_literal(each) for each in handler.body)
    if broad and quiet and not explained and not answers and source.is_product:
        caught = dotted(handler.type) or "everything"
        message = f"Every failure vanishes here: `except` catches {caught}, and nothing tells of it."
        yield Hit("swallowed-exception", handler.lineno, message, end=last_line(handler))
    elif handler.type is None and not _raises(handler):
        message = (
            "A bare `except:` also catches Ctrl-C and the exit of the program, and does not raise them again."
        )
        yield Hit("bare-except", handler.lineno, message, end=handler.lineno + 1)


def _is_literal(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _raises(handler: ast.ExceptHandler) -> bool:
    exits = ("sys.exit", "os._exit", "exit", "quit")
    for node in within(handler):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and dotted(node.func) in exits):
            return True
        if isinstance(node, ast.Call) and dotted(node.func).endswith("exc_info"):
            return True  # it is handed on
    return False


def _late_handlers(node: ast.Try) -> Iterator[Hit]:
    earlier: list[type[BaseException]] = []
    for handler in node.handlers:
        kinds = [_builtin_exception(each) for each in _caught(handler)]
        for kind in kinds:
            broader = next((each for each in earlier if kind and issubclass(kind, each)), None)
            if kind and broader:
                message = (
                    f"`except {kind.__name__}` never gets anything: `except {broader.__name__}` stands "
                    "before it."
                )
                yield Hit("unreachable-except", handler.lineno, message)
        earlier += [kind for kind in kinds if kind]


def _caught(handler: ast.ExceptHandler) -> list[ast.expr]:
    if isinstance(handler.type, ast.Tuple):
        return handler.type.elts
    return [handler.type] if handler.type else []


def _builtin_exception(node: ast.expr) -> type[BaseException] | None:
    kind = getattr(builtins, dotted(node), None) if dotted(node) else None
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


def _leaving_finally(node: ast.Try) -> Iterator[Hit]:
    for statement in node.finalbody:
        for each in (statement, *within(statement)):
            inside_loop = isinstance(statement, ast.For | ast.While | ast.AsyncFor)
            loses = isinstance(each, ast.Return) or (
                isinstance(each, ast.Break | ast.Continue) and not inside_loop
            )
            if loses and not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                word = type(each).__name__.lower()
                message = f"`{word}` in `finally` makes an exception on its way out vanish."
                yield Hit("return-in-finally", each.lineno, message)


def check_branches(source: Source) -> Iterator[Hit]:
    """`if` and `else` that do the same."""
    for node in source.of(ast.If):
        if isinstance(node, ast.If) and node.orelse and _same(node.body, node.orelse):
            message = "Both branches of this `if` are the same, so its condition decides nothing."
            yield Hit("identical-branches", node.lineno, message, end=last_line(node))


def _same(left: list[ast.stmt], right: list[ast.stmt]) -> bool:
    return [ast.dump(each) for each in left] == [ast.dump(each) for each in right]


def check_raise(source: Source) -> Iterator[Hit]:
    """`raise NotImplemented`, which raises a TypeError."""
    for node in source.of(ast.Raise):
        raised = node.exc if isinstance(node, ast.Raise) else None
        raised = raised.func if isinstance(raised, ast.Call) else raised
        if dotted(raised) == "NotImplemented":
            message = "`NotImplemented` is a value, no exception: raising it gives a TypeError."
            yield Hit("raise-notimplemented", node.lineno, message)


FLOW_CHECKS = (check_unreachable, check_handlers, check_branches, check_raise)
