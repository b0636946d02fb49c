"""What a specialist says about a project: hits of rules, turned into findings that a person can check.

A check yields a `Hit`: which rule, where, and in words what is the matter and why it matters. The rule
knows how severe it is and what to do. The finding adds the lines it speaks of, so that the evaluator, and
the reader, can see for themselves.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from _source import Project, Source

Severity = Literal["low", "medium", "high"]
Finding = dict[str, Any]
EXCERPT_LINES = 4
EXCERPT_WIDTH = 200
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Rule:
    """A defect that can be found, how bad it is, and what to do about it."""

    severity: Severity
    advice: str


@dataclass(frozen=True)
class Hit:
    """A place that breaks a rule. Line 0 speaks of the file, or the folder, as a whole."""

    rule: str
    line: int
    message: str
    column: int = 0
    end: int = 0  # the last line to show; 0: only the first
    secret: str = ""  # never to be shown
    file: str = ""  # of hits that concern the whole project
    severity: Severity | None = None  # None: the rule's


def finding(kind: str, rule: Rule, hit: Hit, source: Source | None, project: Project) -> Finding:
    """A hit as plain data."""
    name = source.name if source else hit.file
    lines = source.lines if source else (project.read(name) or "").splitlines()
    made: Finding = {
        "rule": hit.rule,
        "severity": hit.severity or rule.severity,
        "kind": kind,
        "file": name,
        "line": hit.line,
        "message": hit.message,
        "advice": rule.advice,
        "excerpt": excerpt(lines, hit),
    }
    return made | ({"column": hit.column} if hit.column else {})


def excerpt(lines: list[str], hit: Hit) -> str:
    """The lines a hit speaks of: few, not too wide, and without secrets."""
    if hit.line < 1:
        return ""
    last = min(max(hit.end, hit.line), hit.line + EXCERPT_LINES - 1)
    text = "\n".join(_narrow(line) for line in lines[hit.line - 1 : last])
    return text.replace(hit.secret, masked(hit.secret)) if hit.secret else text


def _narrow(line: str) -> str:
    line = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", line.rstrip())
    return line if len(line) <= EXCERPT_WIDTH else line[:EXCERPT_WIDTH] + "…"


def masked(secret: str) -> str:
    """Enough of a secret to recognise it, too little to use it."""
    return secret[:2] + "…"


def order(found: Finding) -> tuple[int, str, int, str]:
    """The key that sorts findings: the worst first, then by place."""
    return SEVERITIES.index(found["severity"]), found["file"], found["line"], found["rule"]
