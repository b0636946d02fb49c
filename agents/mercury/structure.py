"""Structure: how the code is built. Size, tangles, dead code, and mistakes that Python accepts."""

import ast
import builtins
import re
from typing import Any

from _finding import Hit, Rule
from _project import Source, indent
from _specialist import review
from _structure_checks import STRUCTURE_CHECKS

from orchestra import Result

KIND = "structure"
_MAPPED = re.compile(r"\b(sqlalchemy|peewee|pony|numpy|pandas|polars)\b")
_GOES_ON = re.compile(r"\braise\b|exc_info|\bexit\(|\bquit\(")
_QUOTED = re.compile(r"`([^`]+)`")
_ALTERING = frozenset("append extend insert pop remove clear add discard update setdefault".split())
_MAKING = frozenset({"__init__", "__new__", "__setstate__", "__post_init__"})


def _quoted(hit: Hit) -> str:
    """The name a message speaks of."""
    match = _QUOTED.search(hit.message)
    return match[1] if match else ""


def _is_broken(source: Source, hit: Hit) -> bool:
    return "syntax was added" not in hit.message  # that one is about older Pythons only


def _hides(source: Source, hit: Hit) -> bool:
    """Nobody says why, and it is not where nothing can be done about a failure."""
    return not source.has_comment(hit.line - 1, hit.end) and source.function(hit.line)[1] != "__del__"


def _keeps(source: Source, hit: Hit) -> bool:
    """A bare `except:` that lets nothing go on; one that is empty is said to swallow already."""
    block = source.block(hit.line)
    return not _GOES_ON.search(block) and not re.fullmatch(r"\s*except\s*:\s*(pass|continue|\.\.\.)\s*", block)


def _unused_anywhere(source: Source, hit: Hit) -> bool:
    """Imported whatever happens, and no other file imports it from here."""
    if indent(source.line(hit.line)) and "(" not in source.line(hit.line - 1) or source.name.endswith("__init__.py"):
        return False
    name = re.split(r"[. ]", _quoted(hit))[-1]
    taken = re.compile(rf"from\s+[\w.]*{source.path.stem}\s+import\s+(\([^)]*|[^\n]*)\b{name}\b")
    return not any(name in each.text and taken.search(each.text) for each in source.project.sources.values())


def _is_called(source: Source, hit: Hit) -> bool:
    """Whether the builtin whose name was taken is called in the same function further down."""
    name, (head, _) = _quoted(hit), source.function(hit.line)
    below = source.block(head).splitlines()[hit.line - head + 1 :] if head else ()
    return hasattr(builtins, name) and any(re.search(rf"(?<![\w.]){name}\(", line) for line in below)


def _read_at_once(source: Source, hit: Hit) -> bool:
    return bool(re.search(r"open\(.*\)\.(read|write)", source.line(hit.line)))


def _is_value(source: Source, hit: Hit) -> bool:
    """A class whose objects do not change after they were made, so that a hash would make sense."""
    node = next((each for each in source.of(ast.ClassDef) if each.lineno == hit.line), None)
    if node is None or node.bases or node.decorator_list or node.keywords:
        return False
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    later = [each for each in methods if each.name not in _MAKING]
    return not any(_alters(inner) for each in later for inner in ast.walk(each))


def _alters(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ALTERING:
        return ast.unparse(node.func.value).startswith("self.")
    stored = isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)
    return stored and ast.unparse(node).startswith("self.")


def _is_private(source: Source, hit: Hit) -> bool:
    """A parameter of a private function that is only called: nobody else decides what it takes."""
    head, name = source.function(hit.line)
    decorated = source.line(head - 1).lstrip().startswith("@")
    if decorated or not re.match("_[a-z]", name) or re.search(r"NotImplemented|locals\(", source.block(head)):
        return False
    texts = [each.text for each in source.project.sources.values()]
    return source.project.words[name] == sum(len(re.findall(rf"\b{name}\(", text)) for text in texts)


def _deprecates(source: Source, hit: Hit) -> bool:
    return "deprecat" in "\n".join(source.lines[max(0, hit.line - 4) : hit.line + 5]).lower()


def _is_foreign(source: Source, hit: Hit) -> bool:
    """Of another package, and imported whatever happens."""
    line = source.line(hit.line)
    own = re.match(rf"\s*(from|import)\s+{re.escape(source.module.partition('.')[0])}\b", line)
    return not indent(line) and not own and not re.search(r"import (_thread|__future__)\b", line)


