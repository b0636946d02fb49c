"""`orchestra prune`: remove what retention no longer keeps, and garbage."""

from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from orchestra.checkpoint.retention.garbage import GarbageReport, collect
from orchestra.checkpoint.retention.plan import PruneReport, RunPruneReport, prune_run, prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, OnlyRun, StoreUrl
from orchestra.cli.play.json_files import json_files, remove_json_files
from orchestra.cli.render.screen import Column, Screen, Span, print_json, print_table, screen
from orchestra.cli.render.text import count, size
from orchestra.cli.store import archive_over, open_for_writing, option
from orchestra.errors import BadSetting
from orchestra.history.references import resolve_run
from orchestra.ids import wall_clock

_COLUMNS: Final[tuple[Column[RunPruneReport], ...]] = (
    Column("run", lambda each: (each.run, "bold"), least=30, name=True),
    Column("dropped", lambda each: f"{each.dropped:,}", align="right"),
    Column("kept", lambda each: f"{each.kept:,}", align="right"),
    Column("freed", lambda each: size(each.bytes_freed) if each.bytes_freed else "", align="right", drop=1),
    Column("why", lambda each: (each.why, "dim"), least=24),
)
_WORDS: Final[dict[str, tuple[Span, Span]]] = {  # what was done, and what would be
    "keep": (("kept", "dim"), ("kept", "dim")),
    "prune": (("pruned", "warn"), ("would prune", "warn")),
    "delete": (("deleted", "bad"), ("would delete", "bad")),
}


def prune(
    run: OnlyRun = None,
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
        reader, at = archive_over(opened), wall_clock()
        one = None if run is None else resolve_run(reader, run)
        before = {} if dry_run else json_files(opened, one)
        if one is None:
            report = prune_store(reader, settings, now=at, dry_run=dry_run)
        else:
            pruned = prune_run(reader, one, settings, now=at, dry_run=dry_run)
            report = PruneReport(runs=(pruned,), dry_run=dry_run)
        remove_json_files(opened, store, before, [each.run for each in report.runs if each.action != "keep"])
        garbage = collect(reader, now=at, dry_run=dry_run)
    if json:
        runs = [attrs.asdict(each) | {"reasons": dict(each.reasons)} for each in report.runs]
        freed = {"dropped": report.dropped, "bytes_freed": report.bytes_freed + garbage.bytes_freed}
        print_json({"dry_run": dry_run, **freed, "runs": runs, "garbage": attrs.asdict(garbage)})
    else:
        _print(screen(), report, garbage, store)
    return DAMAGE if garbage.problems else OK


def _settings(days: int | None, per_phase: int | None, per_run: int | None) -> RetentionSettings:
    given = {"days": days, "per_phase": per_phase, "per_run": per_run}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        if value < 0:
            setting = f"--{name.replace('_', '-')}"
            raise BadSetting(setting=setting, value=value, reason="it is a number from 0 up")
    from orchestra.cli.play.settings import settings_in_force

    return attrs.evolve(settings_in_force().checkpoint.retention, **changes)


def _print(out: Screen, report: PruneReport, garbage: GarbageReport, store: str | None) -> None:
    if report.runs:
        done = Column[RunPruneReport]("", lambda each: _WORDS[each.action][report.dry_run])
        print_table(out, (done, *_COLUMNS), report.runs)
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
