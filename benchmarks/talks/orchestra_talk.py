"""orchestra: a language-model agent in a Markdown file, through the public `Orchestra`.

Every request, every tool call and once a second the text that has come so far are on the record before the
conversation goes on: four commits a step, each synced. The model stands where the agent opens one by its
name; nothing else is replaced. `Unsaved` is the same with `checkpoint.enabled: false`, which keeps the
record in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.talks.base import Talk
from benchmarks.talks.script import INSTRUCTIONS, PROMPT, Source, Ticks

FLOW = f"""
name: talk
agents:
  clerk: {{path: clerk.md, limits: {{requests: 100000}}}}
phases:
  work: {{specialists: {{talk: {{agent: clerk, task: "{PROMPT}"}}}}}}
"""
CLERK = f"---\nname: clerk\nmodel: test\ntools: tools.py\n---\n{INSTRUCTIONS}\n"
TOOLS = '''
from benchmarks.talks.script import line

async def look_up(number: int) -> str:
    """Look something up."""
    return line(number).found
'''


class OrchestraTalk(Talk):
    name = "orchestra"
    unsaved: str | None = "orchestra, saving off"
    durability = "WAL, every commit synced; requests before and after, tool calls before and after"
    url = "sqlite:{folder}/orchestra.db"

    @staticmethod
    def probe() -> None:
        import orchestra.agents.llm.runner
        import orchestra.app.orchestra  # noqa: F401

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        from orchestra.app.orchestra import Orchestra

        project = self.folder / "project"
        project.mkdir()
        for name, text in {"flow.yaml": FLOW, "clerk.md": CLERK, "tools.py": TOOLS}.items():
            (project / name).write_text(text)
        self.flow = project / "flow.yaml"
        url = self.url.format(folder=self.folder)
        async with Orchestra(url, project=project, telemetry=False, events=False) as self.house:
            yield

    async def converse(self, steps: int, ticks: Ticks) -> str:
        from benchmarks.talks.scripted import ConversationModel

        return await self._run(ConversationModel(steps, ticks))

    async def stream(self, source: Source) -> str:
        from benchmarks.talks.scripted import StreamModel

        return await self._run(StreamModel(source))

    async def _run(self, model: Any) -> str:
        from orchestra.agents.llm import runner

        with patch.object(runner, "open_model", lambda *_, **__: model):
            ending = await self.house.run(self.flow)
        if ending.kind != "completed":
            raise AssertionError(f"a run ended as {ending.kind}: {ending.state.failure}")
        return str(ending.result("work/talk"))


class OrchestraUnsaved(OrchestraTalk):
    name = "orchestra, saving off"
    unsaved = None
    durability = "none: checkpoint.enabled is false, the record is kept in memory"
    url = "memory:"