RULES = {
    "syntax-error": Rule(
        "high", "Mend the syntax; until then the file can be neither imported nor reviewed.",
        "invalid-syntax", "all", _is_broken, once=True,
    ),
    "wrong-encoding": Rule("medium", "Save the file as UTF-8, or declare its encoding in the first line."),
    "unreadable-file": Rule("medium", "Give the file permissions that let tools read it."),
    "invalid-escape": Rule("low", "Double the backslash, or write a raw string: r'…'.", "W605", "all"),
    "long-file": Rule("low", "Split it by subject into modules that can be read in one go."),
    "long-function": Rule("low", "Move its steps into functions with names of their own.", "PLR0915"),
    "complex-function": Rule("medium", "Split it along its branches, or replace chains of conditions by a table.", "C901"),
    "deep-nesting": Rule("low", "Return early, or move the inner blocks into functions.", "PLR1702"),
    "duplicated-function": Rule("low", "Keep one and use it in both places."),
    "unreachable-code": Rule("medium", "Remove it, or move it before the statement that leaves."),
    "unreachable-except": Rule("medium", "Put the narrower handler before the broader one."),
    "swallowed-exception": Rule(
        "medium", "Catch what you expect, and log or explain in a comment why the rest may vanish.",
        "S110 S112", only=_hides,
    ),
    "bare-except": Rule("medium", "Write `except Exception:`, or raise again what was caught.", "E722", only=_keeps),
    "return-in-finally": Rule("medium", "Move it behind the `finally` block: here it makes exceptions vanish.", "B012"),
    "identical-branches": Rule("medium", "Drop the condition, or mend the branch that was copied.", "RUF034"),
    "raise-notimplemented": Rule("high", "Raise NotImplementedError: the value raises a TypeError.", "F901"),
    "undefined-name": Rule("high", "Define or import it, or correct its name: here it is a NameError.", "F821 F823"),
    "unused-import": Rule(
        "low", "Remove it; if others are to import it from here, name it in `__all__`.", "F401", only=_unused_anywhere
    ),
    "import-cycle": Rule("medium", "Move what both need into a third module, or import inside the function that uses it."),
    "star-import": Rule("low", "Name what you import.", "F403", only=lambda source, _: not source.name.endswith("__init__.py")),
    "mutable-default": Rule("medium", "Use None and make the value inside: all calls share this one.", "B006 B039 RUF008 RUF024"),
    "shadowed-builtin": Rule("low", "Give it another name.", "A001", only=_is_called),
    "is-literal": Rule("high", "Write `==`; whether two equal values are one object is chance.", "F632"),
    "duplicate-key": Rule("medium", "Remove one; the last wins.", "F601 F602 PLE0241 PIE794 PIE796"),
    "redefined-function": Rule("medium", "Remove one, or give it another name: the first is never used.", "F811"),
    "strip-characters": Rule("medium", "Use removeprefix or removesuffix; `strip` takes off single characters.", "B005"),
    "pointless-comparison": Rule("medium", "Assign or assert it; like this it does nothing.", "B015"),
    "wrong-format": Rule(
        "medium", "Make the text and what is put into it fit.",
        "F501 F502 F503 F504 F505 F506 F507 F508 F509 F521 F522 F523 F524 F525 PLE1205 PLE1206 PLE1300 PLE1307",
    ),
    "certain-mistake": Rule(
        "high", "Write what was meant; this cannot be it.",
        "B002 B003 B016 B018 B020 B021 B025 B029 B030 B032 B035 F502 F622 F633 F634 F702 F704 F706 F707 PLE0100 PLE0101 "
        "PLE0115 PLE0117 PLE0118 PLE0237 PLE0302 PLE0303 PLE0305 PLE0307 PLE0308 PLE0604 PLE0605 PLE0643 PLE0704 "
        "PLE1132 PLE1141 PLE1507 PLE1519 PLE1520 PLE1700 PLE2502 PLW0127 PLW0129 PLW0133 PLW0177 PLW0211 PLW0245 "
        "PLW0711 PLW1501 PLW1508 PLW2101 PLR1708 RUF016 RUF040",
    ),
    "debugger-left": Rule("medium", "Remove it: the program stops there.", "T100"),
    "unclosed-file": Rule("low", "Open it in a `with` block.", "SIM115", only=_read_at_once),
    "assert-tuple": Rule("high", "Remove the parentheses: a tuple is always true.", "F631"),
    "missing-await": Rule("high", "Write `await` before it.", "ASYNC105"),
    "lost-task": Rule("medium", "Keep the task until it is done, or use a task group: it may vanish before.", "RUF006"),
    "blocking-in-async": Rule(
        "medium", "Use the async form, or move the call into a thread: it stops the whole loop.",
        "ASYNC210 ASYNC212 ASYNC220 ASYNC221 ASYNC222 ASYNC250 ASYNC251",
    ),
    "unused-variable": Rule("low", "Remove it, or name it `_` if the call is needed for what it does.", "F841"),
    "unused-private": Rule("low", "Remove it; version control keeps it should it be needed again."),
    "missing-encoding": Rule(
        "low", "Pass encoding='utf-8'; without it other machines read it differently.",
        "PLW1514", only=lambda source, hit: "devnull" not in source.line(hit.line),
    ),
    "none-comparison": Rule(
        "low", "Write `is None` or `is not None`.", "E711", only=lambda source, _: not _MAPPED.search(source.text)
    ),
    "many-positional": Rule("low", "Let callers name them, behind a `*`: swapped ones are not noticed.", "PLR0917"),
    "unused-parameter": Rule("low", "Remove it, or use it; its callers believe it matters.", "ARG001 ARG002", only=_is_private),
    "eq-without-hash": Rule("low", "Add `__hash__`, or `__hash__ = None` if it is meant so.", "PLW1641", only=_is_value),
    "warning-without-stacklevel": Rule(
        "low", "Pass `stacklevel=2`, so that the warning names the caller, who has to act.",
        "B028", only=_deprecates, once=True,
    ),
    "raise-without-from": Rule("low", "Add `from error`, or `from None`: which failure led to which?", "B904", once=True),
    "private-api": Rule(
        "low", "Use the public way, or guard it: the next release may remove it.", "PLC2701", only=_is_foreign, once=True
    ),
    "blanket-ignore": Rule(
        "low", "Name the code: `# type: ignore[arg-type]`, `# noqa: F401`; this hides later mistakes too.",
        "PGH003 PGH004", once=True,
    ),
    "overdue-removal": Rule("low", "Remove it now, or announce another date."),
}  # fmt: skip


def agent(ctx: Any) -> Result:
    """What is found about the structure of the project."""
    return review(ctx, KIND, RULES, STRUCTURE_CHECKS)
