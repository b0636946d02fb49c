"""What verifying found."""

from typing import Any

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.render.json_text import pick, print_json
from orchestra.cli.render.screen import Screen, Style, screen
from orchestra.cli.render.text import count
from orchestra.history.verify.report import Finding, SnapshotSpan
from orchestra.interchange.json_check import FileReport


def print_file_report(file: str, report: FileReport, as_json: bool) -> int:
    """Print what verifying a file found; returns the exit code."""
    if as_json:
        findings = [finding_json(finding) for finding in report.findings]
        print_json({"file": file, "kind": report.kind, "whole": report.is_whole, "findings": findings})
    else:
        _print_file(screen(), report)
    return OK if report.is_whole else DAMAGE


def _print_file(out: Screen, report: FileReport) -> None:
    for finding in report.findings:
        print_finding(out, finding)
    what = "a run" if report.kind == "export" else "a snapshot"
    if report.is_whole:
        out.line(("✔ ", "good"), (str(report.path), "bold"), f" is whole: {what}.")
        return
    damage = count(sum(finding.is_damage for finding in report.findings), "thing is", "things are")
    out.line(("✖ ", "bad"), (str(report.path), "bold"), f" is {what}, and {damage} wrong with it.")
    out.line("Next: export it again from its store, or take another copy of the file.")


def print_finding(out: Screen, finding: Finding) -> None:
    """Print one finding, and what cannot be read because of it."""
    style: Style = "bad" if finding.is_damage else "dim"
    out.line((f"{finding.severity}: ", style), (finding.what, "bold"), f": {finding.reason}")
    if finding.spans:
        out.line(("        unreadable: ", "dim"), ", ".join(map(str, finding.spans)))


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding, as JSON."""
    return {
        **pick(finding, "severity", "what", "reason", "run", "seq"),
        "digest": finding.digest.hex() if finding.digest else None,
        "unreadable": [span_json(span) for span in finding.spans],
    }


def span_json(span: SnapshotSpan) -> dict[str, Any]:
    """Snapshots in a row, as JSON."""
    return pick(span, "run", "first", "last")
