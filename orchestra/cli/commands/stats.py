"""`orchestra stats`: how the runs of a store went, what they spent and what they take up."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from orchestra.cli.options import AsJson, OfWorkflow, StoreUrl
from orchestra.cli.play.settings import settings_in_force
from orchestra.cli.render.run_list import STATUSES
from orchestra.cli.render.screen import Column, Progress, Screen, Span, print_json, print_table, screen
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import duration
from orchestra.cli.store import archive, option
from orchestra.history.calibration import Calibration, ConfidenceBand
from orchestra.limits import CALIBRATION_RESULTS
from orchestra.telemetry.overview import Overview, Percentiles, WorkflowOverview, overview

_WIDE_GAP: Final = 0.1
_DAYS: Final = 14
"""So many days of growth are shown; JSON has all of them."""


def stats(*, workflow: OfWorkflow = None, store: StoreUrl = None, json: AsJson = False) -> None:
    """Say how the runs of a store went, what they spent and what they take up.

    How long saving took is read from the telemetry files of the runs, where there are any. Where agents said
    how sure they were of results that an evaluator judged, the two are compared.
    """
    outputs = Path(settings_in_force(store).engine.outputs)
    with archive(store) as opened, Progress("reading") as progress:
        found = overview(opened, outputs, workflow=workflow, progress=progress)
    if json:
        told = attrs.asdict(found)
        told["total"].pop("workflow")
        print_json(told | {"added": [{"day": day, "bytes": amount} for day, amount in found.added]})
    else:
        _print(screen(), found, store)


def _print(out: Screen, found: Overview, store: str | None) -> None:
    total = found.total
    out.line((found.place, "bold"), f"  {count(total.runs, 'run')}, {count(found.snapshots, 'snapshot')}")
    if not total.runs:
        return
    statuses: list[Span] = []
    for status, amount in total.statuses.items():
        sign, style = STATUSES.get(status, ("?", "warn"))
        statuses += [(f"{sign} ", style), (f"{amount:,} {status}   ", "")]
    out.line(("status    ", "dim"), *statuses)
    sizes, calls = found.snapshot_size, count(total.api_calls, "call")
    recovered = f"{count(total.recovered, 'run')} recovered or rolled back, {_rate(total.recovery_rate)}"
    facts = {
        "success": _rate(total.success_rate),
        "recovery": recovered if total.recovered else "none was needed",
        "tokens": f"{total.tokens_in:,} in, {total.tokens_out:,} out, {calls}",
        "cost": _cost(total.cost_micros),
        "snapshot": f"p50 {size(int(sizes.p50))}, p95 {size(int(sizes.p95))}" if sizes else "",
        "saving": _saving(found.write_duration),
        "on disk": size(found.file_bytes),
    }
    for label, said in facts.items():
        out.line((label.ljust(10), "dim"), said)
    out.line()
    print_table(out, _COLUMNS, found.workflows)
    out.line()
    if found.calibration:
        _print_calibration(out, found.calibration)
    shown = found.added[-_DAYS:]
    most = max(amount for _, amount in shown) or 1
    for day, amount in shown:
        bar = "━" * max(round(24 * amount / most), 1)
        out.line((day, "dim"), "  ", (bar, "accent"), f"  +{size(amount)}")
    if total.unreadable:
        what = count(total.unreadable, "run")
        out.hints((f"orchestra verify{option(store)}", f"why {what} cannot be read"))


def _print_calibration(out: Screen, found: Sequence[Calibration]) -> None:
    """How sure agents said they were beside the verdicts: a line for all results, one for each band."""
    out.line(("calibration", "bold"), "  the confidence stated for a result, and the verdict on it")
    rows = [
        _Stated(held.workflow, held.agent, held.model, band) if at == 0 else _Stated("", "", "", band)
        for held in found
        for at, band in enumerate((held.total, *held.bands))
    ]
    print_table(out, _CALIBRATION, rows)
    if not all(held.total.enough for held in found):
        out.line((f"too few: fewer than {CALIBRATION_RESULTS} results say little", "dim"))
    out.line()


@attrs.frozen
class _Stated:
    workflow: str
    agent: str
    model: str
    band: ConfidenceBand

    @property
    def said(self) -> str:
        """From where to where the stated confidence goes."""
        if self.agent:
            return "all"
        return f"{self.band.least:g} to {1 if self.band.below is None else self.band.below:g}"

    @property
    def gap(self) -> Span:
        """By how much it is surer than verdicts bear out, or less sure."""
        gap = self.band.gap
        if not self.band.enough:
            return "too few", "dim"
        return f"{gap * 100:+.0f} %", "warn" if abs(gap) > _WIDE_GAP else ""


def _rate(share: float | None) -> str:
    told = "none has completed or failed yet"
    return told if share is None else f"{share:.0%} of those that ended completed"


def _cost(micros: int) -> str:
    return f"{micros / 1e6:,.4f}" if micros else "0"


def _saving(held: Percentiles | None) -> str:
    if held is None:
        return "unknown: no telemetry files of these runs are here"
    told = f"p50 {held.p50 * 1000:.2f} ms, p95 {held.p95 * 1000:.2f} ms, longest {held.most * 1000:.2f} ms"
    return f"{told}, of {count(held.count, 'snapshot')}"


_CALIBRATION: Final[tuple[Column[_Stated], ...]] = (
    Column("workflow", lambda each: (each.workflow, "bold"), drop=3),
    Column("agent", lambda each: (each.agent, "bold"), least=8),
    Column("model", lambda each: each.model, drop=2),
    Column("stated", lambda each: each.said),
    Column("judged", lambda each: f"{each.band.results:,}", align="right"),
    Column("accept", lambda each: f"{each.band.accept:,}", align="right"),
    Column("revise", lambda each: f"{each.band.revise:,}", align="right"),
    Column("reject", lambda each: f"{each.band.reject:,}", align="right"),
    Column("mean", lambda each: f"{each.band.stated:.0%}", align="right", drop=1),
    Column("accepted", lambda each: f"{each.band.accepted:.0%}", align="right"),
    Column("gap", lambda each: each.gap, align="right"),
)

_COLUMNS: Final[tuple[Column[WorkflowOverview], ...]] = (
    Column("workflow", lambda each: (each.workflow, "bold"), least=12),
    Column("runs", lambda each: f"{each.runs:,}", align="right"),
    Column("completed", lambda each: "" if (share := each.success_rate) is None else f"{share:.0%}", "right"),
    Column("recovered", lambda each: f"{each.recovered:,}" if each.recovered else "", align="right", drop=2),
    Column("p50", lambda each: duration(int(each.duration.p50 * 1e6)) if each.duration else "", "right"),
    Column("p95", lambda each: duration(int(each.duration.p95 * 1e6)) if each.duration else "", "right"),
    Column("tokens", lambda each: f"{each.tokens_in + each.tokens_out:,}", align="right", drop=3),
    Column("cost", lambda each: _cost(each.cost_micros), align="right", drop=4),
)
