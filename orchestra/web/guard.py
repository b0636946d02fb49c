"""The guard: who may ask, and how much. It stands before every route and trusts nothing it is sent.

A page of another origin can make a browser send requests here. So the Host must be ours (a foreign name that
leads to this machine is refused), an Origin must be ours, and a token that only the person at this machine
was given must come along: as a cookie of this very port, or as `Authorization: Bearer`. Whatever changes
something must be a POST of JSON.
"""

import logging
import secrets
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

import anyio
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestra.errors import OrchestraError
from orchestra.limits import WEB_BODY_BYTES, WEB_BODY_SECONDS, WEB_HEADER_BYTES
from orchestra.web.answers import error_answer, problem_answer
from orchestra.web.errors import BadRequest, LongHeaders, NotAllowed, TooBusy, TooLarge, TooSlow
from orchestra.web.site import Door

_LOG: Final = logging.getLogger("orchestra.web")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # "no-referrer" would make the origin of our own POSTs "null"
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""What every answer says."""
_FOREIGN: Final = frozenset({"cross-site", "same-site"})


class Guard:
    """Lets through what is allowed."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app, self._door = app, door
        self._cookie = f"orchestra_{door.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        sent = _Sender(send)
        try:
            await self._answer(scope, receive, sent)
        except OrchestraError as error:
            await self._refuse(error_answer(error), scope, receive, sent)
        except anyio.get_cancelled_exc_class():  # the server stops, and this took longer than it waits
            if not sent.has_begun:
                stopping = error_answer(TooBusy(reason="it is being stopped"))
                with anyio.CancelScope(shield=True):
                    await self._refuse(stopping, scope, receive, sent)
            raise
        except Exception:
            _LOG.exception("an answer failed")
            failed = problem_answer("Unexpected", "The browser failed. Its terminal says more.", 500, {})
            await self._refuse(failed, scope, receive, sent)

    async def _refuse(self, response: Response, scope: Scope, receive: Receive, sent: "_Sender") -> None:
        if sent.has_begun:
            raise ConnectionAbortedError("an answer broke off")
        response.headers["Connection"] = "close"  # what is left of the request is not read
        if not scope["path"].startswith("/api") and response.status_code == 403:
            text = "This page needs the address that `orchestra browse` printed.\n"
            response = PlainTextResponse(text, 403, headers={"Connection": "close"})
        await response(scope, receive, sent)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size > WEB_HEADER_BYTES:  # what arrives in one piece was not counted while it arrived
            raise LongHeaders(limit=WEB_HEADER_BYTES)
        headers = Headers(scope=scope)
        self._check_place(scope, headers)
        if redirect := self._first_visit(scope):
            await redirect(scope, receive, send)
            return
        self._check_token(scope, headers)
        if scope["method"] == "POST":
            receive = await _read_body(headers, receive)
        elif "transfer-encoding" in headers or headers.getlist("content-length") not in ([], ["0"]):
            raise BadRequest(reason="a question has no body")
        elif scope["method"] == "HEAD" and scope["path"] != "/api/events":
            scope = {**scope, "method": "GET"}
        await self.app(scope, receive, send)

    def _check_place(self, scope: Scope, headers: Headers) -> None:
        """That it was sent to this place, by this place or by no page at all."""
        if headers.getlist("host") not in [[name] for name in self._door.names]:
            raise NotAllowed(reason="it was sent to another host")
        own = f"http://{headers.get('host')}"
        if headers.getlist("origin") not in ([], [own]):
            raise NotAllowed(reason="it comes from another origin")
        mode, end = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
        is_page = scope["method"] == "GET" and not scope["path"].startswith("/api")
        is_visit = is_page and (mode, end) == ("navigate", "document")  # somebody follows a link to it
        if headers.get("sec-fetch-site") in _FOREIGN and not is_visit:
            raise NotAllowed(reason="it comes from another site")

    def _first_visit(self, scope: Scope) -> Response | None:
        """Turns a right token in the address into a cookie; raises `NotAllowed` for a wrong one."""
        if scope["method"] not in ("GET", "HEAD"):
            return None
        given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in given if name == "token"]
        if not tokens:
            return None
        if not all(self._is_token(token) for token in tokens):
            raise NotAllowed(reason="the token is wrong")
        rest = urlencode([pair for pair in given if pair[0] != "token"])
        path = "/" + quote(scope["path"].lstrip("/"), safe="/:@._-~!$&'()*+,;=")
        response = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        cookie = f"{self._cookie}={self._door.token}; HttpOnly; SameSite=Strict; Path=/"
        response.headers["Set-Cookie"] = cookie
        return response

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        bearer = headers.get("authorization")
        if bearer is not None:
            scheme, _, token = bearer.partition(" ")
            if scheme.lower() != "bearer" or not self._is_token(token.strip()):
                raise NotAllowed(reason="the token is wrong")
            return
        cookies = ";".join(headers.getlist("cookie")).split(";")
        pairs = [cookie.strip().partition("=") for cookie in cookies]
        if not any(name == self._cookie and self._is_token(token) for name, _, token in pairs):
            raise NotAllowed(reason="the token is missing or wrong")
        if scope["method"] not in ("GET", "HEAD") and headers.get("origin") is None:
            raise NotAllowed(reason="it does not say where it comes from")

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(errors="replace"), self._door.token.encode())


class _Sender:
    """Sends a response with the headers that every one has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            held = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in held]
            message = {**message, "headers": [*message["headers"], *more]}
        await self._send(message)


async def _read_body(headers: Headers, receive: Receive) -> Receive:
    """Read a body of JSON whole, within its limits; raises `TooLarge`, `TooSlow` or `BadRequest`."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadRequest(reason="a POST has to be of type application/json")
    length = headers.get("content-length")
    if length is not None and (not length.isdecimal() or int(length) > WEB_BODY_BYTES):
        raise TooLarge(limit=WEB_BODY_BYTES)
    try:
        with anyio.fail_after(WEB_BODY_SECONDS):
            messages: list[Message] = [{"type": "http.request", "body": await _collect(receive)}]
    except TimeoutError:
        raise TooSlow(seconds=WEB_BODY_SECONDS) from None

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def _collect(receive: Receive) -> bytes:
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest(reason="it broke off")
        content += message.get("body", b"")
        if len(content) > WEB_BODY_BYTES:
            raise TooLarge(limit=WEB_BODY_BYTES)
        if not message.get("more_body", False):
            return bytes(content)
