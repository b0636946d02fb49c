"""Structure: how the code is built. Size, tangles, dead code, and mistakes that Python accepts.

The filters below say which hits of ruff are worth telling: those a maintainer would agree with.
"""

import builtins
import re
from typing import Any

from _finding import Hit
from _project import Source, indent
from _specialist import review
from _structure_checks import STRUCTURE_CHECKS

from orchestra import Result

MIN_BLANKET = 3
_MAPPED = re.compile(r"\b(sqlalchemy|peewee|pony|numpy|pandas|polars)\b")
_BLANKET = re.compile(r"#\s*(type:\s*ignore|noqa)\s*($|#)", re.MULTILINE)
_GOES_ON = re.compile(r"\braise\b|exc_info|\bexit\(|\bquit\(")
_ALTERING = "(append|extend|insert|pop|remove|clear|add|discard|update|setdefault)"
_MAKING = ("__init__", "__new__", "__setstate__", "__post_init__")
_CHANGES = re.compile(rf"\bself\.\w+(\[.*\])?(\s*[-+|&]?=[^=]|\.{_ALTERING}\()")


def _quoted(hit: Hit) -> str:
    """The name a message speaks of."""
    match = re.search(r"`([^`]+)`", hit.message)
    return match[1] if match else ""


def _swallows(source: Source, hit: Hit) -> bool:
    """Nobody says why, and it is not where nothing can be done about a failure."""
    return not source.has_comment(hit.line - 1, hit.end) and source.function(hit.line)[1] != "__del__"


def _keeps(source: Source, hit: Hit) -> bool:
    """A bare `except:` that lets nothing go on; an empty one is said to swallow already."""
    block = source.block(hit.line)
    return not _GOES_ON.search(block) and not re.fullmatch(
        r"\s*except\s*:\s*(pass|continue|\.\.\.)\s*", block
    )


def _is_unused(source: Source, hit: Hit) -> bool:
    """Imported whatever happens, and no other file imports it from here."""
    line, before = source.line(hit.line), source.line(hit.line - 1)
    if source.name.endswith("__init__.py") or (indent(line) and not re.search(r"[(,]\s*$", before)):
        return False
    name = re.split(r"[. ]", _quoted(hit))[-1]
    taken = re.compile(rf"from\s+[\w.]*{source.path.stem}\s+import\s+(\([^)]*|[^\n]*)\b{name}\b")
    return not any(name in each.text and taken.search(each.text) for each in source.project.sources.values())


def _is_shared(source: Source, hit: Hit) -> bool:
    """Whether a default that all calls share is changed or let out; one that is only read does no harm."""
    named = re.search(r"(\w+)\s*(?::[^=]*)?=\s*$", source.line(hit.line)[: hit.column - 1])
    if hit.code != "B006" or named is None:
        return True
    name, body = named[1], source.block(source.function(hit.line)[0] or hit.line)
    changed = rf"\b{name}(\.{_ALTERING}\(|\[[^]]*\]\s*=[^=]|\s*[-+|&]=)"
    return bool(re.search(rf"{changed}|\b(return|yield)\s+{name}\s*$|=\s*{name}\s*$", body, re.MULTILINE))


def _is_called(source: Source, hit: Hit) -> bool:
    """Whether the builtin whose name was taken is called further down in the same function."""
    name, (head, _) = _quoted(hit), source.function(hit.line)
    below = source.block(head).splitlines()[hit.line - head + 1 :] if head else ()
    return hasattr(builtins, name) and any(re.search(rf"(?<![\w.]){name}\(", line) for line in below)


def _is_value(source: Source, hit: Hit) -> bool:
    """A class whose objects do not change after they were made, so that a hash would make sense."""
    plain = re.match(r"class \w+:", source.line(hit.line)) and not source.line(hit.line - 1).startswith("@")
    methods = [
        each for each in re.split(r"\bdef ", source.block(hit.line))[1:] if not each.startswith(_MAKING)
    ]
    return bool(plain) and not any(_CHANGES.search(each) for each in methods)


def _is_ours_alone(source: Source, hit: Hit) -> bool:
    """A parameter of a private function that is only called, in its own file: nobody else decides."""
    head, name = source.function(hit.line)
    decorated = source.line(head - 1).lstrip().startswith("@")
    if decorated or not re.match("_[a-z]", name) or re.search(r"NotImplemented|locals\(", source.block(head)):
        return False
    return source.project.private_names[name] == len(re.findall(rf"(?<!\w){name}\(", source.text))


def _checks_argument(source: Source, hit: Hit) -> bool:
    """An assertion that compares what a public function was given; types are narrowed for a checker."""
    match = re.match(r"\s*assert (?:not )?(\w+)( (?:[<>=!]=?|in|not in|is) .*)?$", source.line(hit.line))
    if match is None or not source.in_package or "is not None" in match[0]:
        return False
    head, name = source.function(hit.line)
    inside = any(re.match(r"(async )?def ", line) for _, line in source.heads(head))
    if inside or (name.startswith("_") and name not in ("__init__", "__call__")):
        return False
    signature = re.split(r"\)\s*(?:->[^:]*)?:\s*$", source.block(head), maxsplit=1, flags=re.MULTILINE)[0]
    between = "\n".join(source.lines[head : hit.line - 1])
    given = re.search(rf"[(,\s]{match[1]}\s*[:,=]", signature + ",")
    return bool(given) and not re.search(rf"\b{match[1]}\s*=[^=]", between.removeprefix(signature))


def _is_plain(source: Source, hit: Hit) -> bool:
    """Not decorated: what a decorator makes of a function may be called in another way."""
    return not re.match(r"\s*[@)]", source.line(hit.line - 1))


def _deprecates(source: Source, hit: Hit) -> bool:
    return "deprecat" in "\n".join(source.lines[max(0, hit.line - 4) : hit.line + 5]).lower()


def _is_foreign(source: Source, hit: Hit) -> bool:
    """Of another package, and imported whatever happens."""
    line, taken = source.line(hit.line), re.search(r"module `(\w+)", hit.message)
    own = taken is not None and taken[1] in source.project.packages
    return not indent(line) and not own and not re.search(r"import (_thread|__future__)\b", line)


FILTERS = {
    "syntax-error": lambda source, hit: "syntax was added" not in hit.message,
    "swallowed-exception": _swallows,
    "bare-except": _keeps,
    "unused-import": _is_unused,
    "mutable-default": _is_shared,
    "star-import": lambda source, hit: not source.name.endswith("__init__.py"),
    "shadowed-builtin": _is_called,
    "unclosed-file": lambda source, hit: bool(re.search(r"open\(.*\)\.(read|write)", source.line(hit.line))),
    "missing-encoding": lambda source, hit: "devnull" not in source.line(hit.line),
    "none-comparison": lambda source, hit: not _MAPPED.search(source.text),
    "unused-parameter": _is_ours_alone,
    "many-positional": _is_plain,
    "blanket-ignore": lambda source, hit: len(_BLANKET.findall(source.text)) >= MIN_BLANKET,
    "eq-without-hash": _is_value,
    "assert-on-argument": _checks_argument,
    "warning-without-stacklevel": _deprecates,
    "private-api": _is_foreign,
}


def agent(ctx: Any) -> Result:
    """What is found about the structure of the project."""
    return review(ctx, "structure", FILTERS, STRUCTURE_CHECKS)
