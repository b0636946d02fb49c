"""Who is let in: every mix of host, origin, method and token, and what never leaks to the others."""

import json
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.errors import BadSetting
from orchestra.ports.store import Store
from orchestra.web.guard import POLICY
from orchestra.web.routes.files import safe_media_type
from orchestra.web.server import open_listener
from tests.unit.cli.recording import REVIEW
from tests.web.support import TOKEN, Visitor, served
from tests.web.wire import Reply, cookie, exchange, request

pytestmark = pytest.mark.anyio
LINKED = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TOKENS = ("none", "wrong", "query", "wrong query", "cookie", "bearer")
ORIGINS = (None, "null", "http://evil.com", "own")


@pytest.fixture
async def visitor(recorded: Store, tmp_path: Path) -> AsyncIterator[Visitor]:
    """Somebody before a browser with a page, over the recorded runs."""
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<!doctype html><title>a page</title>" + "x" * 3000)
    (tmp_path / "page" / "main.js").write_text("export const a = 1;\n")
    (tmp_path / "secret.txt").write_text("secret")
    async with (
        Orchestra(recorded, project=tmp_path) as orchestra,
        served(recorded, orchestra, pages=tmp_path / "page") as made,
    ):
        yield made


def _hosts(port: int) -> list[tuple[str | None, bool]]:
    """Hosts, and whether each is ours."""
    return [
        (f"127.0.0.1:{port}", True),
        (f"localhost:{port}", True),
        ("evil.com", False),
        (f"127.0.0.1.evil.com:{port}", False),
        (f"localhost:{port + 1}", False),
        (f"[::1]:{port}", False),
        ("0.0.0.0", False),
        ("", False),
    ]


def _sent(visitor: Visitor, method: str, host: str | None, origin: str | None, token: str) -> bytes:
    headers: dict[str, str] = {}
    target = f"/api/runs/{REVIEW}"
    if origin is not None:
        headers["Origin"] = f"http://{host}" if origin == "own" else origin
    if token in ("query", "wrong query"):
        target += f"?token={TOKEN if token == 'query' else 'wrong'}"
    elif token == "bearer":
        headers["Authorization"] = f"Bearer {TOKEN}"
    elif token != "none":
        headers |= cookie(visitor, TOKEN if token == "cookie" else "wrong")
    return request(method, target, host=host, headers=headers)


def _expected(method: str, ours: bool, origin: str | None, token: str) -> set[int]:
    """What must be answered: 403 unless everything is right."""
    asks = method in ("GET", "HEAD")
    if not ours or origin in ("null", "http://evil.com"):
        return {403}
    if token == "query" and asks:
        return {303}
    if token not in ("cookie", "bearer"):
        return {403}
    if asks:
        return {200}
    if token == "cookie" and origin is None:
        return {403}
    return {400, 405}


async def test_nobody_is_let_in_who_should_not_be(visitor: Visitor) -> None:
    hosts = _hosts(visitor.site.door.port)
    limiter, wrong = anyio.Semaphore(16), list[str]()

    async def one(method: str, host: tuple[str | None, bool], origin: str | None, token: str) -> None:
        async with limiter:
            reply = await exchange(visitor, _sent(visitor, method, host[0], origin, token))
        expected = _expected(method, host[1], origin, token)
        if reply is None or reply.status not in expected or not _is_safe(reply):
            wrong.append(f"{method} {host[0]} {origin} {token}: {reply} instead of {expected}")

    async with anyio.create_task_group() as group:
        for mix in product(METHODS, hosts, ORIGINS, TOKENS):
            group.start_soon(one, *mix)
    assert not wrong, "\n".join(wrong[:20])


def _is_safe(reply: Reply) -> bool:
    """Whether a reply has the headers of every reply, and one that refuses tells nothing."""
    framed = reply.headers.get("x-frame-options") == "DENY"
    policy = reply.headers.get("content-security-policy") == POLICY
    cross = "access-control-allow-origin" in reply.headers
    leaks = reply.status != 200 and (REVIEW.encode() in reply.body or TOKEN.encode() in reply.body)
    return framed and policy and not cross and not leaks


