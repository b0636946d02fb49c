"""A model of pydantic-ai's in this process that says what a script says, at once or token by token.

No provider and no network: what is measured is what comes after a token has arrived.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from benchmarks.talks.script import END, Source, Ticks, line
from orchestra.agents.llm.offline.model import CallPiece, EndPiece, Piece, PieceStream, TextPiece

TOKENS = 100
"""What every answer says that it took."""


class ScriptedModel(Model[None]):
    """Says a script. A subclass says which."""

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def system(self) -> str:
        return "benchmark"

    def answer(self) -> AsyncGenerator[Piece]:
        """The next answer."""
        raise NotImplementedError

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(messages, model_settings, model_request_parameters) as stream:
            async for _ in stream:
                pass
            return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async with aclosing(self.answer()) as pieces:
            yield PieceStream(
                model_request_parameters=model_request_parameters, name=self.model_name, pieces=pieces
            )


class ConversationModel(ScriptedModel):
    """Looks so many things up, and then says the end."""

    def __init__(self, steps: int, ticks: Ticks) -> None:
        super().__init__()
        self.begin(steps, ticks)

    def begin(self, steps: int, ticks: Ticks) -> None:
        """Begin the script anew."""
        self._steps, self._ticks, self._asked = steps, ticks, 0

    async def answer(self) -> AsyncGenerator[Piece]:
        self._ticks.tick()
        self._asked += 1
        if self._asked < self._steps:
            yield TextPiece(line(self._asked).said)
            yield CallPiece(f"call_{self._asked}", "look_up", json.dumps({"number": self._asked}))
            yield EndPiece(TOKENS, TOKENS, "tool_call")
        else:
            yield TextPiece(END)
            yield EndPiece(TOKENS, TOKENS, "stop")


class StreamModel(ScriptedModel):
    """Says what comes from a source."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    async def answer(self) -> AsyncGenerator[Piece]:
        async for token in self._source.flow():
            yield TextPiece(token)
        yield EndPiece(TOKENS, self._source.count, "stop")
