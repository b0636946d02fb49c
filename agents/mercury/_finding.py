"""What a specialist says about a project: hits of rules, turned into findings that a person can check.

The finding adds the lines it speaks of, so that the evaluator, and the reader, can see for themselves.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from _project import Project

Severity = Literal["low", "medium", "high"]
Finding = dict[str, Any]
EXCERPT_LINES = 4
EXCERPT_WIDTH = 200
NAMED = 5
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Hit:
    """A place that breaks a rule. Line 0 speaks of the file, or the folder, as a whole."""

    rule: str
    file: str
    line: int
    message: str
    column: int = 0
    end: int = 0  # the last line to show; 0: only the first
    secret: str = ""  # never to be shown
    code: str = ""  # how the tool that found it calls the rule


@dataclass(frozen=True)
class Rule:
    """A defect that can be found, how bad it is, and what to do about it: an entry of `rules.toml`."""

    severity: Severity
    advice: str
    ruff: str = ""  # the codes of ruff that mean it
    where: Literal["product", "tests", "all"] = "product"
    once: bool = False  # one finding for each file
    message: str = ""  # in place of ruff's, where that says too little


def load_rules(kind: str) -> dict[str, Rule]:
    """The rules of a specialist, by name."""
    tables = tomllib.loads((Path(__file__).parent / "rules.toml").read_text(encoding="utf-8"))
    return {name: Rule(**table) for name, table in tables[kind].items()}


def finding(kind: str, rule: Rule, hit: Hit, project: Project) -> Finding:
    """A hit as plain data."""
    made: Finding = {
        "rule": hit.rule,
        "severity": rule.severity,
        "kind": kind,
        "file": hit.file,
        "line": hit.line,
        "message": hit.message,
        "advice": rule.advice,
        "excerpt": excerpt(project.lines(hit.file), hit) if hit.line else "",
    }
    return made | {key: value for key in ("column", "code") if (value := getattr(hit, key))}


def excerpt(lines: list[str], hit: Hit) -> str:
    """The lines a hit speaks of: few, not too wide, and without secrets."""
    last = min(max(hit.end, hit.line), hit.line + EXCERPT_LINES - 1)
    text = "\n".join(narrow(line) for line in lines[hit.line - 1 : last])
    return text.replace(hit.secret, masked(hit.secret)) if hit.secret else text


def narrow(line: str) -> str:
    """A line as it is shown: without signs that do harm, and not too wide."""
    line = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", line.rstrip())
    return line if len(line) <= EXCERPT_WIDTH else line[:EXCERPT_WIDTH] + "…"


def masked(secret: str) -> str:
    """Enough of a secret to recognise it, too little to use it."""
    return secret[:2] + "…"


def listed(names: list[str]) -> str:
    """Names as words of a sentence: the first few, and how many more."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:NAMED]) + more


def order(found: Finding) -> tuple[int, str, int, str]:
    """The key that sorts findings: the worst first, then by place."""
    return SEVERITIES.index(found["severity"]), found["file"], found["line"], found["rule"]
