"""Routes that change something. Each is a POST of JSON; most can be asked for their plan first."""

import json
import logging
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import anyio
import attrs
from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.responses import Response

from orchestra import limits
from orchestra.app.orchestra import Orchestra
from orchestra.app.workbench import ActionPlan
from orchestra.codec.json_values import BadForm, from_json
from orchestra.engine.orders import Order
from orchestra.errors import BadOrder, BadReference, NotResumable, OrchestraError, RunOwned
from orchestra.history import annotations
from orchestra.history.references import resolve
from orchestra.ids import RunId, wall_clock
from orchestra.model.state import TERMINAL
from orchestra.ports.store import Row, RunRow
from orchestra.web import shapes
from orchestra.web.answers import encode, json_answer
from orchestra.web.errors import BadRequest, ReadOnly
from orchestra.web.parameters import AT_NUMBER, AT_PATTERN, AT_WORDS, AtOptional, RunName
from orchestra.web.site import Site, answer_json, site_of
from orchestra.web.views.common import Json, attributes

At = Annotated[
    Annotated[int, Field(ge=-AT_NUMBER, le=AT_NUMBER)]
    | Annotated[str, Field(max_length=limits.NAME_CHARS, pattern=AT_PATTERN)],
    Field(description=AT_WORDS),
    # To JSON 1.0 is an integer too.
    BeforeValidator(lambda given: int(given) if isinstance(given, float) and given.is_integer() else given),
]
Text = Annotated[str, Field(max_length=limits.NOTE_CHARS)]
Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS)]


def check_writable(request: Request) -> None:
    """Raises `ReadOnly` in a browser that only reads."""
    if site_of(request).is_read_only:
        raise ReadOnly(action=request.url.path.rpartition("/")[2])


router = APIRouter(prefix="/api", tags=["actions"], dependencies=[Depends(check_writable)])
plans = APIRouter(prefix="/api/runs/{run}", tags=["actions"])
Action = Literal["fork", "resume", "rollback", "replay"]
Values = Annotated[str, Query(max_length=limits.WEB_PATH_CHARS, description="A JSON object of values.")]
_SHOWN: Final = 6
_LOG: Final = logging.getLogger("orchestra.web")
_LOOK_SECONDS: Final = 0.01


class Body(BaseModel):
    """The body of a request: nothing else may stand in it."""

    model_config = ConfigDict(extra="forbid", strict=True)


class AtIn(Body):
    """A snapshot of the run."""

    at: At = "head"


class ForkIn(AtIn):
    """A new run at a snapshot of another, with values changed."""

    values: dict[Name, Any] = Field(
        default_factory=dict, description="By `inputs.NAME`, `context.NAME` or a place in a conversation."
    )
    play: bool = False
    reason: Text = ""


class ResumeIn(Body):
    """Going on with a run."""

    accept_changes: bool = False


class ReasonIn(Body):
    """Why."""

    reason: Text = ""


class RollbackIn(ReasonIn):
    """Going back to an earlier snapshot; without one, to the last good one."""

    to: At | None = None
    play: bool = False


class SnapshotIn(Body):
    """A snapshot for its own sake."""

    note: Text = ""


class AnswerIn(Body):
    """An answer to a question that a run waits with."""

    wait: Annotated[str, Field(max_length=limits.NAME_CHARS)] = ""
    value: Any
    play: bool = Field(default=False, description="Go on with the run here when nobody plays it.")


class ProvideIn(Body):
    """That something a run needs is there now."""

    name: Name
    play: bool = False


class RetryIn(Body):
    """Another try at an assignment of the current phase."""

    task: Name
    play: bool = False


class RestoreIn(Body):
    """The snapshot to go back to."""

    checkpointId: Annotated[  # noqa: N815
        Annotated[int, Field(ge=0, le=AT_NUMBER)]
        | Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS)],
        Field(description="The number, the digest or the UUID of a snapshot."),
    ]


class NoteIn(AtIn):
    """Words on a snapshot; none take them back."""

    text: Text = ""


class PinIn(NoteIn):
    """Keeping a snapshot for good, or not any more."""

    on: bool = True


def value_of(form: Any) -> Any:
    """A value from its JSON form; raises `BadRequest`."""
    try:
        return from_json(form)
    except BadForm as bad:
        raise BadRequest(reason=f"a value has no form: {bad}") from None


@router.post("/runs/{run}/fork", response_model=shapes.BegunOut)
async def fork(request: Request, run: RunName, body: ForkIn) -> Response:
    """Begin a new run at a snapshot; what the changed values leave valid is kept. It plays when asked to."""
    values = {path: value_of(form) for path, form in body.values.items()}
    return await _fork(request, run, body.at, values, body.reason, play=body.play)


@router.post("/runs/{run}/replay", response_model=shapes.BegunOut)
async def replay(request: Request, run: RunName, body: AtIn) -> Response:
    """Begin a new run at a snapshot and play it."""
    return await _fork(request, run, body.at, {}, "replay", play=True)


