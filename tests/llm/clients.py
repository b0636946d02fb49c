"""The model library's own clients, set up to speak to a provider of ours. They never retry by themselves."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

KEY: Final = "sk-canary-5f1c0ffee"
DIALECTS: Final = ("chat", "responses", "messages")
SETTINGS: Final = ModelSettings(max_tokens=1000)
"""With a limit to tokens: without one the library streams from Anthropic even when it is not asked to."""


@asynccontextmanager
async def open_model(dialect: str, url: str, *, key: str = KEY) -> AsyncIterator[Model]:
    """A model of the library that asks a provider of ours."""
    if dialect == "messages":
        async with AsyncAnthropic(api_key=key, base_url=url, max_retries=0) as anthropic:
            yield AnthropicModel("claude-haiku-4-5", provider=AnthropicProvider(anthropic_client=anthropic))
        return
    async with AsyncOpenAI(api_key=key, base_url=url, max_retries=0) as openai:
        provider = OpenAIProvider(openai_client=openai)
        kind = OpenAIChatModel if dialect == "chat" else OpenAIResponsesModel
        yield kind("gpt-5", provider=provider)


async def ask(
    model: Model,
    messages: Sequence[ModelMessage],
    *,
    stream: bool,
    settings: ModelSettings | None = None,
    parameters: ModelRequestParameters | None = None,
) -> ModelResponse:
    """One request to a model, streamed or whole; its response."""
    parameters = parameters or ModelRequestParameters()
    settings = SETTINGS if settings is None else settings
    if not stream:
        return await model.request(list(messages), settings, parameters)
    async with model.request_stream(list(messages), settings, parameters) as streamed:
        async for _ in streamed:
            pass
        return streamed.get()
