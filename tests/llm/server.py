"""The server behind a provider for tests: takes requests, plays what is planned for them, keeps the books."""

import asyncio
from pathlib import Path
from typing import Final

import attrs

from tests.llm.answers import Dialect
from tests.llm.asked import Asked, Json
from tests.llm.dialects.chat import CHAT
from tests.llm.dialects.messages import MESSAGES
from tests.llm.dialects.responses import RESPONSES
from tests.llm.ledger import Journal, Ledger
from tests.llm.plan import Outgoing, Part, Plan, plan_for
from tests.llm.script import Gate, Script, read_script
from tests.llm.wire import ClientGone, Connection, HttpRequest, chunk_of, head_of, read_request

DIALECTS: Final = (CHAT, RESPONSES, MESSAGES)
KEY_HEADERS: Final = ("authorization", "x-api-key")


@attrs.frozen(kw_only=True)
class Waiting:
    """An answer that is held at a gate, and how many deltas of it were sent."""

    session: str
    gate: str
    number: int
    step: int
    deltas: int


class Provider:
    """The server: answers by its scripts, and keeps the books."""

    def __init__(self, script: Script, log: Path | None = None, *, keep_bodies: bool = True) -> None:
        self._script, self._keep_bodies = script, keep_bodies
        self._scripts: dict[str, Script] = {}
        self._journal = Journal(log)
        self._gates: dict[tuple[str, str], asyncio.Event] = {}
        self._waiting: dict[int, Waiting] = {}
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        assert self._server is not None, "BUG: the provider was not started"
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    @property
    def ledger(self) -> Ledger:
        """What it was asked and answered up to now."""
        return self._journal.ledger

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The answers that are held now."""
        return tuple(self._waiting.values())

    def url(self, dialect: str, session: str = "") -> str:
        """The base address to give to a client of a dialect: `chat`, `responses` or `messages`."""
        return base_url(self.address, dialect, session)

    def install(self, script: Script, session: str = "") -> None:
        """Play another script in a session."""
        self._scripts[session] = script

    def open_gate(self, name: str, session: str = "") -> None:
        """Let go what is held at a gate, and whatever comes by later."""
        self._gate(session, name).set()

    async def wait_for(self, gate: str, session: str = "") -> Waiting:
        """The first answer that is held at a gate, as soon as there is one."""
        while not (found := [each for each in self.waiting if (each.session, each.gate) == (session, gate)]):
            await self._news.wait()
        return found[0]

    async def settle(self, session: str = "") -> Ledger:
        """What a session was asked, once no answer to it is under way: also those whose client has died."""
        while not (ledger := self.ledger.of(session)).is_settled:
            await self._news.wait()
        return ledger

    def _tell_news(self) -> None:
        """Wake all who wait for something to change."""
        self._news.set()
        self._news = asyncio.Event()

    def _gate(self, session: str, name: str) -> asyncio.Event:
        return self._gates.setdefault((session, name), asyncio.Event())

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", port)

    async def stop(self) -> None:
        """Drop every connection and close."""
        assert self._server is not None, "BUG: the provider was not started"
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._journal.close()

    def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        try:
            request = await read_request(reader)
            if request is not None:
                await self._route(request, connection)
        except ClientGone:
            connection.abort()
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            await connection.close()

    async def _route(self, request: HttpRequest, connection: Connection) -> None:
        session, path = session_of(request.path)
        dialect = next((each for each in DIALECTS if path in (each.path, each.count_path)), None)
        try:
            if dialect is None:
                await self._control(request, session, path, connection)
            elif path == dialect.path:
                await self._answer(dialect, session, request, connection)
            else:
                asked = dialect.read({"messages": [], "input": [], **request.json()})
                await connection.send_json(
                    {"input_tokens": asked.usage(0, 0).input, "object": "response.input_tokens"}
                )
        except (KeyError, TypeError, ValueError) as error:
            await connection.send_json({"error": {"message": f"not understood: {error!r}"}}, 422)

    async def _control(self, request: HttpRequest, session: str, path: str, connection: Connection) -> None:
        match request.method, path.strip("/").split("/"):
            case "POST", ["gate", name]:
                self.open_gate(name, session)
                await connection.send_json({"open": name})
            case "GET", ["waiting"]:
                await connection.send_json([attrs.asdict(each) for each in self.waiting])
            case "GET", ["waiting", name]:
                held = await connection.until(self.wait_for(name, session))
                await connection.send_json(attrs.asdict(held))
            case "GET", ["log"]:
                await connection.send_json(self.ledger.of(session).entries)
            case "GET", ["settled"]:
                settled = await connection.until(self.settle(session))
                await connection.send_json(settled.entries)
            case "PUT", ["script"]:
                self.install(read_script(request.json()), session)
                await connection.send_json({"script": session})
            case _:
                await connection.send_json({"error": {"message": f"no {request.method} {path} here"}}, 404)

    async def _answer(
        self, dialect: Dialect, session: str, request: HttpRequest, connection: Connection
    ) -> None:
        asked = dialect.read(request.json())
        plan = plan_for(
            asked,
            dialect,
            self._scripts.get(session, self._script),
            lambda conversation, step: self._journal.asks(session, conversation, step),
            has_key=any(request.headers.get(name) for name in KEY_HEADERS),
        )
        place = {
            "session": session,
            "conversation": plan.conversation,
            "step": plan.step,
            "ask": plan.ask,
            "fault": plan.fault,
            "dialect": asked.dialect,
            "model": asked.model,
        }
        number = self._journal.begin(**place, **self._question(asked, request))
        play = _Play(self, session, number, plan, connection)
        try:
            await play.run()
        finally:
            self._journal.end(number, **place, **play.outcome())
            self._tell_news()

    def _question(self, asked: Asked, request: HttpRequest) -> Json:
        """What the ledger says of a request: of its headers only the names, for one of them holds a key."""
        question = {
            "stream": asked.stream,
            "tools": list(asked.tools),
            "schema": asked.schema,
            "headers": sorted(request.headers),
        }
        return {**question, "body": request.json()} if self._keep_bodies else question

    async def hold(self, waiting: Waiting, connection: Connection) -> None:
        """Hold an answer at its gate until that is opened or the client leaves."""
        gate = self._gate(waiting.session, waiting.gate)
        if gate.is_set():
            return
        self._waiting[waiting.number] = waiting
        self._tell_news()
        try:
            await connection.until(gate.wait())
        finally:
            self._waiting.pop(waiting.number, None)


class _Play:
    """One answer on its way."""

    def __init__(
        self, provider: Provider, session: str, number: int, plan: Plan, connection: Connection
    ) -> None:
        self._provider, self._session, self._number, self._plan = provider, session, number, plan
        self._connection = connection
        self._deltas, self._is_over = 0, False

    def outcome(self) -> Json:
        """What the ledger says of an answer: completed is one of the model's that was sent, all of it."""
        outgoing = self._plan.outgoing
        sent = self._is_over and outgoing.ending == "whole"
        completed = sent and outgoing.status == 200
        return {
            "status": outgoing.status,
            "deltas": self._deltas,
            "sent": sent,
            "completed": completed,
            "usage": attrs.asdict(outgoing.usage) if completed and outgoing.usage else None,
        }

    async def run(self) -> None:
        """Send what is planned, waiting at the gates."""
        gates = list(self._plan.gates)
        for place, packet in enumerate(packets(self._plan.outgoing)):
            while gates and self._is_due(gates[0], is_begun=place > 0):
                await self._hold(gates.pop(0))
            await self._connection.send(packet.data)
            self._deltas += packet.is_delta
        self._is_over = True

    def _is_due(self, gate: Gate, *, is_begun: bool) -> bool:
        outgoing = self._plan.outgoing
        if gate.after is None or not outgoing.chunked:
            return True
        return is_begun and self._deltas >= min(gate.after, outgoing.deltas)

    async def _hold(self, gate: Gate) -> None:
        waiting = Waiting(
            session=self._session,
            gate=gate.name,
            number=self._number,
            step=self._plan.step,
            deltas=self._deltas,
        )
        await self._provider.hold(waiting, self._connection)


def packets(outgoing: Outgoing) -> list[Part]:
    """The bytes to send one after the other; the end of the body goes with the last of them."""
    if outgoing.status is None:
        return [Part(b"")]
    size = {"transfer-encoding": "chunked"} if outgoing.chunked else {"content-length": str(outgoing.length)}
    head = head_of(outgoing.status, {"content-type": outgoing.media_type, **size, **outgoing.headers})
    if not outgoing.chunked:
        return [Part(head + b"".join(part.data for part in outgoing.parts))]
    sent = [Part(head), *(Part(chunk_of(part.data), part.is_delta) for part in outgoing.parts)]
    if outgoing.ending != "drop":
        sent[-1] = Part(sent[-1].data + chunk_of(b""), sent[-1].is_delta)
    return sent


def session_of(path: str) -> tuple[str, str]:
    """The session of a path, and the path within it."""
    if not path.startswith("/s/"):
        return "", path
    session, slash, rest = path[3:].partition("/")
    return session, slash + rest


def base_url(address: str, dialect: str, session: str = "") -> str:
    """The base address to give to a client of a dialect."""
    within = f"{address}/s/{session}" if session else address
    return within if dialect == MESSAGES.name else f"{within}/v1"
