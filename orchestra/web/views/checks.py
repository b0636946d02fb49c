"""What proving a run came to, as JSON."""

from typing import Any

from orchestra.history.verify.report import RunReport


def verify_json(report: RunReport) -> dict[str, Any]:
    """Whether a run is whole, and what is wrong with it."""
    return {
        "whole": report.is_whole,
        "problems": [
            {
                "what": each.what,
                "where": ", ".join(map(str, each.spans)),
                "reason": each.reason,
                "severity": each.severity,
            }
            for each in report.findings
        ],
        "newest_whole": None if report.whole is None else f"{report.run}@{report.whole}",
    }