async def test_the_first_visit_sets_a_cookie_and_leaves_the_token_behind(visitor: Visitor) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    target = f"/runs/{REVIEW}?at=4&token={TOKEN}&tab=changes"
    reply = await exchange(visitor, request("GET", target, host=host))
    assert reply is not None
    assert reply.status == 303
    assert reply.headers["location"] == f"/runs/{REVIEW}?at=4&tab=changes"
    set_ = reply.headers["set-cookie"]
    assert "HttpOnly" in set_
    assert "SameSite=Strict" in set_
    given = {"Cookie": set_.partition(";")[0]}
    page = await exchange(visitor, request("GET", reply.headers["location"], host=host, headers=given))
    assert page is not None
    assert page.status == 200
    assert b"a page" in page.body


@pytest.mark.parametrize("path", ["//evil.com/", "/\\evil.com", "/%2f%2fevil.com", "///evil.com"])
async def test_the_first_visit_leads_nowhere_else(visitor: Visitor, path: str) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    reply = await exchange(visitor, request("GET", f"{path}?token={TOKEN}", host=host))
    assert reply is not None
    assert reply.status == 303
    assert reply.headers["location"][0] == "/"
    assert reply.headers["location"][1] not in "/\\"


async def test_a_visit_without_the_token_says_what_to_do(visitor: Visitor) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    reply = await exchange(visitor, request("GET", "/", host=host))
    assert reply is not None
    assert (reply.status, reply.headers["content-type"]) == (403, "text/plain; charset=utf-8")
    assert b"orchestra browse" in reply.body


@pytest.mark.parametrize(
    ("fetched", "path", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, "/api/runs", 200),
        ({"Sec-Fetch-Site": "none"}, "/api/runs", 200),
        ({"Sec-Fetch-Site": "cross-site"}, "/api/runs", 403),
        ({"Sec-Fetch-Site": "same-site"}, "/api/runs", 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, "/page/main.js", 403),
        (
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
            "/",
            200,
        ),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, "/", 403),
    ],
)
async def test_another_page_of_this_machine_cannot_ask(
    visitor: Visitor, fetched: dict[str, str], path: str, status: int
) -> None:
    found = await visitor.client.get(path, headers=fetched)
    assert found.status_code == status


@pytest.mark.parametrize("header", ["Host", "Origin"])
async def test_a_header_that_comes_twice_is_refused(visitor: Visitor, header: str) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    own = host if header == "Host" else f"http://{host}"
    more = f"{header}: {own}\r\n{header}: http://evil.com\r\n"
    start = f"GET /api/runs HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
    more += f"Host: {host}\r\n" if header == "Origin" else ""
    reply = await exchange(visitor, f"{start}{more}\r\n".encode())
    assert reply is not None
    assert reply.status in (400, 403)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", b"{}"),
        ("application/x-www-form-urlencoded", b"reason=x"),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("", b"{}"),
    ],
)
async def test_only_json_changes_anything(visitor: Visitor, kind: str, body: bytes) -> None:
    before = visitor.site.archive.store.last_no()
    headers = {"Content-Type": kind} if kind else {}
    done = await visitor.client.post(f"/api/runs/{REVIEW}/snapshot", content=body, headers=headers)
    assert done.status_code == 400
    assert "application/json" in done.json()["message"]
    assert visitor.site.archive.store.last_no() == before


