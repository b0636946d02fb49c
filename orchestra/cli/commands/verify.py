"""`orchestra verify`: every digest, link and reference of a run or of a whole store."""

from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, OnlyRun, StoreUrl
from orchestra.cli.render.screen import Line, Progress, Screen, Style, pick, print_json, screen
from orchestra.cli.render.text import count
from orchestra.cli.store import archive_over, environment_framer, open_for_examination, option
from orchestra.errors import BadSetting, Damaged
from orchestra.history.references import resolve_run
from orchestra.history.verify.report import Finding, RunReport
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.interchange.json_check import FileReport, verify_file

_WHOLE_RUNS: Final = 20
"""So many whole runs are listed by name."""


def verify(
    run: OnlyRun = None,
    /,
    *,
    file: Annotated[
        str | None, Parameter(metavar="FILE", help="Verify an exported file instead of a store.")
    ] = None,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Prove every digest, link and reference of a run, or of a whole store.

    Says exactly what is damaged, which snapshots cannot be read because of it, and the newest whole one of
    each run. Exits with 4 when there is damage.
    """
    if file is not None:
        if run is not None or store is not None:
            raise BadSetting(setting="--file", value=file, reason="it takes neither a run nor a store")
        return _report_file(file, verify_file(file, framer=environment_framer()), json)
    try:
        opened = open_for_examination(store)
    except Damaged as error:  # then that is what was found
        place, reason = str(error.data["what"]), f"it cannot be opened: {error.data['reason']}"
        found = Finding(severity="damage", what=place, reason=reason)
        result = _Result(place=place, runs=(), findings=(found,))
    else:
        with opened, Progress("verifying") as progress:
            reader = archive_over(opened)
            if run is None:
                whole = verify_store(reader, progress=progress)
                result = _Result(**pick(whole, "place", "runs", "findings", "rows", "objects", "orphans"))
            else:
                one = verify_run(reader, resolve_run(reader, run), progress=progress)
                result = _Result(place=opened.place, runs=(one,), findings=one.findings, rows=one.rows)
    if json:
        print_json(_json(result))
    else:
        _print(screen(), result, store)
    return DAMAGE if result.damage else OK


def validate_checkpoint(*, file: str, json: AsJson = False) -> int:
    """Verify an exported file."""
    return verify(file=file, json=json)


@attrs.frozen(kw_only=True)
class _Result:
    place: str
    runs: tuple[RunReport, ...]
    findings: tuple[Finding, ...]
    rows: int = 0
    objects: int | None = None  # known for a whole store only
    orphans: int | None = None

    @property
    def damage(self) -> int:
        """How many findings are damage."""
        return sum(finding.is_damage for finding in self.findings)


def _print(out: Screen, result: _Result, store: str | None) -> None:
    damaged = [report for report in result.runs if not report.is_whole]
    whole = [report for report in result.runs if report.is_whole]
    for report in (*damaged, *whole[:_WHOLE_RUNS]):
        out.line(*_run_line(report))
    if left_out := len(whole[_WHOLE_RUNS:]):
        out.line((f"  … {count(left_out, 'more whole run')}", "dim"))
    if result.findings:
        out.line()
    for finding in result.findings:
        _print_finding(out, finding)
    out.line()
    objects = f", {count(result.objects, 'object')}" if result.objects is not None else ""
    amount = f"{count(len(result.runs), 'run')}, {count(result.rows, 'snapshot')}{objects}"
    if result.damage:
        found = count(result.damage, "thing is", "things are")
        out.line(("✖ ", "bad"), f"{found} damaged in {result.place} ({amount}).")
        out.line(f"Next: {_advice(result, store)}")
        return
    out.line(("✔ ", "good"), f"Everything is whole: {amount}.")
    if result.orphans:
        orphans = count(result.orphans, "object")
        out.hints((f"orchestra prune{option(store)}", f"removes {orphans} that nobody needs"))


def _run_line(report: RunReport) -> Line:
    amount = count(report.rows, "snapshot") + (f", {report.pruned:,} pruned" if report.pruned else "")
    if report.is_whole:
        return [("✔ ", "good"), (report.run, "bold"), (f"  {amount}", "dim")]
    newest = "nothing of it can be read" if report.whole is None else f"newest whole snapshot @{report.whole}"
    return [("✖ ", "bad"), (report.run, "bold"), (f"  {amount}  ", "dim"), (newest, "warn")]


def _advice(result: _Result, store: str | None) -> str:
    for report in result.runs:
        if not report.is_whole and report.whole is not None:
            reference = f"{report.run}@{report.whole}"
            return f"`orchestra show {reference}{option(store)}` is the newest whole snapshot of that run."
    copy = "put a copy of the store from before the damage in its place"
    if not result.runs:
        return f"{copy}, or `orchestra import` exported runs into a new store."
    return f"{copy}; whole runs can still be exported."


def _json(result: _Result) -> dict[str, Any]:
    return {
        "place": result.place,
        "whole": not result.damage,
        "snapshots": result.rows,
        **pick(result, "objects", "orphans"),
        "runs": [_run_json(report) for report in result.runs],
        "findings": [_finding_json(finding) for finding in result.findings],
    }


def _run_json(report: RunReport) -> dict[str, Any]:
    return {
        "run": report.run,
        "whole": report.is_whole,
        "snapshots": report.rows,
        **pick(report, "pruned", "head"),
        "newest_whole": report.whole,
        "unreadable": [attrs.asdict(span) for span in report.unreadable],
    }


def _report_file(file: str, report: FileReport, as_json: bool) -> int:
    code, out = OK if report.is_whole else DAMAGE, screen()
    if as_json:
        findings = [_finding_json(finding) for finding in report.findings]
        print_json({"file": file, "kind": report.kind, "whole": report.is_whole, "findings": findings})
        return code
    for finding in report.findings:
        _print_finding(out, finding)
    what = "a run" if report.kind == "export" else "a snapshot"
    if report.is_whole:
        out.line(("✔ ", "good"), (str(report.path), "bold"), f" is whole: {what}.")
        return code
    damage = count(sum(finding.is_damage for finding in report.findings), "thing is", "things are")
    out.line(("✖ ", "bad"), (str(report.path), "bold"), f" is {what}, and {damage} wrong with it.")
    out.line("Next: export it again from its store, or take another copy of the file.")
    return code


def _print_finding(out: Screen, finding: Finding) -> None:
    style: Style = "bad" if finding.is_damage else "dim"
    out.line((f"{finding.severity}: ", style), (finding.what, "bold"), f": {finding.reason}")
    if finding.spans:
        out.line(("        unreadable: ", "dim"), ", ".join(map(str, finding.spans)))


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        **pick(finding, "severity", "what", "reason", "run", "seq"),
        "digest": finding.digest.hex() if finding.digest else None,
        "unreadable": [attrs.asdict(span) for span in finding.spans],
    }
