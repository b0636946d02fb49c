"""Routes that change something. Each is a POST of JSON; each can be asked for its plan first."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.responses import Response

from orchestra import limits
from orchestra.codec.json_values import BadForm, from_json
from orchestra.engine.orders import Order
from orchestra.errors import BadOrder, NotResumable
from orchestra.history import annotations
from orchestra.ids import RunId
from orchestra.model.state import TERMINAL
from orchestra.web.answers import json_answer
from orchestra.web.errors import BadRequest, ReadOnly
from orchestra.web.parameters import AT, AT_NUMBER, RunName, site_of
from orchestra.web.play import go_on, order
from orchestra.web.shapes import found as more
from orchestra.web.site import Site, now


def _whole(given: Any) -> Any:
    """To JSON 1.0 is an integer too."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


At = Annotated[
    Annotated[int, Field(ge=-AT_NUMBER, le=AT_NUMBER)]
    | Annotated[str, Field(max_length=limits.NAME_CHARS, pattern=AT)],
    Field(description="A snapshot: its number, head, last-good or phase:NAME."),
    BeforeValidator(_whole),
]
Text = Annotated[str, Field(max_length=limits.NOTE_CHARS)]
Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS)]


def writable(request: Request) -> None:
    """Refuse whatever would change something in a browser that only reads."""
    if site_of(request).read_only:
        raise ReadOnly(action=request.url.path.rpartition("/")[2])


router = APIRouter(prefix="/api/runs/{run}", tags=["actions"], dependencies=[Depends(writable)])


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ForkIn(_Asked):
    """A new run at a snapshot of another, with values changed."""

    at: At = "head"
    values: dict[Name, Any] = Field(default_factory=dict, description="By `inputs.NAME` or `context.NAME`.")
    play: bool = False
    reason: Text = ""


class ReplayIn(_Asked):
    """A new run at a snapshot of another, played at once."""

    at: At = "head"


class ResumeIn(_Asked):
    """Going on with a run."""

    accept_changes: bool = False


class RollbackIn(_Asked):
    """Going back to an earlier snapshot; without one, to the last good one."""

    to: At | None = None
    reason: Text = ""
    play: bool = False


class ReasonIn(_Asked):
    """Why."""

    reason: Text = ""


class SnapshotIn(_Asked):
    """A snapshot for its own sake."""

    note: Text = ""


class AnswerIn(_Asked):
    """An answer to a question that a run waits with."""

    wait: Annotated[str, Field(max_length=limits.NAME_CHARS)] = ""
    value: Any
    play: bool = Field(default=False, description="Go on with the run here when nobody plays it.")


class ProvideIn(_Asked):
    """That something a run needs is there now."""

    name: Name
    play: bool = False


class RetryIn(_Asked):
    """Another try at an assignment of the current phase."""

    task: Name
    play: bool = False


class PinIn(_Asked):
    """Keeping a snapshot for good, or not any more."""

    at: At = "head"
    on: bool = True
    text: Text = ""


class NoteIn(_Asked):
    """Words on a snapshot; none take them back."""

    at: At = "head"
    text: Text = ""


def value_of(form: Any) -> Any:
    """A value from its JSON form; raises `BadRequest`."""
    try:
        return from_json(form)
    except BadForm as bad:
        raise BadRequest(reason=f"a value has no form: {bad}") from None


def place(site: Site, run: str, at: int | str) -> tuple[RunId, int]:
    """The snapshot of a run that is meant; raises `UnknownRun` or `UnknownSnapshot`."""
    row = site.row(run, str(at))
    return row.run, row.seq


@router.post("/fork", response_model=more.BegunOut)
async def fork(request: Request, run: RunName, body: ForkIn) -> Response:
    """Begin a new run at a snapshot; what the changed values leave valid is kept. It plays when asked to."""
    site = site_of(request)
    new = await _forked(site, run, body.at, body.values, body.reason)
    playing = await go_on(site, new) if body.play else False
    return json_answer(request, {"run": new, "playing": playing})


@router.post("/replay", response_model=more.BegunOut)
async def replay(request: Request, run: RunName, body: ReplayIn) -> Response:
    """Begin a new run at a snapshot and play it."""
    site = site_of(request)
    new = await _forked(site, run, body.at, {}, "replay")
    return json_answer(request, {"run": new, "playing": await go_on(site, new)})


async def _forked(site: Site, run: str, at: int | str, values: dict[str, Any], reason: str) -> RunId:
    plain = {path: value_of(form) for path, form in values.items()}
    name, seq = await site.read(lambda: place(site, run, at))
    house = await site.house(name, "fork")
    return await house.fork(name, seq, values=plain, reason=reason)


@router.post("/resume", response_model=more.BegunOut)
async def resume(request: Request, run: RunName, body: ResumeIn) -> Response:
    """Go on with a run: in the process that plays it, else here."""
    site = site_of(request)
    name = await _named(site, run)
    playing = await go_on(site, name, accept_changes=body.accept_changes)
    return json_answer(request, {"run": name, "playing": playing})


