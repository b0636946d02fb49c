"""The route of plans: what an action would mean, in figures and in sentences. Nothing is changed."""

import json
from collections.abc import Sequence
from typing import Annotated, Literal

import attrs
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra.app.plans import ActionPlan, plan_fork, plan_resume
from orchestra.errors import BadOrder, NotResumable
from orchestra.limits import WEB_PATH_CHARS
from orchestra.model.state import TERMINAL
from orchestra.ports.store import Row
from orchestra.web.answers import encode, json_answer
from orchestra.web.errors import BadRequest
from orchestra.web.parameters import AtOptional, RunName
from orchestra.web.routes.actions import value_of
from orchestra.web.shapes.actions import PlannedOut
from orchestra.web.site import Site, site_of
from orchestra.web.views.fields import Json, attributes

router = APIRouter(prefix="/api/runs/{run}", tags=["actions"])
Action = Literal["fork", "resume", "rollback", "replay"]
_SHOWN = 6


@router.get("/plan", response_model=PlannedOut)
async def plan(
    request: Request,
    run: RunName,
    action: Action,
    at: AtOptional = None,
    values: Annotated[str, Query(max_length=WEB_PATH_CHARS, description="A JSON object of values.")] = "{}",
) -> Response:
    """What an action would do again, undo and keep, and what it cannot undo."""
    site, plain = site_of(request), _values(values)
    base = await site.read(lambda: site.row(run, at or ("last-good" if action == "rollback" else "head")))
    head = await site.read(lambda: site.archive.run(base.run))
    if action in ("resume", "rollback") and head.status in TERMINAL:
        raise NotResumable(run=base.run, status=head.status)
    made = await _plan(site, action, base, plain)
    answer = attrs.asdict(made) | {
        "action": action,
        "at": head.head,
        "to": None if action == "resume" else made.at,
        "sentences": _sentences(action, made, head.head),
    }
    return json_answer(request, encode(answer))


def _values(text: str) -> Json:
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        plain = None
    if not isinstance(plain, dict):
        raise BadRequest(reason="values are a JSON object")
    return {path: value_of(form) for path, form in plain.items()}


async def _plan(site: Site, action: Action, base: Row, values: Json) -> ActionPlan:
    orchestra = await site.orchestra(None, action)
    if action == "resume":
        return await plan_resume(orchestra, base.run)
    if action != "rollback":
        return await plan_fork(orchestra, base.run, base.seq, values if action == "fork" else {})
    found = await orchestra.rollback_plan(base.run, base.seq)
    if found.to >= found.head:
        raise BadOrder(order="rollback", reason=f"{base.run} is at @{found.head} already")
    after = await plan_fork(orchestra, base.run, base.seq, {})
    again = tuple(dict.fromkeys((*found.undone, *after.again)))
    changes = attributes(found, "kept", "undone", "effects", "tokens", "cost_micros")
    return attrs.evolve(after, again=again, **changes)


def _sentences(action: Action, plan: ActionPlan, head: int) -> list[str]:
    """What a dialog says before somebody presses the button."""
    where = f" in the phase {plan.phase}" if plan.phase else ""
    firsts = {
        "fork": f"A new run begins at @{plan.at}{where}; {plan.run} is not touched.",
        "replay": f"A new run begins at @{plan.at}{where} and is played; {plan.run} is not touched.",
        "resume": f"{plan.run} goes on from @{plan.at}{where}.",
        "rollback": f"{plan.run} goes back from @{head} to @{plan.at}{where}; what lies between is kept.",
    }
    said = [firsts[action]]
    if plan.kept and action != "rollback":
        said.append("1 result is kept." if len(plan.kept) == 1 else f"{len(plan.kept):,} results are kept.")
    elif plan.kept:
        said.append(f"Kept: {_names(plan.kept)}.")
    if plan.undone:
        said.append(f"Undone, and made again: {_names(plan.undone)}.")
    again = [task for task in plan.again if task not in plan.undone]
    said.append(f"Done next: {_names(again)}." if again else "Then the workflow goes on from there.")
    if plan.effects:
        said.append(f"Not undone in the outside world: {_names(plan.effects)}.")
    if plan.tokens and action != "resume":
        said.append(f"About {plan.tokens:,} tokens have been spent since; they may be spent again.")
    return said


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
