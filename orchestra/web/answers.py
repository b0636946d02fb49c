"""Answers: compact JSON, tags by which a browser knows what it has already, errors in a sentence."""

import gzip
import json
from collections.abc import Mapping
from typing import Any, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestra.errors import OrchestraError
from orchestra.limits import WEB_COMPRESS_BYTES, WEB_INLINE_BYTES
from orchestra.web.errors import TooBusy, status_of

FOREVER: Final = "private, max-age=31536000, immutable"
FRESH: Final = "no-store"
_JSON: Final = "application/json"
_LEVEL: Final = 1


def encode(answer: Any) -> bytes:
    """JSON without spaces; lone surrogates are escaped, so that it is always UTF-8."""
    text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()


def line(answer: Any) -> bytes:
    """JSON that is one line to every reader, whatever signs it takes for the end of one."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()


class Answer(Response):
    """An answer that is written as JSON, and packed; in a thread, unless it is short and written already.

    A large one would hold everybody up.
    """

    media_type = _JSON

    def __init__(self, request: Request, answer: Any, headers: Mapping[str, str]) -> None:
        super().__init__(b"", headers={**headers, "Vary": "Accept-Encoding"})
        self._answer, self._packs = answer, "gzip" in request.headers.get("accept-encoding", "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write it, then send it."""
        is_short = isinstance(self._answer, bytes) and len(self._answer) <= WEB_INLINE_BYTES
        self.body, packed = self._written() if is_short else await anyio.to_thread.run_sync(self._written)
        self.headers["Content-Length"] = str(len(self.body))
        if packed:
            self.headers["Content-Encoding"] = "gzip"
        await super().__call__(scope, receive, send)

    def _written(self) -> tuple[bytes, bool]:
        body = self._answer if isinstance(self._answer, bytes) else encode(self._answer)
        packs = self._packs and len(body) >= WEB_COMPRESS_BYTES
        return (gzip.compress(body, _LEVEL, mtime=0), True) if packs else (body, False)


def json_answer(request: Request, answer: Any, *, tag: str | None = None, forever: bool = False) -> Response:
    """An answer as JSON; with a tag, a client that has it already is told so."""
    headers = {"Cache-Control": FOREVER if forever else "private, no-cache" if tag else FRESH}
    if tag is not None:
        headers["ETag"] = f'"{tag}"'
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
    return Answer(request, answer, headers)


def error_answer(error: OrchestraError) -> Response:
    """An error as JSON: its name and its sentence. Where it was too much, the connection is given up too."""
    body = encode({"error": type(error).__name__, "message": str(error)})
    headers = {"Cache-Control": FRESH} | ({"Connection": "close"} if isinstance(error, TooBusy) else {})
    return Response(body, status_of(error), headers=headers, media_type=_JSON)
