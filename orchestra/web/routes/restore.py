"""The route `POST /api/tasks/{id}/restore`: a run back at one of its snapshots, and on from there."""

import logging
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from orchestra.engine.orders import Order
from orchestra.errors import BadReference, OrchestraError
from orchestra.ids import RunId
from orchestra.limits import NAME_CHARS
from orchestra.web.answers import encode, json_answer
from orchestra.web.parameters import AT_NUMBER, site_of
from orchestra.web.play import go_on, order
from orchestra.web.routes.actions import writable
from orchestra.web.shapes.found import NotRestoredOut, RestoredOut
from orchestra.web.site import Site

router = APIRouter(prefix="/api/tasks", tags=["actions"], dependencies=[Depends(writable)])
_FAILED: Final[dict[int | str, dict[str, Any]]] = {
    500: {"model": NotRestoredOut, "description": "It failed."}
}
_LOG: Final = logging.getLogger("orchestra.web")


class RestoreIn(BaseModel):
    """The snapshot to go back to."""

    model_config = ConfigDict(extra="forbid", strict=True)
    checkpointId: Annotated[  # noqa: N815
        Annotated[int, Field(ge=0, le=AT_NUMBER)]
        | Annotated[str, Field(min_length=1, max_length=NAME_CHARS)],
        Field(description="The number, the digest or the UUID of a snapshot."),
    ]


@router.post("/{id}/restore", response_model=RestoredOut, responses=_FAILED)
async def restore(
    request: Request,
    id: Annotated[str, Path(min_length=1, max_length=NAME_CHARS, description="A run's id.")],
    body: RestoreIn,
) -> Response:
    """Go back to a snapshot of a run and go on from there."""
    site = site_of(request)
    try:
        await _restored(site, id, str(body.checkpointId))
    except OrchestraError as error:
        _LOG.warning("%s was not restored: %s", id[:NAME_CHARS], error)
        failed = {"error": "Failed to restore from checkpoint"}
        return Response(encode(failed), 500, media_type="application/json")
    return json_answer(request, {"success": True, "message": "Task restored from checkpoint"})


async def _restored(site: Site, run: str, checkpoint: str) -> None:
    name, seq, head, owned = await site.read(lambda: _found(site, run, checkpoint))
    if seq != head:
        await order(site, name, Order(kind="rollback", target=str(seq), reason="restored"))
    if not owned:
        await go_on(site, name)


def _found(site: Site, run: str, checkpoint: str) -> tuple[RunId, int, int, bool]:
    """The snapshot that is meant, where the run is now, and whether it is played."""
    row = site.run_row(run)
    is_number = checkpoint.lstrip("-").isdecimal() and len(checkpoint) < 13
    found = site.row(row.run, checkpoint) if is_number else site.reference(checkpoint)
    if found.run != row.run:
        raise BadReference(reference=checkpoint, reason=f"it is no snapshot of {row.run}")
    return row.run, found.seq, row.head, row.owned
