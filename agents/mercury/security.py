"""Security: calls that run data as code, trust what must not be trusted, or give secrets away."""

import re
from collections.abc import Iterator
from typing import Any

from _finding import Hit, masked
from _project import Project, Source
from _specialist import review
from _tools import Tools

from orchestra import Result

_PURPOSE = re.compile(r"passw|secret|token|nonce|salt|session_?id|otp\b|api_?key|signature", re.IGNORECASE)
_GUARDED = re.compile(r"passw|secret|token|signature", re.IGNORECASE)
_GUARD = re.compile(
    r"\b(is_)?(admin|superuser|staff|authenticated|authori[sz]ed|allowed|permitted|logged_in)\b"
    r"|\b(has_perm(ission)?|check_password|verify_token|verify_signature|check_permission)s?\b"
)
_LISTENS = re.compile(r"\bhost\s*=|\.(bind|run|listen)\(|serve|Server\(")
_FIXED = re.compile(r"table|column|schema|placeholder|where|order|limit|clause|fields", re.IGNORECASE)
_TEXT_GIVEN = re.compile(r"[:=][ \t]*([\"'])(?P<value>(?=[^\"'\n]*\d)[^\"'\s]{8,200})\1")
_SECRET_NAME = re.compile(
    r"(\w*(?:password|passwd|pwd|secret|secret_?key|api_?key|token|private_?key))[\"']?\s*(?::\s*[\w.]+\s*)?$",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"example|change|your|dummy|test|sample|placeholder|redacted|xxx|todo|none|default|secret$|password$|^[</$]|\{|\s|^\*+$|…|\.\.\.",
    re.IGNORECASE,
)
_KNOWN = re.compile(
    r"\b(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|sk_live_[A-Za-z0-9]{16,}|xox[bp]-[A-Za-z0-9-]{20,}|AIza[\w-]{35})\b"
    r"|-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----[\\n\s]+[A-Za-z0-9+/=]{20,}"
)
_MARKS = (
    "AKIA",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "sk_live_",
    "xoxb-",
    "xoxp-",
    "AIza",
    "PRIVATE KEY-----",
)
_LOGS = re.compile(
    r"(?:^|[\s._])log(?:ger|ging)?\.(?:debug|info|warning|error|critical|exception|log)\((?P<rest>.*)",
    re.IGNORECASE,
)
_LEAK = re.compile(
    r"(?<![\w(])(?:\w+\.)*(\w*_)?(password|passwd|pwd|secret|api_?key|private_?key|credential)s?(?=\s*[,)}!:]|\s*$)"
)
_TEXT = re.compile(r"(?<!f)(\"[^\"]*\"|'[^']*')")
_MAC = re.compile(r"hmac\.new\(.*digest\(\)\s*[!=]=|[!=]=\s*hmac\.new\(.*digest\(\)")


def _runs_text(source: Source, hit: Hit) -> bool:
    """Not code that was compiled on purpose, nor a text that is fixed."""
    head, _ = source.function(hit.line)
    around = source.block(head) if head else source.line(hit.line)
    fixed = re.search(r"\b(eval|exec)\(\s*[\"'][^\"']*[\"']\s*[,)]", source.line(hit.line))
    return not fixed and not re.search(r"\bcompile\(|CodeType", around)


def _is_foreign_data(source: Source, hit: Hit) -> bool:
    """Not data the same file made, unless it lay in a file meanwhile."""
    module = re.search(r"\b(pickle|marshal|dill)\b", source.line(hit.line))
    made = module and re.search(rf"\b{module[1]}\.dumps?\(", source.text)
    return not made or "open(" in source.line(hit.line)


def _is_about(pattern: re.Pattern[str]) -> Any:
    """Whether the line, or the name of its function, says that it is about a secret."""
    return lambda source, hit: bool(pattern.search(f"{source.function(hit.line)[1]} {source.line(hit.line)}"))


def _takes_values(source: Source, hit: Hit) -> bool:
    """Whether what is put into a statement may be a value; names of tables and the like are none."""
    put = re.findall(r"\{([\w.]+)", "\n".join(source.lines[hit.line - 1 : hit.end]))
    names = [name.rpartition(".")[2] for name in put]
    return not put or any(not _FIXED.search(name) and not name.isupper() for name in names)


FILTERS = {
    "dangerous-eval": _runs_text,
    "shell-injection": lambda source, hit: "seems safe" not in hit.message,
    "unsafe-load": _is_foreign_data,
    "binds-everywhere": lambda source, hit: bool(
        _LISTENS.search("\n".join(source.lines[hit.line - 2 : hit.line]))
    ),
    "weak-hash": _is_about(_GUARDED),
    "weak-random": _is_about(_PURPOSE),
    "assert-as-guard": lambda source, hit: bool(_GUARD.search(source.line(hit.line).partition(",")[0])),
    "sql-injection": _takes_values,
}


def check_secrets(project: Project, _: Tools) -> Iterator[Hit]:
    """Secrets in the source, by the name they are given or by their form."""
    for source in (each for each in project.sources.values() if not each.is_test):
        for line, match in source.matches(_TEXT_GIVEN):
            before = source.text[max(0, match.start() - 80) : match.start()].rpartition("\n")[2]
            name = _SECRET_NAME.search(before)
            if name and _looks_secret(match["value"]):
                message = f"`{name[1]}` is in the source ({masked(match['value'])}): whoever reads it has it."
                yield Hit("hard-coded-secret", source.name, line, message, secret=match["value"])
        for line, match in source.matches(_KNOWN) if any(mark in source.text for mark in _MARKS) else ():
            message = f"This has the form of a real key ({masked(match[0])}): whoever reads it has it."
            yield Hit("hard-coded-secret", source.name, line, message, secret=match[0])


def _looks_secret(text: str) -> bool:
    """Whether a text may be a real secret, rather than a placeholder, a label or a name of one."""
    kinds = sum(bool(re.search(kind, text)) for kind in (r"[a-z]", r"[A-Z]", r"[^\w]"))
    return not _PLACEHOLDER.search(text) and bool(re.search(r"\d", text)) and kinds >= 1


def check_leaks(project: Project, _: Tools) -> Iterator[Hit]:
    """Secrets in log messages, and comparisons whose time tells how much was right."""
    for source in project.product:
        for line, match in source.matches(_LOGS) if "log" in source.text else ():
            if leak := _LEAK.search(_TEXT.sub("", match["rest"])):
                message = f"`{leak[0].strip()}` is written to the log, where it stays and is read by many."
                yield Hit("secret-in-log", source.name, line, message)
        for line, _match in source.matches(_MAC) if "hmac" in source.text else ():
            message = "Comparing a signature with `==` takes longer the more is right: it can be guessed."
            yield Hit("timing-comparison", source.name, line, message)


def agent(ctx: Any) -> Result:
    """What is found about the security of the project."""
    return review(ctx, "security", FILTERS, (check_secrets, check_leaks))