async def test_a_cookie_alone_changes_nothing_without_its_own_origin(visitor: Visitor) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    before = visitor.site.archive.store.last_no()
    kind = {"Content-Type": "application/json"}
    for origin in (None, "null", "http://evil.com", f"https://{host}", f"http://{host}.evil.com"):
        said = {} if origin is None else {"Origin": origin}
        sent = request(
            "POST",
            f"/api/runs/{REVIEW}/snapshot",
            host=host,
            headers=cookie(visitor) | kind | said,
            body=b"{}",
        )
        reply = await exchange(visitor, sent)
        assert reply is not None
        assert reply.status == 403
    assert visitor.site.archive.store.last_no() == before
    own = cookie(visitor) | kind | {"Origin": f"http://{host}"}
    note = json.dumps({"at": 1, "text": "mine"}).encode()
    target = f"/api/runs/{REVIEW}/note"
    reply = await exchange(visitor, request("POST", target, host=host, headers=own, body=note))
    assert reply is not None
    assert reply.status == 200


@pytest.mark.parametrize(
    "verb", ["fork", "replay", "resume", "rollback", "pause", "cancel", "snapshot", "answer", "pin", "note"]
)
async def test_asking_changes_nothing(visitor: Visitor, verb: str) -> None:
    before = visitor.site.archive.store.last_no()
    for method in ("GET", "HEAD"):
        found = await visitor.client.request(method, f"/api/runs/{REVIEW}/{verb}?at=1&text=x")
        assert found.status_code in (404, 405)
    assert visitor.site.archive.store.last_no() == before


@pytest.mark.parametrize(
    "path",
    [
        "/page/../secret.txt",
        "/page/..%2fsecret.txt",
        "/page/%2e%2e/secret.txt",
        "/page/....//secret.txt",
        "/page//etc/passwd",
        "/page/%00",
        "/page/main.js%00.html",
        "/page/..\\secret.txt",
        "/page/",
        "/page",
    ],
)
async def test_nothing_outside_the_page_is_sent(visitor: Visitor, path: str) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    reply = await exchange(visitor, request("GET", path, host=host, headers=cookie(visitor)))
    assert reply is not None
    assert reply.status == 404
    assert b"secret" not in reply.body.replace(b"secret.txt", b"")


async def test_files_of_the_page_are_packed_and_known_by_their_tag(visitor: Visitor) -> None:
    found = await visitor.client.get("/")
    assert found.headers["content-encoding"] == "gzip"
    assert found.headers["content-security-policy"] == POLICY
    again = await visitor.client.get("/", headers={"If-None-Match": found.headers["etag"]})
    assert again.status_code == 304
    script = await visitor.client.get("/page/main.js")
    assert script.headers["content-type"].startswith("text/javascript")
    for path in (f"/runs/{REVIEW}", f"/runs/{REVIEW}/workflow"):
        assert (await visitor.client.get(path)).text == found.text


async def test_an_upgrade_is_not_followed(visitor: Visitor) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    upgrade = {
        "Connection": "Upgrade, close",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
    }
    reply = await exchange(visitor, request("GET", "/api/events", host=host, headers=upgrade))
    assert reply is not None
    assert reply.status == 403


async def test_a_cookie_of_another_port_does_not_open(visitor: Visitor) -> None:
    host = visitor.site.door.address.removeprefix("http://")
    other = {"Cookie": f"orchestra_{visitor.site.door.port + 1}={TOKEN}; orchestra={TOKEN}"}
    reply = await exchange(visitor, request("GET", "/api/runs", host=host, headers=other))
    assert reply is not None
    assert reply.status == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::", ""])
def test_only_this_machine_is_listened_to(host: str) -> None:
    with pytest.raises(BadSetting):
        open_listener(host, 0)


def test_hostile_output_is_only_bytes() -> None:
    kinds = {
        "text/html": "application/octet-stream",
        "image/svg+xml": "application/octet-stream",
        "text/xml": "application/octet-stream",
        "application/xhtml+xml": "application/octet-stream",
        "application/pdf": "application/octet-stream",
        "text/javascript": "text/plain; charset=utf-8",
        "image/png": "image/png",
        "TEXT/HTML; charset=x": "application/octet-stream",
    }
    assert {kind: safe_media_type(kind, b"<script>") for kind in kinds} == kinds
    assert safe_media_type("text/plain", b"\xff\xfe") == "application/octet-stream"
