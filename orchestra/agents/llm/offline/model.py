"""What our own models have in common: they answer in pieces, streamed or not by the same way."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

import attrs
from pydantic_ai import RunContext
from pydantic_ai.messages import FinishReason, ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from orchestra.agents.llm.offline.transcript import ChatTurn, turns_of


@attrs.frozen
class TextPiece:
    """More text."""

    text: str


@attrs.frozen
class CallPiece:
    """More of the call of a tool: the JSON of its arguments comes bit by bit."""

    call_id: str
    tool: str
    arguments: str


@attrs.frozen
class EndPiece:
    """The end of an answer, and what it took."""

    tokens_in: int
    tokens_out: int
    reason: FinishReason


Piece: TypeAlias = TextPiece | CallPiece | EndPiece


@attrs.frozen
class Question:
    """What a model is asked."""

    turns: list[ChatTurn]
    parameters: ModelRequestParameters
    settings: Mapping[str, Any]

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """The schema that the text of an answer must fit; None when any text will do."""
        asked = self.parameters.output_object
        return None if asked is None else asked.json_schema


class OfflineModel(Model[None]):
    """A model in this process. A subclass answers a `Question` in pieces."""

    def __init__(
        self, name: str, *, settings: Mapping[str, Any] | None = None, profile: ModelProfile
    ) -> None:
        self._name = name
        super().__init__(settings=cast(ModelSettings, dict(settings)) if settings else None, profile=profile)

    @abstractmethod
    def answer(self, question: Question) -> AsyncGenerator[Piece]:
        """The answer, piece by piece, an `EndPiece` last. Closing the generator stops the work."""

    @property
    def model_name(self) -> str:
        """The name people write."""
        return self._name

    @property
    def system(self) -> str:
        """The provider: ourselves."""
        return "orchestra"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The whole answer at once."""
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
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """The answer as it is made."""
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        question = Question(
            turns_of(messages, parameters), parameters, cast(Mapping[str, Any], settings or {})
        )
        async with aclosing(self.answer(question)) as pieces:
            yield PieceStream(model_request_parameters=parameters, name=self._name, pieces=pieces)


@dataclass
class PieceStream(StreamedResponse):
    """Pieces as pydantic-ai's events."""

    name: str
    pieces: AsyncGenerator[Piece]
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    stopped: bool = False

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        begun: set[str] = set()
        async for piece in self.pieces:
            if self.stopped:
                return
            if isinstance(piece, EndPiece):
                self._usage = RequestUsage(input_tokens=piece.tokens_in, output_tokens=piece.tokens_out)
                self.finish_reason = piece.reason
                self.provider_details = {"finish_reason": piece.reason}  # as providers say that they are done
            elif isinstance(piece, TextPiece):
                for event in self._parts_manager.handle_text_delta(vendor_part_id="text", content=piece.text):
                    yield event
            else:
                for event in self._parts_manager.handle_tool_call_delta_events(
                    vendor_part_id=piece.call_id,
                    tool_name=None if piece.call_id in begun else piece.tool,  # it would be appended
                    args=piece.arguments,
                    tool_call_id=piece.call_id,
                ):
                    yield event
                begun.add(piece.call_id)

    async def close_stream(self) -> None:
        """Take no further piece; whoever opened the stream closes the answer."""
        self.stopped = True

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.name

    @property
    def provider_name(self) -> str:
        """Ourselves."""
        return "orchestra"

    @property
    def provider_url(self) -> None:
        """There is none."""

    @property
    def timestamp(self) -> datetime:
        """When the answer was begun."""
        return self.made_at
