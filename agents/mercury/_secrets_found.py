"""Secrets that are written down, made or hashed weakly, or logged; guards that fail; SQL made of text."""

import ast
import re
from collections.abc import Iterator

from _finding import Hit, Rule, masked
from _nodes import (
    FUNCTIONS,
    Function,
    aliases,
    dotted,
    full_name,
    functions,
    is_constant,
    keyword,
    within,
    words,
)
from _source import Source

SECRET_RULES = {
    "hard-coded-secret": Rule(
        "high", "Read it from the environment or a key store, and replace it: it is known now."
    ),
    "weak-hash": Rule(
        "high", "For passwords use hashlib.scrypt or argon2; for signatures SHA-256 or better."
    ),
    "weak-random": Rule("high", "Use the module `secrets`."),
    "secret-in-log": Rule("medium", "Leave it out, or log only that it is there."),
    "assert-as-guard": Rule("medium", "Raise an exception: `python -O` removes assertions."),
    "timing-comparison": Rule("medium", "Use hmac.compare_digest."),
    "sql-injection": Rule("high", "Use placeholders, and pass the values as parameters."),
}
_SECRET_NAME = re.compile(
    r"(^|_)(password|passwd|pwd|secret|secret_key|api_?key|auth_?token|access_?token|token|private_?key)$",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"(^|_)(password|passwd|pwd|secret|api_?key|private_?key|credential)s?($|_)", re.IGNORECASE
)
_PURPOSE = re.compile(
    r"password|passwd|secret|token|nonce|salt|session_?id|otp|api_?key|signature", re.IGNORECASE
)
_PLACEHOLDER = re.compile(
    r"example|change|your|dummy|test|sample|placeholder|redacted|xxx|todo|none|default|secret$|password$|^<|^\$|\{|\s|^\*+$|…|\.\.\.",
    re.IGNORECASE,
)
_KNOWN = re.compile(
    r"\b(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|sk_live_[A-Za-z0-9]{16,}|xox[bp]-[A-Za-z0-9-]{20,}|AIza[\w-]{35})\b"
    r"|-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----"
)
_RANDOM = frozenset(
    f"random.{name}"
    for name in ["random", "choice", "choices", "randint", "randrange", "sample", "getrandbits", "shuffle"]
)
_LOGGING = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})
_GUARD = re.compile(
    r"^(is_)?(admin|superuser|staff|authenticated|authorized|authorised|allowed|permitted|logged_in)$|^(has_perm|has_permission|check_password|verify_token|verify_signature|check_permission)s?$",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"^\s*(select\s.+\sfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|drop\s+table|replace\s+into)\b",
    re.IGNORECASE | re.DOTALL,
)


def check_literals(source: Source) -> Iterator[Hit]:
    """Secrets in the source: by the name they are given, or by their form."""
    seen: set[int] = set()
    for name, node in _named_texts(source):
        if _SECRET_NAME.search(name) and looks_secret(node.value):
            seen.add(node.lineno)
            message = (
                f"`{name}` is written into the source ({masked(node.value)}): everybody who can read the "
                "code has it."
            )
            yield Hit("hard-coded-secret", node.lineno, message, secret=node.value)
    for node in source.of(ast.Constant) if not source.is_test else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno not in seen:
            match = _KNOWN.search(node.value)
            if match and (
                match[0][0] != "-" or len(node.value) > 2 * len(match[0])
            ):  # a heading alone is no key
                message = (
                    f"This has the form of a real key ({masked(match[0])}): everybody who can read the "
                    "code has it."
                )
                yield Hit("hard-coded-secret", node.lineno, message, secret=match[0])


def looks_secret(text: object) -> bool:
    """Whether a text may be a real secret, rather than a placeholder, a label or a name of one."""
    if not isinstance(text, str) or not 8 <= len(text) <= 200 or _PLACEHOLDER.search(text):
        return False
    kinds = (r"[a-z]", r"[A-Z]", r"\d", r"[^\w]")
    return (
        bool(re.search(r"\d", text))
        and sum(bool(re.search(kind, text)) for kind in kinds) >= 2
        and "/" not in text[:1]
    )


