"""What a report says in figures, for both forms of it."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from _finding import SEVERITIES

LOOKED_FOR = {
    "security": "Calls that run data as code, trust what must not be trusted, or give secrets away.",
    "structure": "What grew too large or tangled, code nobody uses, mistakes that Python accepts.",
    "tests": "Modules that no test reaches, tests that cannot fail, tests that never run.",
    "docs": "Public parts without a word about them, and words that are not true any more.",
    "dependencies": "Packages that are imported and not declared, declared and not used, or cannot be had.",
}
"""What each specialist looks for, for readers."""
KINDS = tuple(LOOKED_FOR)


@dataclass(eq=False)
class Review:
    """A finished review."""

    project: str
    findings: list[dict[str, Any]]
    files: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)

    @cached_property
    def by_severity(self) -> dict[str, int]:
        """How many findings of each severity, the worst first."""
        counts = Counter(each["severity"] for each in self.findings)
        return {severity: counts[severity] for severity in SEVERITIES}

    @cached_property
    def by_kind(self) -> dict[str, int]:
        """How many findings of each kind that occurs."""
        counts = Counter(each["kind"] for each in self.findings)
        return {kind: counts[kind] for kind in KINDS if counts[kind]}

    def count(self, kind: str, severity: str) -> int:
        """How many findings of a kind are that severe."""
        return sum(each["kind"] == kind and each["severity"] == severity for each in self.findings)

    @cached_property
    def by_rule(self) -> list[tuple[str, int]]:
        """How many findings of each rule, the most frequent first."""
        return Counter(each["rule"] for each in self.findings).most_common()

    @cached_property
    def busiest(self) -> list[tuple[str, int]]:
        """The files with the most findings."""
        return Counter(each["file"] for each in self.findings).most_common(5)

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if not self.findings:
            return f"Nothing was found in the {self.files:,} Python files that were looked at."
        parts = [f"{count} {severity}" for severity, count in self.by_severity.items() if count]
        return f"{self.total}: {', '.join(parts)}."

    @property
    def total(self) -> str:
        """How many findings in how many files."""
        findings = "1 finding" if len(self.findings) == 1 else f"{len(self.findings):,} findings"
        return f"{findings} in {'1 Python file' if self.files == 1 else f'{self.files:,} Python files'}"
