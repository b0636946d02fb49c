"""As much HTTP as a test needs: one request a connection, and answers that may break off anywhere."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


class ClientGone(Exception):
    """Whoever asked is no longer there."""


@attrs.frozen(kw_only=True)
class HttpRequest:
    """A request; header names are in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body or b"{}")


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The request of a connection, or None if nobody asks anything."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.splitlines()
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None
    return HttpRequest(method=method, path=target.partition("?")[0], headers=headers, body=body)


def head_of(status: int, headers: Mapping[str, str]) -> bytes:
    """The head of an answer."""
    lines = [f"HTTP/1.1 {status} {_phrase(status)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def chunk_of(data: bytes) -> bytes:
    """Bytes as a chunk of a body whose length nobody knows; empty bytes end it."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class Connection:
    """The way back to whoever asked. Raises ClientGone as soon as they are not there any more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send bytes, and let the loop run once: whoever left is noticed before the next ones."""
        if self._reader.at_eof() or self._writer.is_closing():
            raise ClientGone
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError as error:
            raise ClientGone from error
        await asyncio.sleep(0)

    async def send_json(self, data: Any, status: int = 200) -> None:
        """A whole answer."""
        body = json.dumps(data).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        await self.send(head_of(status, headers) + body)

    async def until(self, awaited: Coroutine[Any, Any, T]) -> T:
        """Wait for something as long as the client waits as well."""
        wanted = asyncio.ensure_future(awaited)
        gone = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait([wanted, gone], return_when=asyncio.FIRST_COMPLETED)
            if not wanted.done():
                raise ClientGone
            return wanted.result()
        finally:
            for task in (wanted, gone):
                task.cancel()
            await asyncio.gather(wanted, gone, return_exceptions=True)

    async def close(self) -> None:
        """End the connection; what was sent arrives."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()
