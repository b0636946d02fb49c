"""Proof: whether a finding shows what it claims, judged from the file alone.

The patterns say, for a rule, what must be seen at the place if the finding is true. They are simpler than
the rules themselves on purpose: two different ways to look at the same thing rarely err alike.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_BYTES = 4_000_000
KEYS = ("rule", "severity", "file", "line", "message", "advice", "excerpt", "kind")
NEAR_LINES = 12  # a statement may begin some lines above what gives it away
_SEEN_BY = {
    r"\bdef\b": "complex-function long-function many-positional duplicated-function redefined-function",
    r"\bdef\s+test": "duplicate-test duplicated-test empty-test test-without-assertion",
    r"\bexcept\b": "swallowed-exception swallowed-assertion unreachable-except",
    r"\bassert\b": "assert-as-guard assert-on-argument assert-tuple assertion-cannot-fail",
    r"\bimport\b": "import-cycle star-import newer-module removed-module undeclared-import private-api",
    r"==|!=|<|>|\bin\b|\bis\b": "comparison-not-asserted pointless-comparison none-comparison is-literal",
    r"\b(def|class)\b|=": "unused-private",
    r"0\.0\.0\.0": "binds-everywhere",
    r"#\s*(type:\s*ignore|noqa)": "blanket-ignore",
    r"[rR]aises\(": "broad-raises",
    r"\b(eval|exec)\b": "dangerous-eval",
    r"debug\s*=\s*True": "debug-enabled",
    r"mktemp|tempnam|tmpnam": "insecure-temp",
    r"open|read_text|write_text": "missing-encoding unclosed-file",
    r"\blog": "secret-in-log",
    r"shell|system|popen|getoutput|getstatusoutput": "shell-injection",
    r"skip|xfail": "skip-without-reason",
    r"sleep": "sleep-in-test",
    r"(?i)\b(select|insert|update|delete|drop|replace)\b": "sql-injection",
    r"verify|CERT_NONE|unverified": "tls-not-verified",
    r"extract|join|unpack": "unsafe-extract",
    r"load|Unpickler|decode|shelve|read_pickle": "unsafe-load",
    r"\bwarn\b": "warning-without-stacklevel",
    r"md5|sha1|hashlib": "weak-hash",
    r"random|choice|randint|randrange|sample|getrandbits|shuffle": "weak-random",
    r"chmod": "world-writable",
}
SEEN = {rule: pattern for pattern, rules in _SEEN_BY.items() for rule in rules.split()}


@dataclass
class Places:
    """The files of a project, read once each."""

    root: Path
    _lines: dict[str, list[str] | None] = field(default_factory=dict)

    def lines(self, name: str) -> list[str] | None:
        """A file's lines, or None where there is no such file inside the project."""
        if name not in self._lines:
            self._lines[name] = self._read(name)
        return self._lines[name]

    def _read(self, name: str) -> list[str] | None:
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            return None
        if path.is_dir():
            return []
        try:
            data = path.read_bytes()[:MAX_BYTES]
        except OSError:
            return None
        return re.split(r"\r\n|\r|\n", _text(data))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def why_not(places: Places, found: Mapping[str, Any]) -> str | None:
    """Why a finding does not hold, or None if it does."""
    missing = [key for key in KEYS if key not in found]
    if missing:
        return f"it lacks {', '.join(missing)}"
    lines = places.lines(str(found["file"]))
    if lines is None:
        return "there is no such file"
    line = found["line"]
    if not isinstance(line, int):
        return "its line is no number"
    if line == 0:
        return None  # it speaks of the file as a whole
    if not 1 <= line <= len(lines):
        return f"the file has only {len(lines)} lines"
    return _differs(lines, line, str(found["excerpt"])) or _unseen(lines, line, str(found["rule"]))


def _differs(lines: list[str], line: int, excerpt: str) -> str | None:
    """Whether something else stands there than what is quoted; `…` stands for anything."""
    for offset, quoted in enumerate(excerpt.split("\n") if excerpt else ()):
        actual = lines[line - 1 + offset] if line - 1 + offset < len(lines) else ""
        pattern = ".*".join(re.escape(part) for part in quoted.rstrip().split("…"))
        if not re.fullmatch(pattern, re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", actual.rstrip())):
            return f"line {line + offset} does not read as quoted"
    return None


def _unseen(lines: list[str], line: int, rule: str) -> str | None:
    """Whether the place lacks what a finding of this rule must show."""
    pattern = SEEN.get(rule)
    window = "\n".join(lines[line - 1 : line - 1 + NEAR_LINES])
    if pattern is None or re.search(pattern, window):
        return None
    return f"line {line} and those after it show nothing of the kind"