async def _fork(
    request: Request, run: str, at: int | str, values: Json, reason: str, *, play: bool
) -> Response:
    site = site_of(request)
    row = await site.read(lambda: site.row(run, str(at)))
    orchestra = await site.orchestra(row.run, "fork")
    new = await orchestra.fork(row.run, row.seq, values=values, reason=reason)
    return _begun(request, new, playing=play and await go_on(site, new))


def _begun(request: Request, run: RunId, *, playing: bool, **more: Any) -> Response:
    return json_answer(request, encode({"run": run, **more, "playing": playing}))


@router.post("/runs/{run}/resume", response_model=shapes.BegunOut)
async def resume(request: Request, run: RunName, body: ResumeIn) -> Response:
    """Go on with a run: in the process that plays it, else here."""
    site = site_of(request)
    name = (await site.read(lambda: site.run_row(run))).run
    return _begun(request, name, playing=await go_on(site, name, accept_changes=body.accept_changes))


@router.post("/runs/{run}/rollback", response_model=shapes.WentBackOut)
async def rollback(request: Request, run: RunName, body: RollbackIn) -> Response:
    """Go back to an earlier snapshot; a run that is played goes on from there by itself."""
    site = site_of(request)
    target = await site.read(lambda: site.row(run, "last-good" if body.to is None else str(body.to)))
    row = await site.read(lambda: site.archive.run(target.run))
    if row.status in TERMINAL:
        raise NotResumable(run=row.run, status=row.status)
    if target.seq >= row.head:
        raise BadOrder(order="rollback", reason=f"{row.run} is at @{row.head} already")
    await send_order(site, row.run, Order(kind="rollback", target=str(target.seq), reason=body.reason))
    return _begun(request, row.run, to=target.seq, playing=await _go_on_if(site, row.run, body.play))


@router.post("/runs/{run}/pause", response_model=shapes.OrderedOut)
async def pause(request: Request, run: RunName, body: ReasonIn) -> Response:
    """Pause a run: what is under way is finished, nothing new begins."""
    return await _order(request, run, Order(kind="pause", reason=body.reason))


@router.post("/runs/{run}/cancel", response_model=shapes.OrderedOut)
async def cancel(request: Request, run: RunName, body: ReasonIn) -> Response:
    """Cancel a run for good; it can only be forked then."""
    return await _order(request, run, Order(kind="cancel", reason=body.reason))


@router.post("/runs/{run}/snapshot", response_model=shapes.OrderedOut)
async def snapshot(request: Request, run: RunName, body: SnapshotIn) -> Response:
    """Take a snapshot of a run now."""
    return await _order(request, run, Order(kind="snapshot", reason=body.note))


@router.post("/runs/{run}/answer", response_model=shapes.OrderedOut)
async def answer(request: Request, run: RunName, body: AnswerIn) -> Response:
    """Answer a question that a run waits with, wherever it is played."""
    order = Order(kind="answer", target=body.wait, value=value_of(body.value))
    return await _order(request, run, order, play=body.play)


@router.post("/runs/{run}/provide", response_model=shapes.OrderedOut)
async def provide(request: Request, run: RunName, body: ProvideIn) -> Response:
    """Say that something a run needs is there now."""
    return await _order(request, run, Order(kind="provide", target=body.name), play=body.play)


@router.post("/runs/{run}/retry", response_model=shapes.OrderedOut)
async def retry(request: Request, run: RunName, body: RetryIn) -> Response:
    """Try an assignment of the current phase again."""
    return await _order(request, run, Order(kind="retry", target=body.task), play=body.play)


async def _order(request: Request, run: str, order: Order, *, play: bool = False) -> Response:
    site = site_of(request)
    name = (await site.read(lambda: site.run_row(run))).run
    await send_order(site, name, order)
    playing = await _go_on_if(site, name, play)

    def read(site: Site) -> Json:
        row = site.archive.run(name)
        return {"run": name, "status": row.status, "standing": site.runs.status_of(row), "playing": playing}

    return await answer_json(request, read)


async def _go_on_if(site: Site, run: RunId, play: bool) -> bool:
    """Play a run here when that is wanted and nobody does; returns whether it is played here."""
    row = await site.read(lambda: site.archive.run(run))
    if play and not row.owned and row.status not in TERMINAL:
        return await go_on(site, run)
    return run in site.playing


@router.post("/runs/{run}/pin", response_model=shapes.PinnedOut)
async def pin(request: Request, run: RunName, body: PinIn) -> Response:
    """Keep a snapshot for good, whatever retention says, or leave it to retention again."""

    def change(site: Site) -> Json:
        row, store = site.row(run, str(body.at)), site.archive.store
        if body.on:
            annotations.pin(store, site.archive.framer, row.run, row.seq, wall_clock(), body.text)
        else:
            annotations.unpin(store, row.run, row.seq)
        return {"run": row.run, "seq": row.seq, "pin": body.text if body.on else None}

    return await answer_json(request, change)


