"""The route of the feed: server-sent events that a client takes up again where it lost them."""

from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from orchestra.ids import RunId
from orchestra.limits import RUN_ID_CHARS
from orchestra.web.feed import Feed
from orchestra.web.parameters import NUMBER, RUN_PATTERN
from orchestra.web.shapes import sends
from orchestra.web.site import site_of

router = APIRouter(prefix="/api", tags=["live"])
_STREAM: Final = "text/event-stream"


class _FeedResponse(StreamingResponse):
    """The feed for one listener, who has a place as long as it is sent."""

    media_type = _STREAM

    def __init__(self, feed: Feed, run: RunId | None, after: int | None) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(feed.listen(run, after), headers=headers)
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; raises `TooBusy`."""
        with self._feed.place():
            await super().__call__(scope, receive, send)


@router.get("/events", response_class=StreamingResponse, responses=sends(_STREAM))
async def events(
    request: Request,
    run: Annotated[str | None, Query(max_length=RUN_ID_CHARS, pattern=RUN_PATTERN)] = None,
    after: Annotated[int | None, Query(ge=0, le=NUMBER)] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,15}$")] = None,
) -> Response:
    """What happens in the store as server-sent events, after a commit number or from now on."""
    site = site_of(request)
    site.feed.check_room()  # before anything is looked up
    named = None if run is None else (await site.read(lambda: site.run_row(run))).run
    begun = int(last_event_id) if last_event_id is not None else after
    return _FeedResponse(site.feed, named, begun)
