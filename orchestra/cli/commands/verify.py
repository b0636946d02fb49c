"""`orchestra verify`: every digest, link and reference of a run or of a whole store."""

from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.render.findings import finding_json, print_file_report, print_finding, span_json
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.progress import Progress
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.text import count
from orchestra.cli.store import archive_over, environment_framer, open_for_examination, option
from orchestra.errors import BadSetting, Damaged
from orchestra.history.archive import Archive
from orchestra.history.references import resolve_run
from orchestra.history.verify.report import Finding, RunReport
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.interchange.json_check import verify_file

_WHOLE_RUNS: Final = 20
"""So many whole runs are listed by name."""


def verify(
    run: Annotated[str | None, Parameter(help="Only this run.")] = None,
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
        return print_file_report(file, verify_file(file, framer=environment_framer()), json)
    try:
        opened = open_for_examination(store)
    except Damaged as error:
        result = _cannot_open(error)
    else:
        with opened, Progress("verifying") as progress:
            result = _examine(archive_over(opened), run, progress)
    if json:
        print_json(_json(result))
    else:
        _print(screen(), result, store)
    return OK if result.is_whole else DAMAGE


@attrs.frozen(kw_only=True)
class _Result:
    """What was found, of one run or of a store."""

    place: str
    runs: tuple[RunReport, ...]
    findings: tuple[Finding, ...]
    is_whole: bool
    rows: int
    objects: int | None = None  # known for a whole store only
    orphans: int | None = None


def _cannot_open(error: Damaged) -> _Result:
    """A store of which so much is damaged that it cannot be opened: what was found is that."""
    place, reason = str(error.data["what"]), f"it cannot be opened: {error.data['reason']}"
    found = Finding(severity="damage", what=place, reason=reason)
    return _Result(place=place, runs=(), findings=(found,), is_whole=False, rows=0)


def _examine(reader: Archive, run: str | None, progress: Progress) -> _Result:
    if run is not None:
        one = verify_run(reader, resolve_run(reader, run), progress=progress)
        place = reader.store.place
        return _Result(place=place, runs=(one,), findings=one.findings, is_whole=one.is_whole, rows=one.rows)
    whole = verify_store(reader, progress=progress)
    return _Result(
        place=whole.place,
        runs=whole.runs,
        findings=whole.findings,
        is_whole=whole.is_whole,
        rows=whole.rows,
        objects=whole.objects,
        orphans=whole.orphans,
    )


def _print(out: Screen, result: _Result, store: str | None) -> None:
    for report in _worth_listing(result.runs):
        out.line(*_run_line(report))
    left_out = len(result.runs) - len(_worth_listing(result.runs))
    if left_out:
        out.line((f"  … {count(left_out, 'more whole run')}", "dim"))
    if result.findings:
        out.line()
    for finding in result.findings:
        print_finding(out, finding)
    out.line()
    _print_end(out, result, store)


def _worth_listing(runs: tuple[RunReport, ...]) -> list[RunReport]:
    """Damaged runs, and whole ones as long as they are not many."""
    damaged = [report for report in runs if not report.is_whole]
    return [*damaged, *[report for report in runs if report.is_whole][:_WHOLE_RUNS]]


def _run_line(report: RunReport) -> Line:
    amount = count(report.rows, "snapshot") + (f", {report.pruned:,} pruned" if report.pruned else "")
    if report.is_whole:
        return [("✔ ", "good"), (report.run, "bold"), (f"  {amount}", "dim")]
    newest = "nothing of it can be read" if report.whole is None else f"newest whole snapshot @{report.whole}"
    return [("✖ ", "bad"), (report.run, "bold"), (f"  {amount}  ", "dim"), (newest, "warn")]


def _print_end(out: Screen, result: _Result, store: str | None) -> None:
    objects = f", {count(result.objects, 'object')}" if result.objects is not None else ""
    amount = f"{count(len(result.runs), 'run')}, {count(result.rows, 'snapshot')}{objects}"
    if result.is_whole:
        out.line(("✔ ", "good"), f"Everything is whole: {amount}.")
        if result.orphans:
            orphans = count(result.orphans, "object")
            out.hints((f"orchestra prune{option(store)}", f"removes {orphans} that nobody needs"))
        return
    damage = sum(finding.is_damage for finding in result.findings)
    found = count(damage, "thing is", "things are")
    out.line(("✖ ", "bad"), f"{found} damaged in {result.place} ({amount}).")
    out.line(f"Next: {_advice(result, store)}")


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
        "whole": result.is_whole,
        "snapshots": result.rows,
        "objects": result.objects,
        "orphans": result.orphans,
        "runs": [_run_json(report) for report in result.runs],
        "findings": [finding_json(finding) for finding in result.findings],
    }


def _run_json(report: RunReport) -> dict[str, Any]:
    return {
        "run": report.run,
        "whole": report.is_whole,
        "snapshots": report.rows,
        "pruned": report.pruned,
        "head": report.head,
        "newest_whole": report.whole,
        "unreadable": [span_json(span) for span in report.unreadable],
    }
