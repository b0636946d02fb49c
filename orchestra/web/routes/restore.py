"""The route `POST /api/tasks/{id}/restore`: a run back at one of its snapshots, and on from there."""

import logging
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request
from pydantic import Field
from starlette.responses import Response

from orchestra.engine.orders import Order
from orchestra.errors import BadReference, OrchestraError
from orchestra.limits import NAME_CHARS
from orchestra.ports.store import Row, RunRow
from orchestra.web.answers import encode, json_answer
from orchestra.web.parameters import AT_NUMBER
from orchestra.web.play import go_on, send_order
from orchestra.web.routes.actions import Body, check_writable
from orchestra.web.shapes.actions import NotRestoredOut, RestoredOut
from orchestra.web.site import Site, site_of

router = APIRouter(prefix="/api/tasks", tags=["actions"], dependencies=[Depends(check_writable)])
_FAILED: Final[dict[int | str, dict[str, Any]]] = {
    500: {"model": NotRestoredOut, "description": "It failed."}
}
_LOG: Final = logging.getLogger("orchestra.web")


class RestoreIn(Body):
    """The snapshot to go back to."""

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
    try:
        await _restore(site_of(request), id, str(body.checkpointId))
    except OrchestraError as error:
        _LOG.warning("%s was not restored: %s", id[:NAME_CHARS], error)
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
    target = site.row(row.run, checkpoint) if is_number else site.reference(checkpoint)
    if target.run != row.run:
        raise BadReference(reference=checkpoint, reason=f"it is no snapshot of {row.run}")
    return row, target
