"""`orchestra rollback`: go back to an earlier snapshot, after saying what that means."""

from typing import Annotated, Any

import anyio
import attrs
from cyclopts import Parameter

from orchestra.cli.options import AsJson, Reason, Reference, StoreUrl, Yes
from orchestra.cli.play.confirm import confirm
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.resume import resume_runs
from orchestra.cli.play.send import send_order
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.summary import label_line
from orchestra.cli.render.text import count
from orchestra.cli.store import archive, option
from orchestra.engine.orders import Order
from orchestra.engine.rollback import RollbackPlan
from orchestra.errors import BadOrder, NotResumable, OrchestraError
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
    _check(run, store)
    plan = anyio.run(_plan, run, to, store)
    if not json:
        _print(screen(), plan)
    elif not yes:
        print_json(plan_json(plan))
    confirm("Go back?", f"Going back to {plan.run}@{plan.to}", yes)
    order = Order(kind="rollback", target=str(plan.to), reason=reason)
    row = anyio.run(send_order, run, order, store).row
    here = resume and not row.owned
    if json and not here:
        print_json(plan_json(plan) | {"done": True, "status": row.status, "owned": row.owned})
    if not json:
        screen().line(("✔ ", "good"), (run, "bold"), f" is back at @{plan.to}.")
    if here:
        return resume_runs([run], store=store, as_json=json)
    if not json and not row.owned:
        screen().line(("  next       ", "dim"), f"orchestra resume {run}{option(store)}")
    return 0


def _target(ref: str, store: str | None) -> tuple[RunId, int | None]:
    with archive(store) as opened:
        if "@" not in ref:
            try:
                return resolve_run(opened, ref), None
            except OrchestraError:  # it may be a digest or a UUID
                pass
        row = resolve(opened, ref)
        head = opened.run(row.run).head
        if row.seq == head and "@" in ref:
            raise BadOrder(order="rollback", reason=f"{row.run} is at @{head} already")
        return row.run, row.seq


def _check(run: RunId, store: str | None) -> None:
    """A run that is over stays as it is; raises `NotResumable`, which says how to fork it."""
    with archive(store) as opened:
        status = opened.run(run).status
    if status in TERMINAL:
        raise NotResumable(run=run, status=status)


async def _plan(run: RunId, to: int | None, store: str | None) -> RollbackPlan:
    async with OrchestraPool() as pool:
        return await (await pool.open_existing(store)).rollback_plan(run, to)


def plan_json(plan: RollbackPlan) -> dict[str, Any]:
    """What going back would mean, as JSON."""
    plain = attrs.asdict(plan)
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()},
        "done": False,
    }


def _print(out: Screen, plan: RollbackPlan) -> None:
    where = f", at the phase {plan.phase}" if plan.phase else ""
    out.line((plan.run, "bold"), f" goes back from @{plan.head} to @{plan.to}{where}.")
    for label, names, none in (
        ("undone", plan.undone, "no finished work is lost"),
        ("kept", plan.kept, ""),
        ("not undone", plan.effects, ""),
    ):
        out.lines(_list_lines(label, names, none))
    paid = []
    if plan.tokens:
        paid.append(f"{plan.tokens:,} tokens")
    if plan.cost_micros:
        paid.append(f"{plan.cost_micros / 1_000_000:.4g}")
    again = ", ".join(paid) or "nothing that was metered"
    out.line(*label_line("paid again", [(f"up to {again}" if paid else again, "")]))


def _list_lines(label: str, names: tuple[str, ...], none: str) -> list[Line]:
    if not names:
        return [label_line(label, [(none, "dim")])] if none else []
    lines = [label_line(label if at == 0 else "", [(name, "")]) for at, name in enumerate(names[:_SHOWN])]
    if len(names) > _SHOWN:
        lines.append(label_line("", [(f"and {count(len(names) - _SHOWN, 'more', 'more')}", "dim")]))
    return lines
