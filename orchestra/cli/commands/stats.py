"""`orchestra stats`: how the runs of a store went, what they spent and what they take up."""

from pathlib import Path
from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.play.settings import settings_in_force
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.progress import Progress
from orchestra.cli.render.run_list import STATUSES
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import duration
from orchestra.cli.store import archive, option
from orchestra.telemetry.overview import Overview, Percentiles, WorkflowOverview, overview

_DAYS: Final = 14
"""So many days of growth are shown; JSON has all of them."""
_COLUMNS: Final = (
    Column("workflow", least=12),
    Column("runs", align="right"),
    Column("completed", align="right"),
    Column("recovered", align="right", drop=2),
    Column("p50", align="right"),
    Column("p95", align="right"),
    Column("tokens", align="right", drop=3),
    Column("cost", align="right", drop=4),
)


def stats(
    *,
    workflow: Annotated[str | None, Parameter(metavar="NAME", help="Only runs of this workflow.")] = None,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Say how the runs of a store went, what they spent and what they take up.

    How long saving took is read from the telemetry files of the runs, where there are any.
    """
    outputs = Path(settings_in_force(store).engine.outputs)
    with archive(store) as opened, Progress("reading") as progress:
        found = overview(opened, outputs, workflow=workflow, progress=progress)
    if json:
        print_json(_json(found))
    else:
        _print(screen(), found, store)


def _print(out: Screen, found: Overview, store: str | None) -> None:
    total = found.total
    out.line((found.place, "bold"), f"  {count(total.runs, 'run')}, {count(found.snapshots, 'snapshot')}")
    if not total.runs:
        return
    facts: list[tuple[str, Line]] = [
        ("status", _statuses(total)),
        ("success", [(_rate(total.success_rate, "of those that ended completed"), "")]),
        ("recovery", [(_recovery(total), "")]),
        (
            "tokens",
            [(f"{total.tokens_in:,} in, {total.tokens_out:,} out, {count(total.api_calls, 'call')}", "")],
        ),
        ("cost", [(_cost(total.cost_micros), "")]),
        ("snapshot", [(_sizes(found.snapshot_size), "")]),
        ("saving", [(_saving(found.write_duration), "")]),
        ("on disk", [(size(found.file_bytes), "")]),
    ]
    for label, line in facts:
        out.line((label.ljust(10), "dim"), *line)
    out.line()
    print_table(out, _COLUMNS, [_row(each) for each in found.workflows])
    out.line()
    _print_growth(out, found)
    if total.unreadable:
        what = count(total.unreadable, "run")
        out.hints((f"orchestra verify{option(store)}", f"why {what} cannot be read"))


def _print_growth(out: Screen, found: Overview) -> None:
    shown = found.added[-_DAYS:]
    most = max(amount for _, amount in shown) or 1
    for day, amount in shown:
        out.line(
            (day, "dim"), "  ", ("━" * max(round(24 * amount / most), 1), "accent"), f"  +{size(amount)}"
        )


def _statuses(total: WorkflowOverview) -> Line:
    spans: list[tuple[str, Any]] = []
    for status, amount in total.statuses.items():
        sign, style = STATUSES.get(status, ("?", "warn"))
        spans += [(f"{sign} ", style), (f"{amount:,} {status}   ", "")]
    return spans


def _rate(share: float | None, what: str) -> str:
    return "none has completed or failed yet" if share is None else f"{share:.0%} {what}"


def _recovery(total: WorkflowOverview) -> str:
    if not total.recovered:
        return "none was needed"
    return f"{count(total.recovered, 'run')} recovered or rolled back, " + _rate(
        total.recovery_rate, "of those that ended completed"
    )


def _cost(micros: int) -> str:
    return f"{micros / 1e6:,.4f}" if micros else "0"


def _sizes(held: Percentiles | None) -> str:
    return f"p50 {size(int(held.p50))}, p95 {size(int(held.p95))}" if held else ""


def _saving(held: Percentiles | None) -> str:
    if held is None:
        return "unknown: no telemetry files of these runs are here"
    told = f"p50 {held.p50 * 1000:.2f} ms, p95 {held.p95 * 1000:.2f} ms, longest {held.most * 1000:.2f} ms"
    return f"{told}, of {count(held.count, 'snapshot')}"


def _row(each: WorkflowOverview) -> list[Line]:
    lasted = each.duration
    return [
        [(each.workflow, "bold")],
        [(f"{each.runs:,}", "")],
        [("" if each.success_rate is None else f"{each.success_rate:.0%}", "")],
        [(f"{each.recovered:,}" if each.recovered else "", "")],
        [(duration(int(lasted.p50 * 1e6)) if lasted else "", "")],
        [(duration(int(lasted.p95 * 1e6)) if lasted else "", "")],
        [(f"{each.tokens_in + each.tokens_out:,}", "")],
        [(_cost(each.cost_micros), "")],
    ]


def _json(found: Overview) -> dict[str, Any]:
    told = attrs.asdict(found)
    told["total"].pop("workflow")
    told["added"] = [{"day": day, "bytes": amount} for day, amount in found.added]
    return told
