"""The route of plans: what an action would mean, in figures and in sentences. Nothing is changed."""

import json
from typing import Annotated, Any, Literal

import attrs
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra.app.plans import ActionPlan, plan_fork, plan_resume
from orchestra.errors import BadOrder, NotResumable
from orchestra.ids import RunId
from orchestra.limits import WEB_PATH_CHARS
from orchestra.model.state import TERMINAL
from orchestra.web.answers import json_answer
from orchestra.web.errors import BadRequest
from orchestra.web.parameters import AtOptional, RunName, site_of
from orchestra.web.routes.actions import place, value_of
from orchestra.web.shapes import found as more
from orchestra.web.site import Site

router = APIRouter(prefix="/api/runs/{run}", tags=["actions"])
Action = Literal["fork", "resume", "rollback", "replay"]
_SHOWN = 6


@router.get("/plan", response_model=more.PlannedOut)
async def plan(
    request: Request,
    run: RunName,
    action: Action,
    at: AtOptional = None,
    values: Annotated[str, Query(max_length=WEB_PATH_CHARS, description="A JSON object of values.")] = "{}",
) -> Response:
    """What an action would do again, undo and keep, and what it cannot undo."""
    site, plain = site_of(request), _values(values)
    default = "last-good" if action == "rollback" else "head"
    name, seq = await site.read(lambda: place(site, run, at or default))
    head = await site.read(lambda: site.archive.run(name))
    if action in ("resume", "rollback") and head.status in TERMINAL:
        raise NotResumable(run=name, status=head.status)
    if action == "rollback":
        made = await _rollback(site, name, seq)
    elif action == "resume":
        made = await plan_resume(await site.house(None, action), name)
    else:
        made = await plan_fork(await site.house(None, action), name, seq, plain if action == "fork" else {})
    to = None if action == "resume" else made.at
    sentences = _sentences(action, made, head.head)
    answer = attrs.asdict(made) | {"action": action, "at": head.head, "to": to, "sentences": sentences}
    return json_answer(request, answer)


def _values(text: str) -> dict[str, Any]:
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest(reason="values are a JSON object") from None
    if not isinstance(plain, dict):
        raise BadRequest(reason="values are a JSON object")
    return {path: value_of(form) for path, form in plain.items()}


async def _rollback(site: Site, run: RunId, seq: int) -> ActionPlan:
    house = await site.house(None, "rollback")
    found = await house.rollback_plan(run, seq)
    if found.to >= found.head:
        raise BadOrder(order="rollback", reason=f"{run} is at @{found.head} already")
    after = await plan_fork(house, run, seq, {})
    return attrs.evolve(
        after,
        kept=found.kept,
        undone=found.undone,
        again=tuple(dict.fromkeys((*found.undone, *after.again))),
        effects=found.effects,
        tokens=found.tokens,
        cost_micros=found.cost_micros,
    )


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
        said.append(f"{_count(len(plan.kept), 'result')} {_are(len(plan.kept))} kept.")
    elif plan.kept:
        said.append(f"Kept: {_listed(plan.kept)}.")
    if plan.undone:
        said.append(f"Undone, and made again: {_listed(plan.undone)}.")
    again = [task for task in plan.again if task not in plan.undone]
    said.append(f"Done next: {_listed(again)}." if again else "Then the workflow goes on from there.")
    if plan.effects:
        said.append(f"Not undone in the outside world: {_listed(plan.effects)}.")
    if plan.tokens and action != "resume":
        said.append(f"About {plan.tokens:,} tokens have been spent since; they may be spent again.")
    return said


def _listed(names: Any) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