def _named_texts(source: Source) -> Iterator[tuple[str, ast.Constant]]:
    """Texts that are given a name: assigned, passed by keyword, or under a key."""
    for node in source.of(ast.Assign, ast.AnnAssign, ast.Call, ast.Dict) if not source.is_test else ():
        pairs: list[tuple[str, ast.AST | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(dotted(target).rpartition(".")[2], node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(dotted(node.target).rpartition(".")[2], node.value)]
        elif isinstance(node, ast.Call):
            pairs = [(each.arg or "", each.value) for each in node.keywords]
        elif isinstance(node, ast.Dict):
            pairs = [
                (str(key.value), value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        for name, value in pairs:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield name, value


def check_purpose(source: Source) -> Iterator[Hit]:
    """Weak hashes and weak randomness where the names around say that it is about a secret."""
    names = aliases(source)
    for function in functions(source) if not source.is_test else ():
        for statement in within(function):
            if not isinstance(statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign):
                continue
            purpose = _purpose(function, statement)
            for node in ast.walk(statement) if purpose else ():
                if isinstance(node, ast.Call):
                    yield from _weak(node, full_name(node.func, names), purpose)


def _purpose(function: Function, statement: ast.stmt) -> str:
    """What the statement is about, if a name says that it is a secret."""
    goals = getattr(statement, "targets", [getattr(statement, "target", None)])
    candidates = [dotted(goal).rpartition(".")[2] for goal in goals if goal is not None]
    return next((name for name in [*candidates, function.name] if _PURPOSE.search(name)), "")


def _weak(node: ast.Call, name: str, purpose: str) -> Iterator[Hit]:
    first = node.args[0] if node.args else None
    algorithm = (
        first.value if name == "hashlib.new" and isinstance(first, ast.Constant) else name.rpartition(".")[2]
    )
    is_hash = name in ("hashlib.md5", "hashlib.sha1") or (
        name == "hashlib.new" and algorithm in ("md5", "sha1")
    )
    if (
        is_hash
        and not is_constant(keyword(node, "usedforsecurity"), False)
        and re.search(r"passw|secret|token|signature", purpose)
    ):
        message = (
            f"`{algorithm}` guards `{purpose}`; it can be computed so fast, and forged so well, that it "
            "guards nothing."
        )
        yield Hit("weak-hash", node.lineno, message)
    if name in _RANDOM:
        message = (
            f"`{name}` makes `{purpose}` from numbers that can be predicted once some of them are known."
        )
        yield Hit("weak-random", node.lineno, message)


def check_logs(source: Source) -> Iterator[Hit]:
    """Secrets in log messages."""
    for node in source.calls if not source.is_test else ():
        if isinstance(node, ast.Call) and _logs(node.func):
            leaked = [name for each in node.args for name in _values(each) if _SENSITIVE.search(name)]
            if leaked:
                message = f"`{leaked[0]}` is written to the log, where it stays and is read by many."
                yield Hit("secret-in-log", node.lineno, message)


def _logs(function: ast.expr) -> bool:
    """Whether a call is one of a logger's."""
    if not isinstance(function, ast.Attribute) or function.attr not in _LOGGING:
        return False
    return bool(re.search(r"(^|\.|_)log(ger|ging)?$", dotted(function.value), re.IGNORECASE))


def _values(node: ast.expr) -> Iterator[str]:
    """The names whose values end up in a text: not those that are only asked something or measured."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield dotted(node).rpartition(".")[2]
    elif isinstance(node, ast.JoinedStr):
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                yield from _values(each.value)
    elif isinstance(node, ast.BinOp):
        yield from _values(node.left)
        yield from _values(node.right)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from _values(item)


def check_guards(source: Source) -> Iterator[Hit]:
    """Assertions that decide who may do something, and comparisons whose time tells how much was right."""
    for node in source.of(ast.Assert, ast.Compare) if source.is_product else ():
        if isinstance(node, ast.Assert):
            word = next((word for word in sorted(words(node.test)) if _GUARD.match(word)), "")
            if word:
                message = f"`assert` on `{word}` guards something; with `python -O` the guard is gone."
                yield Hit("assert-as-guard", node.lineno, message)
        elif isinstance(node, ast.Compare) and any(_is_mac(side) for side in (node.left, *node.comparators)):
            message = (
                "Comparing a signature with `==` takes longer the more of it is right: it can be guessed."
            )
            yield Hit("timing-comparison", node.lineno, message)


def _is_mac(node: ast.expr) -> bool:
    called = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("digest", "hexdigest")
    )
    return called and "hmac.new" in ast.unparse(node)


def check_sql(source: Source) -> Iterator[Hit]:
    """SQL into which values are put as text."""
    for node in source.calls if not source.is_test else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("execute", "executemany", "executescript")
        ):
            built = _built_sql(node.args[0], source, node) if node.args else None
            if built is not None:
                message = (
                    f"The statement for `{node.func.attr}` is put together from text; a value with a quote "
                    "in it changes what it does."
                )
                yield Hit("sql-injection", built.lineno, message)


def _built_sql(node: ast.expr, source: Source, call: ast.Call) -> ast.expr | None:
    """The expression that puts SQL together from values, if that is what the argument is."""
    if isinstance(node, ast.Name):
        assigned = _last_assigned(source, node.id, call)
        return (
            _built_sql(assigned, source, call)
            if assigned is not None and not isinstance(assigned, ast.Name)
            else None
        )
    texts = [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    varies = any(
        isinstance(each, ast.Name | ast.Attribute) and not _fixed_name(each) for each in _put_in(node)
    )
    return node if varies and texts and _SQL.match(" ".join(texts)) else None


def _put_in(node: ast.expr) -> list[ast.expr]:
    """What is put into a text: by f-string, `%`, `+` or `.format`."""
    if isinstance(node, ast.JoinedStr):
        return [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.Add):
        right = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return [*right, *(_put_in(node.left) if isinstance(node.op, ast.Add) else [])]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return [*node.args, *(each.value for each in node.keywords)]
    return []


def _fixed_name(node: ast.expr) -> bool:
    """Constants and names of tables, which are no values."""
    last = dotted(node).rpartition(".")[2]
    return last.isupper() or bool(
        re.search(r"table|column|schema|placeholder|where|order|limit|clause|fields", last, re.IGNORECASE)
    )


def _last_assigned(source: Source, name: str, call: ast.Call) -> ast.expr | None:
    """What a local name was last given before a call, in the same function."""
    for function in source.functions:
        if isinstance(function, FUNCTIONS) and call in set(within(function)):
            given = [
                node
                for node in within(function)
                if isinstance(node, ast.Assign) and dotted(node.targets[0]) == name
            ]
            before = [node for node in given if node.lineno < call.lineno]
            return max(before, key=lambda node: node.lineno).value if before else None
    return None


SECRET_CHECKS = (check_literals, check_purpose, check_logs, check_guards, check_sql)
