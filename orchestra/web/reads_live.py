"""The route of the feed: server-sent events that a client takes up again where it lost them."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from orchestra.limits import RUN_ID_CHARS, WEB_LISTENERS
from orchestra.web.asked import RUN_PATTERN, site_of
from orchestra.web.errors import TooBusy

router = APIRouter(prefix="/api", tags=["live"])
_NUMBER: Final = 1 << 53
_STREAM: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/event-stream": {}}}}


@router.get("/events", response_class=StreamingResponse, responses=_STREAM)
async def events(
    request: Request,
    run: Annotated[str | None, Query(max_length=RUN_ID_CHARS, pattern=RUN_PATTERN)] = None,
    after: Annotated[int | None, Query(ge=0, le=_NUMBER)] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,15}$")] = None,
) -> Response:
    """What happens in the store as server-sent events, after a commit number or from now on."""
    site = site_of(request)
    if site.feed.is_full:
        raise TooBusy(reason=f"{WEB_LISTENERS} listen already")
    named = None if run is None else (await site.read(lambda: site.run_row(run))).run
    begun = int(last_event_id) if last_event_id is not None else after
    return StreamingResponse(
        site.feed.listen(named, begun),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