@router.post("/rollback", response_model=more.WentBackOut)
async def rollback(request: Request, run: RunName, body: RollbackIn) -> Response:
    """Go back to an earlier snapshot; a run that is played goes on from there by itself."""
    site = site_of(request)
    name, to = await _rolled_back(site, run, body.to, body.reason)
    playing = await _go_on_if(site, name, body.play)
    return json_answer(request, {"run": name, "to": to, "playing": playing})


async def _rolled_back(site: Site, run: str, to: int | str | None, reason: str) -> tuple[RunId, int]:
    name, seq = await site.read(lambda: place(site, run, "last-good" if to is None else to))
    row = await site.read(lambda: site.archive.run(name))
    if row.status in TERMINAL:
        raise NotResumable(run=name, status=row.status)
    if seq >= row.head:
        raise BadOrder(order="rollback", reason=f"{name} is at @{row.head} already")
    await order(site, name, Order(kind="rollback", target=str(seq), reason=reason))
    return name, seq


@router.post("/pause", response_model=more.OrderedOut)
async def pause(request: Request, run: RunName, body: ReasonIn) -> Response:
    """Pause a run: what is under way is finished, nothing new begins."""
    return await _ordered(request, run, Order(kind="pause", reason=body.reason))


@router.post("/cancel", response_model=more.OrderedOut)
async def cancel(request: Request, run: RunName, body: ReasonIn) -> Response:
    """Cancel a run for good; it can only be forked then."""
    return await _ordered(request, run, Order(kind="cancel", reason=body.reason))


@router.post("/snapshot", response_model=more.OrderedOut)
async def snapshot(request: Request, run: RunName, body: SnapshotIn) -> Response:
    """Take a snapshot of a run now."""
    return await _ordered(request, run, Order(kind="snapshot", reason=body.note))


@router.post("/answer", response_model=more.OrderedOut)
async def answer(request: Request, run: RunName, body: AnswerIn) -> Response:
    """Answer a question that a run waits with, wherever it is played."""
    wanted = Order(kind="answer", target=body.wait, value=value_of(body.value))
    return await _ordered(request, run, wanted, play=body.play)


@router.post("/provide", response_model=more.OrderedOut)
async def provide(request: Request, run: RunName, body: ProvideIn) -> Response:
    """Say that something a run needs is there now."""
    return await _ordered(request, run, Order(kind="provide", target=body.name), play=body.play)


@router.post("/retry", response_model=more.OrderedOut)
async def retry(request: Request, run: RunName, body: RetryIn) -> Response:
    """Try an assignment of the current phase again."""
    return await _ordered(request, run, Order(kind="retry", target=body.task), play=body.play)


async def _ordered(request: Request, run: str, wanted: Order, *, play: bool = False) -> Response:
    site = site_of(request)
    name = await _named(site, run)
    await order(site, name, wanted)
    playing = await _go_on_if(site, name, play)
    row = await site.read(lambda: site.archive.run(name))
    stands = await site.read(lambda: site.runs.standing(row))
    answer = {"run": name, "status": row.status, "standing": stands, "playing": playing}
    return json_answer(request, answer)


async def _go_on_if(site: Site, run: RunId, play: bool) -> bool:
    """Play a run here when that is wanted and nobody does; returns whether it is played here."""
    row = await site.read(lambda: site.archive.run(run))
    if play and not row.owned and row.status not in TERMINAL:
        return await go_on(site, run)
    return run in site.playing


async def _named(site: Site, run: str) -> RunId:
    return (await site.read(lambda: site.run_row(run))).run


@router.post("/pin", response_model=more.PinnedOut)
async def pin(request: Request, run: RunName, body: PinIn) -> Response:
    """Keep a snapshot for good, whatever retention says, or leave it to retention again."""
    site = site_of(request)

    def change() -> dict[str, Any]:
        name, seq = place(site, run, body.at)
        if body.on:
            annotations.pin(site.archive.store, site.archive.framer, name, seq, now(), body.text)
        else:
            annotations.unpin(site.archive.store, name, seq)
        return {"run": name, "seq": seq, "pin": body.text if body.on else None}

    return json_answer(request, await site.read(change))


@router.post("/note", response_model=more.NotedOut)
async def note(request: Request, run: RunName, body: NoteIn) -> Response:
    """Write a note on a snapshot, in place of an earlier one; an empty text takes it back."""
    site = site_of(request)

    def change() -> dict[str, Any]:
        name, seq = place(site, run, body.at)
        if body.text:
            annotations.note(site.archive.store, site.archive.framer, name, seq, now(), body.text)
        else:
            annotations.remove_note(site.archive.store, name, seq)
        return {"run": name, "seq": seq, "note": body.text or None}

    return json_answer(request, await site.read(change))
