"""`orchestra delete` and `orchestra prune`: removing runs, what retention no longer keeps, and garbage."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from orchestra.checkpoint.retention.garbage import GarbageReport, collect
from orchestra.checkpoint.retention.plan import PruneReport, RunPruneReport, prune_run, prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.cli.commands.status import outputs_folder
from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, Style, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import now
from orchestra.cli.store import archive_over, open_for_reading, open_for_writing, option, store_url
from orchestra.errors import BadSetting, OrchestraError, StoreMissing, UsageError
from orchestra.history.references import resolve_run
from orchestra.ids import RunId
from orchestra.interchange.json_folder import (
    Recorded,
    kept_snapshots,
    recorded_snapshots,
    runs_with_files,
    tidy_folder,
)
from orchestra.ports.store import Store

_COLUMNS: Final = (
    Column(""),
    Column("run", least=30, name=True),
    Column("dropped", align="right"),
    Column("kept", align="right"),
    Column("freed", align="right", drop=1),
    Column("why", least=24),
)
_WORDS: Final[dict[str, tuple[str, str, Style]]] = {
    "keep": ("kept", "kept", "dim"),
    "prune": ("pruned", "would prune", "warn"),
    "delete": ("deleted", "would delete", "bad"),
}


class RemovalNotConfirmed(UsageError):
    """Something that cannot be undone was asked for without saying so twice."""

    template = "This deletes run {run!r} with {snapshots}, and nothing brings it back. Repeat it {how}."


def delete(
    run: Annotated[str, Parameter(help="The whole id of a run.")],
    /,
    *,
    yes: Annotated[bool, Parameter(help="Really delete it.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Delete a run with all its snapshots, pins and notes. Its forks stay whole."""
    with open_for_writing(store) as opened:
        reader = archive_over(opened)
        found = reader.run(resolve_run(reader, run))
        snapshots = count(found.head + 1, "snapshot")
        if not yes or found.run != run:
            how = "with --yes" if found.run == run else "with --yes and the whole id"
            raise RemovalNotConfirmed(run=found.run, snapshots=snapshots, how=how)
        before = _recorded(opened, found.run)
        opened.delete(found.run)
        _tidy(opened, store, before, [found.run])
    if json:
        print_json({"run": found.run, "snapshots": found.head + 1, "deleted": True})
        return
    out = screen()
    out.line("Deleted ", (found.run, "bold"), f" with {snapshots}.")
    out.hints((f"orchestra prune{option(store)}", "gives back the space it took"))


