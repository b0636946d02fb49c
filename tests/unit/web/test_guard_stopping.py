"""What was asked of a server that is being stopped is refused in words, not broken off as a fault."""

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from orchestra.web.guard import Guard
from orchestra.web.site import Door

pytestmark = pytest.mark.anyio
DOOR = Door(host="127.0.0.1", port=4321, token="a" * 32)
ASKED = {
    "type": "http",
    "method": "GET",
    "path": "/api/runs",
    "raw_path": b"/api/runs",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1:4321"), (b"authorization", f"Bearer {DOOR.token}".encode())],
}


async def stopped(begins: bool) -> list[Message]:
    """What is sent of an answer that never ends, once the server has waited long enough."""
    sent: list[Message] = []
    working = anyio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if begins:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        working.set()
        await anyio.sleep_forever()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async with anyio.create_task_group() as group:
        group.start_soon(Guard(endless, DOOR), dict(ASKED), receive, send)
        await working.wait()
        group.cancel_scope.cancel()
    return sent


async def test_what_was_not_answered_is_refused() -> None:
    start, body = await stopped(begins=False)
    assert start["status"] == 503
    assert b"it is being stopped" in body["body"]


async def test_an_answer_that_has_begun_just_ends() -> None:
    sent = await stopped(begins=True)
    assert [message.get("status") for message in sent] == [200]
