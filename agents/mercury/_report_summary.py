"""What a report says in figures, for both forms of it."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from _finding import SEVERITIES

KINDS = ("security", "structure", "tests", "docs", "dependencies")


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
        word = "finding" if len(self.findings) == 1 else "findings"
        return f"{len(self.findings):,} {word} in {self.files:,} Python files: {', '.join(parts)}."
