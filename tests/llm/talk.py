"""A project with one or more language-model agents, played against a scripted provider in this process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.model.state import State
from orchestra.stores.memory import MemoryStore
from tests.llm.provider import Provider, serve_provider

KEY: Final = "sk-canary-0123456789abcdef"
MODEL: Final = "openai-chat:scripted"
FLOW: Final = """
name: talk
agents:
  clerk: {path: clerk.md%s}
phases:
  work:
    specialists:
      talk: {agent: clerk, task: "Do what is to be done."}
policy: {retry: {attempts: %d, backoff: 1ms}, recovery: {on_failure: [restart, fail]}}
"""


@attrs.define
class Talk:
    """A conversation: its project, its store, and how to play it again and again."""

    folder: Path
    provider: Provider
    store: MemoryStore = attrs.field(factory=MemoryStore)

    def write(self, **files: str) -> None:
        """Write files of the project; two underscores in a name are a dot."""
        for name, text in files.items():
            (self.folder / name.replace("__", ".")).write_text(text)

    def agent(
        self,
        options: str = "",
        *,
        tools: str = "",
        matter: str = "",
        body: str = "You are a clerk.",
        attempts: int = 1,
    ) -> None:
        """Write the workflow and its agent; `options` stand in YAML, `matter` in the agent's file."""
        self.write(
            flow__yaml=FLOW % (f", {options}" if options else "", attempts),
            clerk__md=f"---\nname: clerk\nmodel: {MODEL}\n{matter}\n"
            + ("tools: tools.py\n" if tools else "")
            + f"---\n{body}\n",
        )
        if tools:
            self.write(tools__py=tools)

    async def play(
        self,
        *answers: Any,
        inputs: Mapping[str, Any] | None = None,
        accept_changes: bool = False,
        **more: Any,
    ) -> Ending:
        """Begin the run or go on with it; each time it waits, the next answer is given."""
        async with Orchestra(self.store, project=self.folder, **more) as house:
            if self.store.run("talk") is None:  # type: ignore[arg-type]
                ending = await house.run(self.folder / "flow.yaml", inputs, run="talk")
            else:
                changed = self.folder / "flow.yaml" if accept_changes else None
                ending = await house.resume("talk", workflow=changed, accept_changes=accept_changes)
            for answer in answers:
                assert ending.kind == "waiting", ending
                await house.answer("talk", answer)
                ending = await house.resume("talk")
            return ending


def texts(state: State) -> list[tuple[str, str, str]]:
    """The messages of a run: role, status and text."""
    return [
        (each.role, each.status, "".join(part.text for part in each.parts if part.kind == "text"))
        for each in state.messages.values()
    ]


def calls(state: State) -> list[tuple[str, str, Any]]:
    """The tool calls of a run: tool, status, and its result or error."""
    return [
        (each.tool, each.status, thaw(each.result) if each.result is not None else each.error)
        for each in state.tool_calls.values()
    ]


def decisions(state: State) -> list[str]:
    """The kinds of the decisions that were made."""
    return [each.kind for each in state.decisions]


@asynccontextmanager
async def open_talk(script: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    """A talk with a provider that plays a script; clients of providers are pointed at it."""
    async with serve_provider(script) as provider:
        for kind, dialect in (("OPENAI", "chat"), ("ANTHROPIC", "messages")):
            monkeypatch.setenv(f"{kind}_BASE_URL", provider.url(dialect))
            monkeypatch.setenv(f"{kind}_API_KEY", KEY)
        yield Talk(folder=folder, provider=provider)