@router.post("/runs/{run}/note", response_model=shapes.NotedOut)
async def note(request: Request, run: RunName, body: NoteIn) -> Response:
    """Write a note on a snapshot, in place of an earlier one; an empty text takes it back."""

    def change(site: Site) -> Json:
        row, store = site.row(run, str(body.at)), site.archive.store
        if body.text:
            annotations.note(store, site.archive.framer, row.run, row.seq, wall_clock(), body.text)
        else:
            annotations.remove_note(store, row.run, row.seq)
        return {"run": row.run, "seq": row.seq, "note": body.text or None}

    return await answer_json(request, change)


@router.post(
    "/tasks/{id}/restore",
    response_model=shapes.RestoredOut,
    responses={500: {"model": shapes.NotRestoredOut, "description": "It failed."}},
)
async def restore(
    request: Request,
    id: Annotated[str, Path(min_length=1, max_length=limits.NAME_CHARS, description="A run's id.")],
    body: RestoreIn,
) -> Response:
    """Go back to a snapshot of a run and go on from there."""
    try:
        await _restore(site_of(request), id, str(body.checkpointId))
    except OrchestraError as error:
        _LOG.warning("%s was not restored: %s", id[: limits.NAME_CHARS], error)
        failed = {"error": "Failed to restore from checkpoint"}
        return Response(encode(failed), 500, media_type="application/json")
    return json_answer(request, encode({"success": True, "message": "Task restored from checkpoint"}))


async def _restore(site: Site, run: str, checkpoint: str) -> None:
    row, target = await site.read(lambda: _rows(site, run, checkpoint))
    if target.seq != row.head:
        await send_order(site, row.run, Order(kind="rollback", target=str(target.seq), reason="restored"))
    if not row.owned:
        await go_on(site, row.run)


def _rows(site: Site, run: str, checkpoint: str) -> tuple[RunRow, Row]:
    """The run and its snapshot that are meant."""
    row = site.run_row(run)
    is_number = checkpoint.lstrip("-").isdecimal() and len(checkpoint) < 13
    target = site.row(row.run, checkpoint) if is_number else resolve(site.archive, checkpoint)
    if target.run != row.run:
        raise BadReference(reference=checkpoint, reason=f"it is no snapshot of {row.run}")
    return row, target


# --- playing runs: in this process, until they end or the browser does


async def send_order(site: Site, run: RunId, order: Order) -> None:
    """Have something done with a run, wherever it is played; raises `BadOrder`."""
    orchestra = site.playing.get(run) or await site.orchestra(run, order.kind)
    await orchestra.order(run, order, patience=limits.WEB_ORDER_SECONDS)


async def go_on(site: Site, run: RunId, *, accept_changes: bool = False) -> bool:
    """Go on with a run: where it is played already, or here; returns whether it is played here.

    Raises `NotResumable`, `RunOwned` when another process is playing it, and what keeps it from going on.
    """
    row = await site.read(lambda: site.archive.run(run))
    if row.status in TERMINAL:
        raise NotResumable(run=run, status=row.status)
    if row.owned and row.status == "running":
        raise RunOwned(run=run, owner=row.owner)
    if row.owned:
        await send_order(site, run, Order(kind="resume"))
        return run in site.playing
    await _begin(site, run, await site.orchestra(run, "resume"), accept_changes)
    return True


async def _begin(site: Site, run: RunId, orchestra: Orchestra, accept_changes: bool) -> None:
    """Play a run in the background; returns once that is under way, or raises what prevented it."""
    failures: list[OrchestraError] = []
    over = anyio.Event()

    async def play() -> None:
        with site.mark_playing(run, orchestra):
            try:
                await orchestra.resume(run, accept_changes=accept_changes, wait=True)
            except OrchestraError as error:
                _LOG.warning("run %s is not played any more: %s", run, error)
                failures.append(error)
            except Exception:
                _LOG.exception("playing run %s failed", run)
                failures.append(BadOrder(order="resume", reason=f"playing {run} failed; see the terminal"))
            finally:
                over.set()

    if site.group is None:
        raise BadOrder(order="resume", reason="the browser is about to end")
    site.group.start_soon(play)
    for _ in range(int(limits.WEB_ORDER_SECONDS / _LOOK_SECONDS)):
        if over.is_set() or run in orchestra.playing:
            break
        await anyio.sleep(_LOOK_SECONDS)
    if failures:
        raise failures[0]


# --- plans: what an action would mean, in figures and in sentences; nothing is changed


@plans.get("/plan", response_model=shapes.PlannedOut)
async def plan(
    request: Request, run: RunName, action: Action, at: AtOptional = None, values: Values = "{}"
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
    plan_fork = orchestra.workbench.plan_fork
    if action == "resume":
        return await plan_fork(base.run, None, {})
    if action != "rollback":
        return await plan_fork(base.run, base.seq, values if action == "fork" else {})
    found = await orchestra.rollback_plan(base.run, base.seq)
    if found.to >= found.head:
        raise BadOrder(order="rollback", reason=f"{base.run} is at @{found.head} already")
    after = await plan_fork(base.run, base.seq, {})
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
