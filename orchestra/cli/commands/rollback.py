"""`orchestra rollback`: go back to an earlier snapshot, after saying what that means."""

from contextlib import suppress
from typing import Annotated

import anyio
import attrs
from cyclopts import Parameter

from orchestra.cli.options import AsJson, Reason, Reference, StoreUrl, Yes
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.resume import confirm, resume_runs, send_order
from orchestra.cli.render.screen import Line, Screen, print_json, screen
from orchestra.cli.render.summary import label_line
from orchestra.cli.render.text import count
from orchestra.cli.store import archive, option
from orchestra.engine.orders import Order
from orchestra.engine.rollback import RollbackPlan
from orchestra.errors import BadOrder, NotResumable, OrchestraError
from orchestra.history.archive import Archive
from orchestra.history.references import resolve, resolve_run
from orchestra.ids import RunId
from orchestra.model.state import TERMINAL

_SHOWN = 12


def rollback(
    ref: Reference,
    /,
    *,
    yes: Yes = False,
    resume: Annotated[bool, Parameter(name="--resume", help="Go on from there, here.")] = False,
    reason: Reason = "",
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Go back to an earlier snapshot of a run; RUN alone means its last good one.

    First it says what would be undone, kept and paid again, and what cannot be undone. History is not
    changed: the way back is one more snapshot. A run that a process plays goes on from there by itself.
    """
    run, to = _target(ref, store)
    plan = anyio.run(_plan, run, to, store)
    if not json:
        _print(screen(), plan)
    elif not yes:
        print_json(attrs.asdict(plan) | {"done": False})
    confirm("Go back?", f"Going back to {plan.run}@{plan.to}", yes)
    order = Order(kind="rollback", target=str(plan.to), reason=reason)
    row = anyio.run(send_order, run, order, store).row
    here = resume and not row.owned
    if json and not here:
        print_json(attrs.asdict(plan) | {"done": True, "status": row.status, "owned": row.owned})
    if not json:
        screen().line(("✔ ", "good"), (run, "bold"), f" is back at @{plan.to}.")
    if here:
        return resume_runs([run], store=store, as_json=json)
    if not json and not row.owned:
        screen().line(("  next       ", "dim"), f"orchestra resume {run}{option(store)}")
    return 0


def _target(ref: str, store: str | None) -> tuple[RunId, int | None]:
    """The run and where it goes back to; raises `NotResumable` for a run that is over."""
    with archive(store) as opened:
        run, to = _resolve(opened, ref)
        found = opened.run(run)
    if to == found.head and "@" in ref:
        raise BadOrder(order="rollback", reason=f"{run} is at @{to} already")
    if found.status in TERMINAL:
        raise NotResumable(run=run, status=found.status)
    return run, to


def _resolve(opened: Archive, ref: str) -> tuple[RunId, int | None]:
    with suppress(OrchestraError):  # it may be a digest or a UUID
        if "@" not in ref:
            return resolve_run(opened, ref), None
    row = resolve(opened, ref)
    return row.run, row.seq


async def _plan(run: RunId, to: int | None, store: str | None) -> RollbackPlan:
    async with OrchestraPool() as pool:
        return await (await pool.open_existing(store)).rollback_plan(run, to)


def _print(out: Screen, plan: RollbackPlan) -> None:
    where = f", at the phase {plan.phase}" if plan.phase else ""
    out.line((plan.run, "bold"), f" goes back from @{plan.head} to @{plan.to}{where}.")
    out.lines(_list_lines("undone", plan.undone, "no finished work is lost"))
    out.lines(_list_lines("kept", plan.kept))
    out.lines(_list_lines("not undone", plan.effects))
    tokens = f"{plan.tokens:,} tokens" if plan.tokens else ""
    cost = f"{plan.cost_micros / 1_000_000:.4g}" if plan.cost_micros else ""
    paid = ", ".join(filter(None, (tokens, cost)))
    again = f"up to {paid}" if paid else "nothing that was metered"
    out.line(*label_line("paid again", (again, "")))


def _list_lines(label: str, names: tuple[str, ...], none: str = "") -> list[Line]:
    if not names:
        return [label_line(label, (none, "dim"))] if none else []
    lines = [label_line(label if at == 0 else "", (name, "")) for at, name in enumerate(names[:_SHOWN])]
    if len(names) > _SHOWN:
        lines.append(label_line("", (f"and {count(len(names) - _SHOWN, 'more', 'more')}", "dim")))
    return lines
