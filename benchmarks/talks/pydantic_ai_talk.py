"""pydantic-ai: `Agent.iter`, and after every node the whole history by its `ModelMessagesTypeAdapter`, as its
documentation says that messages are kept (`all_messages_json`).

A step is two nodes, so it is saved twice: before the model is asked (the history so far and the request
that is about to be made, which `all_messages` does not hold yet), and when the model has answered.

- `PydanticAISqlite`: into one row of an SQLite table, which the next save replaces, so that no history is
  kept;
- `PydanticAIFiles`: into a file of its own for each save;
- `PydanticAI`: nowhere;
- `PydanticAIDbos`: by its own `durable_exec` with DBOS on SQLite, each answer and each tool's result once it
  is there.

The first two are synced like ours: write-ahead log with `synchronous = FULL`, or file and folder after each
write. They save in the loop's own thread, which is the least that it can cost. Text on its way is not saved
by any of them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.base import quiet
from benchmarks.talks.base import Talk
from benchmarks.talks.script import INSTRUCTIONS, PROMPT, Source, Ticks, line


class PydanticAI(Talk):
    name = "pydantic-ai, not saved"
    distributions: tuple[str, ...] = ("pydantic-ai-slim",)

    @staticmethod
    def probe() -> None:
        import pydantic_ai  # noqa: F401

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        yield

    async def converse(self, steps: int, ticks: Ticks) -> str:
        from benchmarks.talks.scripted import ConversationModel

        return await self._run(ConversationModel(steps, ticks))

    async def stream(self, source: Source) -> str:
        from benchmarks.talks.scripted import StreamModel

        return await self._run(StreamModel(source))

    async def _run(self, model: Any) -> str:
        from pydantic_ai import Agent
        from pydantic_ai.usage import UsageLimits

        async def look_up(number: int) -> str:
            """Look something up."""
            return line(number).found

        agent = Agent(model, instructions=INSTRUCTIONS, tools=[look_up])
        async with agent.iter(PROMPT, usage_limits=UsageLimits(request_limit=None)) as run:
            async for node in run:
                self.keep(run, node)
        assert run.result is not None, "a run that ended has a result"
        return str(run.result.output)

    def keep(self, run: Any, node: Any) -> None:
        """Save what there is at a node."""


class _Kept(PydanticAI):
    unsaved = PydanticAI.name

    def keep(self, run: Any, node: Any) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        if Agent.is_model_request_node(node):
            self.write(ModelMessagesTypeAdapter.dump_json([*run.all_messages(), node.request]))
        elif Agent.is_call_tools_node(node):
            self.write(run.all_messages_json())

    def write(self, history: bytes) -> None:
        """Save the history so far."""
        raise NotImplementedError


class PydanticAISqlite(_Kept):
    name = "pydantic-ai, SQLite row"
    durability = "WAL, every commit synced; the newest history only"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self.connection = sqlite3.connect(self.folder / "messages.db")
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = full")
        self.connection.execute("create table talks (id integer primary key, history blob)")
        self.number = 0
        yield
        self.connection.close()

    async def converse(self, steps: int, ticks: Ticks) -> str:
        self.number += 1
        return await super().converse(steps, ticks)

    def write(self, history: bytes) -> None:
        with self.connection:
            self.connection.execute("insert or replace into talks values (?, ?)", (self.number, history))


class PydanticAIFiles(_Kept):
    name = "pydantic-ai, file a save"
    durability = "file and folder synced; every history"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self.number = 0
        yield

    def write(self, history: bytes) -> None:
        self.number += 1
        with (self.folder / f"{self.number:06d}.json").open("wb") as file:
            file.write(history)
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class PydanticAIDbos(PydanticAI):
    name = "pydantic-ai, DBOS"
    unsaved = PydanticAI.name
    durability = "rollback journal, synced (DBOS' defaults); each answer and each result"
    distributions = ("pydantic-ai-slim", "dbos")

    @staticmethod
    def probe() -> None:
        quiet()
        import pydantic_ai.durable_exec.dbos  # noqa: F401

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        from dbos import DBOS
        from pydantic_ai import Agent
        from pydantic_ai.durable_exec.dbos import DBOSDurability
        from pydantic_ai.usage import UsageLimits

        from benchmarks.talks.scripted import ConversationModel

        url = f"sqlite:///{self.folder / 'dbos.sqlite'}"
        dbos: Any = DBOS
        dbos(config={"name": "bench", "system_database_url": url, "log_level": "CRITICAL"})
        self.model = ConversationModel(0, Ticks())

        async def look_up(number: int) -> str:
            """Look something up."""
            return line(number).found

        agent = Agent(
            self.model,
            name="clerk",
            instructions=INSTRUCTIONS,
            tools=[dbos.step(name="look_up")(look_up)],
            capabilities=[DBOSDurability()],
        )

        async def talk() -> str:
            ended = await agent.run(PROMPT, usage_limits=UsageLimits(request_limit=None))
            return str(ended.output)

        self.workflow = dbos.workflow(name="talk")(talk)
        dbos.launch()
        yield
        dbos.destroy()

    async def converse(self, steps: int, ticks: Ticks) -> str:
        self.model.begin(steps, ticks)
        return str(await self.workflow())