def prune(
    run: Annotated[str | None, Parameter(help="Only this run.")] = None,
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Only say what would be removed.")] = False,
    days: Annotated[
        int | None,
        Parameter(metavar="N", help="Of runs that ended longer ago only what is always kept. [default: 30]"),
    ] = None,
    per_phase: Annotated[
        int | None, Parameter(metavar="N", help="Marked snapshots kept for each phase. [default: 5]")
    ] = None,
    per_run: Annotated[
        int | None, Parameter(metavar="N", help="Marked snapshots kept for each run. [default: any number]")
    ] = None,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Remove the content of snapshots that retention no longer keeps, then objects that nobody needs.

    Of a run that is over, its first, last and last good snapshot, pins, and what forks began at always stay;
    of a run that is not over, everything does. Headers stay, so that the history still verifies.
    """
    settings = _settings(days, per_phase, per_run)
    with open_for_writing(store) as opened:
        reader, at = archive_over(opened), now()
        one = None if run is None else resolve_run(reader, run)
        before = {} if dry_run else _recorded(opened, one)
        if one is None:
            report = prune_store(reader, settings, now=at, dry_run=dry_run)
        else:
            pruned = prune_run(reader, one, settings, now=at, dry_run=dry_run)
            report = PruneReport(runs=(pruned,), dry_run=dry_run)
        _tidy(opened, store, before, [each.run for each in report.runs if each.action != "keep"])
        garbage = collect(reader, now=at, dry_run=dry_run)
    if json:
        print_json(_json(report, garbage))
    else:
        _print(screen(), report, garbage, store)
    return DAMAGE if garbage.problems else OK


def _recorded(opened: Store, run: RunId | None) -> dict[RunId, Recorded]:
    """The snapshots, of one run or all, that may have JSON files here; before any of them go."""
    folder = Path(outputs_folder())
    runs = runs_with_files(folder) if run is None else [run]
    found = {each: recorded_snapshots(opened, each, folder) for each in runs}
    return {each: snapshots for each, snapshots in found.items() if snapshots}


def _tidy(opened: Store, given: str | None, before: dict[RunId, Recorded], runs: Iterable[RunId]) -> None:
    """Remove the JSON files of what is gone, unless the project's own store still has it."""
    folder = Path(outputs_folder())
    for run in runs:
        if run not in before:
            continue
        try:
            tidy_folder(run, folder, before[run], {**_own(given, run), **kept_snapshots(opened, run)})
        except (OSError, OrchestraError) as error:
            screen(sys.stderr).line(f"run {run}: JSON files of snapshots that are gone stay: {error}")


def _own(given: str | None, run: RunId) -> Recorded:
    """What the store that is used here by itself has of a run, where another one was given."""
    if store_url(given) == store_url(None):
        return {}
    try:
        with open_for_reading(None) as store:
            return kept_snapshots(store, run)
    except StoreMissing:
        return {}


def _settings(days: int | None, per_phase: int | None, per_run: int | None) -> RetentionSettings:
    for name, value in (("--days", days), ("--per-phase", per_phase), ("--per-run", per_run)):
        if value is not None and value < 0:
            raise BadSetting(setting=name, value=value, reason="it is a number from 0 up")
    from orchestra.cli.play.settings import settings_in_force

    usual = settings_in_force().checkpoint.retention
    return attrs.evolve(
        usual,
        days=usual.days if days is None else days,
        per_phase=usual.per_phase if per_phase is None else per_phase,
        per_run=usual.per_run if per_run is None else per_run,
    )


def _print(out: Screen, report: PruneReport, garbage: GarbageReport, store: str | None) -> None:
    if report.runs:
        print_table(out, _COLUMNS, [_cells(each, report.dry_run) for each in report.runs])
        out.line()
    verb = "would go" if report.dry_run else "removed"
    out.line(f"{count(report.dropped, 'snapshot')} {verb}, {size(report.bytes_freed)} of rows.")
    objects = garbage.dead - garbage.young if garbage.dry_run else garbage.removed
    young = f"; {garbage.young:,} more are too young" if garbage.young else ""
    out.line(f"{count(objects, 'object')} of {garbage.objects:,} {verb}, {size(garbage.bytes_freed)}{young}.")
    for problem in garbage.problems:
        out.line(("damaged: ", "bad"), problem)
    if garbage.problems:
        out.line("No garbage was removed, because what the damaged parts need cannot be known.")
        out.hints((f"orchestra verify{option(store)}", "says what is damaged"))
    elif report.dry_run:
        out.hints((f"orchestra prune{option(store)}", "does it"))
    else:
        out.hints((f"orchestra store compact{option(store)}", "gives the space back to the filesystem"))


def _cells(report: RunPruneReport, dry_run: bool) -> list[Line]:
    done, planned, style = _WORDS[report.action]
    return [
        [(planned if dry_run else done, style)],
        [(report.run, "bold")],
        [(f"{report.dropped:,}", "")],
        [(f"{report.kept:,}", "")],
        [(size(report.bytes_freed) if report.bytes_freed else "", "")],
        [(report.why, "dim")],
    ]


def _json(report: PruneReport, garbage: GarbageReport) -> dict[str, Any]:
    return {
        "dry_run": report.dry_run,
        "dropped": report.dropped,
        "bytes_freed": report.bytes_freed + garbage.bytes_freed,
        "runs": [attrs.asdict(each) | {"reasons": dict(each.reasons)} for each in report.runs],
        "garbage": attrs.asdict(garbage) | {"problems": list(garbage.problems)},
    }
