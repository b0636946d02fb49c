"""Answers: compact JSON, tags by which a browser knows what it has already, errors in a sentence, files."""

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from io import BytesIO
from typing import Any, BinaryIO, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from orchestra.errors import OrchestraError
from orchestra.limits import WEB_COMPRESS_BYTES
from orchestra.web.errors import TooBusy, status_of

FOREVER: Final = "private, max-age=31536000, immutable"
FRESH: Final = "no-store"
BYTES: Final = "application/octet-stream"
SAFE: Final = {
    "Cache-Control": FRESH,
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
}
"""How content that came from a run is sent: nothing in it can do anything."""
_JSON: Final = "application/json"
_CHUNK_BYTES: Final = 256 * 1024


def encode(answer: Any) -> bytes:
    """JSON without spaces; lone surrogates are escaped, so that it is always UTF-8."""
    text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json_line(answer)


def json_line(answer: Any) -> bytes:
    """JSON that is one line to every reader, whatever signs it takes for the end of one."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()


def accepts_gzip(request: Request) -> bool:
    """Whether whoever asks reads packed answers."""
    return "gzip" in request.headers.get("accept-encoding", "")


def is_known(request: Request, tag: str) -> bool:
    """Whether whoever asks has the answer with this tag already."""
    return request.headers.get("if-none-match") == f'"{tag}"'


def json_answer(request: Request, body: bytes, *, tag: str | None = None, forever: bool = False) -> Response:
    """JSON as an answer, packed when that pays; with a tag, a client that has it already is told so.

    What may be long is packed in a thread: it would block the loop.
    """
    headers = {"Cache-Control": FOREVER if forever else "private, no-cache" if tag else FRESH}
    if tag is not None:
        headers["ETag"] = f'"{tag}"'
        if is_known(request, tag):
            return Response(status_code=304, headers=headers)
    headers["Vary"] = "Accept-Encoding"
    if len(body) >= WEB_COMPRESS_BYTES and accepts_gzip(request):
        body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
    return Response(body, headers=headers, media_type=_JSON)


def error_answer(error: OrchestraError, status: int | None = None) -> Response:
    """An error as JSON: its name and its sentence. Where it was too much, the connection is given up too."""
    close = {"Connection": "close"} if isinstance(error, TooBusy) else {}
    return problem_answer(type(error).__name__, str(error), status or status_of(error), close)


def problem_answer(name: str, message: str, status: int, headers: Mapping[str, str]) -> Response:
    """What went wrong as JSON."""
    body, headers = encode({"error": name, "message": message}), {"Cache-Control": FRESH, **headers}
    return Response(body, status, headers=headers, media_type=_JSON)


def file_answer(file: BinaryIO, name: str, size: int, media_type: str = BYTES) -> Response:
    """A file that is to be saved, not shown; it is sent piece by piece."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(size)}
    return StreamingResponse(_chunks(file), media_type=media_type, headers=SAFE | headers)


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        if isinstance(file, BytesIO):
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        while chunk := await anyio.to_thread.run_sync(file.read, _CHUNK_BYTES):
            yield chunk
