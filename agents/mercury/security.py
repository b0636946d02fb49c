"""Security: calls that run data as code, trust what must not be trusted, or give secrets away."""

import re
from collections.abc import Iterator
from typing import Any

from _finding import Hit, Rule, masked
from _project import Project, Source
from _specialist import review
from _tools import Tools

from orchestra import Result

KIND = "security"
_PURPOSE = re.compile(r"passw|secret|token|nonce|salt|session_?id|otp\b|api_?key|signature", re.IGNORECASE)
_GUARDED = re.compile(r"passw|secret|token|signature", re.IGNORECASE)
_GUARD = re.compile(
    r"\b(is_)?(admin|superuser|staff|authenticated|authori[sz]ed|allowed|permitted|logged_in)\b"
    r"|\b(has_perm(ission)?|check_password|verify_token|verify_signature|check_permission)s?\b"
)
_LISTENS = re.compile(r"\bhost\s*=|\.(bind|run|listen)\(|serve|Server\(")
_FIXED = re.compile(r"table|column|schema|placeholder|where|order|limit|clause|fields|^[A-Z_]+$", re.IGNORECASE)
_NAMED_TEXT = re.compile(
    r"(?P<name>\w*(?:password|passwd|pwd|secret|secret_key|api_?key|token|private_?key))[\"']?\s*(?::\s*[\w.]+\s*)?[:=]\s*"
    r"(?P<mark>[\"'])(?P<value>[^\"'\n]{8,200})(?P=mark)",
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
_LOGS = re.compile(r"(?:^|[\s._])log(?:ger|ging)?\.(?:debug|info|warning|error|critical|exception|log)\((?P<rest>.*)", re.IGNORECASE)
_LEAK = re.compile(r"(?<![\w(])(?:\w+\.)*(\w*_)?(password|passwd|pwd|secret|api_?key|private_?key|credential)s?(?=\s*[,)}!:]|\s*$)")
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
    return not put or any(not _FIXED.search(name.rpartition(".")[2]) for name in put)


RULES = {
    "dangerous-eval": Rule("high", "Parse what you expect, for example with ast.literal_eval.", "S307 S102", only=_runs_text),
    "shell-injection": Rule(
        "high", "Pass a list of arguments without a shell.", "S602 S605 S609",
        only=lambda source, hit: "seems safe" not in hit.message,
    ),
    "unsafe-load": Rule(
        "high", "Use JSON, or yaml.safe_load: this runs code that its data names.", "S301 S302 S506", only=_is_foreign_data
    ),
    "insecure-temp": Rule("medium", "Use tempfile.mkstemp or NamedTemporaryFile.", "S306"),
    "tls-not-verified": Rule("high", "Let certificates be checked; give your own authority with `verify=`.", "S501 S323"),
    "weak-cryptography": Rule("high", "Use TLS 1.2 or newer, longer keys, and a cipher of today.", "S304 S305 S502 S503 S505 S508 S509"),
    "unsafe-extract": Rule("high", "Pass filter='data': without it archives write wherever they say.", "S202"),
    "debug-enabled": Rule("high", "Read it from the settings; it gives visitors a Python console.", "S201 S612"),
    "binds-everywhere": Rule(
        "medium", "Bind to 127.0.0.1, or let the settings say otherwise.", "S104",
        only=lambda source, hit: bool(_LISTENS.search("\n".join(source.lines[max(0, hit.line - 3) : hit.line]))),
    ),
    "world-writable": Rule("medium", "Give rights only to those who need them.", "S103"),
    "unknown-host-key": Rule("high", "Load the known hosts, and refuse the others.", "S507"),
    "unescaped-html": Rule("high", "Let the template escape values.", "S308 S701 S702 S704"),
    "missing-timeout": Rule("medium", "Pass `timeout=`: it waits for ever when nobody answers.", "S113"),
    "hard-coded-secret": Rule("high", "Read it from the environment or a key store, and replace it: it is known now."),
    "weak-hash": Rule(
        "high", "For passwords use hashlib.scrypt or argon2; for signatures SHA-256 or better.", "S324 S303",
        only=_is_about(_GUARDED),
    ),
    "weak-random": Rule("high", "Use the module `secrets`; these numbers can be predicted.", "S311", only=_is_about(_PURPOSE)),
    "secret-in-log": Rule("medium", "Leave it out, or log only that it is there."),
    "assert-as-guard": Rule(
        "medium", "Raise an exception: `python -O` removes assertions.", "S101",
        only=lambda source, hit: bool(_GUARD.search(source.line(hit.line).partition(",")[0])),
    ),
    "timing-comparison": Rule("medium", "Use hmac.compare_digest."),
    "sql-injection": Rule("high", "Use placeholders, and pass the values as parameters.", "S608 S610 S611", only=_takes_values),
}  # fmt: skip


def check_secrets(project: Project, _: Tools) -> Iterator[Hit]:
    """Secrets in the source, by the name they are given or by their form."""
    for source in (each for each in project.sources.values() if not each.is_test):
        for match in (*_NAMED_TEXT.finditer(source.text), *_KNOWN.finditer(source.text)):
            known = "value" not in match.re.groupindex
            secret = match[0] if known else match["value"]
            line = source.text.count("\n", 0, match.start()) + 1
            if (known or _looks_secret(secret)) and not source.is_silenced(line):
                what = "This has the form of a real key" if known else f"`{match['name']}` is written into the source"
                message = f"{what} ({masked(secret)}): everybody who can read the code has it."
                yield Hit("hard-coded-secret", source.name, line, message, secret=secret)


def _looks_secret(text: str) -> bool:
    """Whether a text may be a real secret, rather than a placeholder, a label or a name of one."""
    kinds = sum(bool(re.search(kind, text)) for kind in (r"[a-z]", r"[A-Z]", r"[^\w]"))
    return not _PLACEHOLDER.search(text) and bool(re.search(r"\d", text)) and kinds >= 1


def check_leaks(project: Project, _: Tools) -> Iterator[Hit]:
    """Secrets in log messages, and comparisons whose time tells how much was right."""
    for source in project.product:
        for number, line in enumerate(source.lines, start=1) if re.search(r"log|hmac", source.text) else ():
            logs = _LOGS.search(line)
            leak = _LEAK.search(_TEXT.sub("", logs["rest"])) if logs else None
            if leak and not source.is_silenced(number):
                message = f"`{leak[0].strip()}` is written to the log, where it stays and is read by many."
                yield Hit("secret-in-log", source.name, number, message)
            if _MAC.search(line) and not source.is_silenced(number):
                message = "Comparing a signature with `==` takes longer the more of it is right: it can be guessed."
                yield Hit("timing-comparison", source.name, number, message)


def agent(ctx: Any) -> Result:
    """What is found about the security of the project."""
    return review(ctx, KIND, RULES, (check_secrets, check_leaks))
