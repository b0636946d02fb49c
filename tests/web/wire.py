"""Requests as bytes on a socket, so that anything can be sent, also what no client would send."""

import anyio
import attrs

from tests.web.support import SECONDS, TOKEN, Visitor


@attrs.frozen
class Reply:
    """What came back, taken apart."""

    status: int
    headers: dict[str, str]
    body: bytes


async def exchange(visitor: Visitor, sent: bytes) -> Reply | None:
    """Send bytes and read until the other side closes; None when nothing came back."""
    port = visitor.site.door.port
    with anyio.fail_after(SECONDS):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            try:
                await stream.send(sent)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return None
            return await read_reply(stream)


async def read_reply(stream: anyio.abc.ByteReceiveStream) -> Reply | None:
    """Everything until the end of the stream."""
    received = b""
    try:
        while True:
            received += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    if not received:
        return None
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Reply(int(first.split(" ")[1]), headers, body)


def request(
    method: str,
    target: str,
    *,
    host: str | None,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> bytes:
    """A request that asks for the connection to be closed."""
    lines = [f"{method} {target} HTTP/1.1", "Connection: close"]
    if host is not None:
        lines.append(f"Host: {host}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def cookie(visitor: Visitor, token: str = TOKEN) -> dict[str, str]:
    """The cookie that the first visit sets."""
    return {"Cookie": f"orchestra_{visitor.site.door.port}={token}"}
