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
SEEN = {
    "assert-as-guard": r"\bassert\b",
    "assert-on-argument": r"\bassert\b",
    "assert-tuple": r"\bassert\s*\(",
    "assertion-cannot-fail": r"\bassert",
    "assertion-in-except": r"\bexcept\b",
    "assertion-not-called": r"(?m)\.assert_\w+\s*$",
    "async-twins": r"\basync\s+def\b",
    "bare-except": r"\bexcept\s*:",
    "binds-everywhere": r"0\.0\.0\.0",
    "blanket-ignore": r"(?m)#\s*(type:\s*ignore|noqa)\s*($|#)",
    "broad-raises": r"[rR]aises\(\s*(Base)?Exception\b",
    "comparison-not-asserted": r"==|!=|<|>|\bin\b|\bis\b",
    "complex-function": r"\bdef\b",
    "dangerous-eval": r"\b(eval|exec)\b",
    "debug-enabled": r"debug\s*=\s*True",
    "duplicate-test": r"\bdef\s+test",
    "duplicated-function": r"\bdef\b",
    "duplicated-test": r"\bdef\s+test",
    "empty-docstring": r"\"{6}|'{6}|\"\"\"\s*\"\"\"",
    "empty-test": r"\bdef\s+test",
    "eq-without-hash": r"\bclass\b",
    "identical-branches": r"\bif\b",
    "import-cycle": r"\bimport\b",
    "insecure-temp": r"mktemp|tempnam|tmpnam",
    "is-literal": r"\bis\b",
    "license-twice": r"License ::",
    "long-function": r"\bdef\b",
    "lost-task": r"create_task|ensure_future",
    "many-positional": r"\bdef\b",
    "missing-docstring": r"\b(def|class)\b",
    "missing-encoding": r"open|read_text|write_text",
    "missing-timeout": r"requests|urlopen|get|post|put|patch|delete|head|request",
    "mutable-default": r"[\[{(]",
    "newer-module": r"\bimport\b",
    "none-comparison": r"[!=]=\s*None",
    "overdue-removal": r"(?i)remov|drop",
    "private-api": r"\b_[a-z]\w*|\._\w+|\b_[A-Z]\w*",
    "raise-notimplemented": r"\bNotImplemented\b",
    "raise-without-from": r"\braise\b",
    "redefined-function": r"\bdef\b",
    "removed-module": r"\bimport\b",
    "return-in-finally": r"\b(return|break|continue)\b",
    "secret-in-log": r"\blog",
    "shell-injection": r"shell|system|popen|getoutput|getstatusoutput",
    "skip-without-reason": r"skip|xfail",
    "sleep-in-test": r"sleep",
    "sql-injection": r"(?i)\b(select|insert|update|delete|drop|replace)\b",
    "star-import": r"import\s*\*",
    "strip-characters": r"strip\(",
    "swallowed-assertion": r"\bexcept\b",
    "swallowed-exception": r"\bexcept\b",
    "test-without-assertion": r"\bdef\s+test",
    "tls-not-verified": r"verify|CERT_NONE|unverified",
    "undeclared-import": r"\bimport\b",
    "undeclared-test-import": r"\bimport\b",
    "undocumented-exception": r"\braise\b",
    "undocumented-export": r"[\"']\w+[\"']",
    "unsafe-extract": r"extract|join|unpack",
    "unsafe-load": r"load|Unpickler|decode|shelve|read_pickle",
    "unused-parameter": r"\bdef\b",
    "unused-private": r"\b(def|class)\b|=",
    "unused-variable": r"=",
    "warning-without-stacklevel": r"\bwarn\b",
    "weak-hash": r"md5|sha1",
    "weak-random": r"random|choice|randint|randrange|sample|getrandbits|shuffle",
    "world-writable": r"chmod",
}


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
