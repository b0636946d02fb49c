"""What spans tell of a talk with a model: requests, `chat MODEL`, and tool calls, `execute_tool NAME`.

What was answered or done before an attempt began makes no events, so it makes no spans: a replay is free.
"""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from orchestra.codec.values import thaw
from orchestra.limits import TELEMETRY_CONTENT_CHARS
from orchestra.model.records import Generation, Part, ToolCall
from orchestra.model.value import Value
from orchestra.telemetry import names
from orchestra.telemetry.records import Attribute, Attributes, Fixed

Redact = Callable[[str], str]

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "google-cloud": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise."""
_HERE: Final = "orchestra"  # the provider of models that run in this process
_SETTINGS: Final = {
    "temperature": names.TEMPERATURE,
    "max_tokens": names.MAX_TOKENS,
    "top_p": names.TOP_P,
    "seed": names.SEED,
}


def model_parts(name: str) -> tuple[str, str]:
    """A model's provider as the conventions call it, and what the provider calls the model."""
    provider, colon, model = name.partition(":")
    if not colon or provider == "local":
        return _HERE, name
    whole = provider.removeprefix("gateway/")
    for ending in ("-chat", "-responses", "-mantle"):  # the same provider, by another door
        whole = whole.removesuffix(ending)
    return _PROVIDERS.get(whole, whole), model


@lru_cache(maxsize=1024)
def about_request(workflow: str, agent: str, task: str, model: str) -> Fixed:
    """What all requests of an assignment to a model have in common."""
    provider, asked = model_parts(model)
    told: Attributes = {
        names.WORKFLOW: workflow, names.OPERATION: names.CHAT, names.PROVIDER: provider, names.MODEL: asked,
        names.AGENT_NAME: agent, names.TASK: task,
    }  # fmt: skip
    return Fixed(told)


@lru_cache(maxsize=1024)
def about_tool(workflow: str, agent: str, task: str, tool: str) -> Fixed:
    """What all calls of a tool in an assignment have in common."""
    told: Attributes = {
        names.WORKFLOW: workflow, names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: tool,
        names.TOOL_TYPE: "function", names.AGENT_NAME: agent, names.TASK: task,
    }  # fmt: skip
    return Fixed(told)


def request_settings(generation: Generation) -> Attributes:
    """What was asked for beside the messages."""
    held = _opened(generation.settings)
    return {name: held[key] for key, name in _SETTINGS.items() if isinstance(held.get(key), int | float)}


def answer_facts(generation: Generation) -> Attributes:
    """What is known of a request once it was answered."""
    provider = _opened(generation.provider)
    told: dict[str, Attribute | None] = {
        names.RESPONSE_MODEL: provider.get("model_name", model_parts(generation.model)[1]),
        names.RESPONSE_ID: provider.get("provider_response_id"),
        names.FINISH: (generation.finish,) if generation.finish else None,
        names.TOKENS_IN: generation.tokens_in,
        names.TOKENS_OUT: generation.tokens_out,
        names.CACHE_READ: generation.cache_read or None,
        names.CACHE_WRITE: generation.cache_write or None,
        names.COST: generation.cost_micros,
    }
    return {name: value for name, value in told.items() if value is not None}


def failure_type(parts: Iterable[Part]) -> str:
    """The type of the error with which an answer broke off; what it says may be content, and is not told."""
    for part in parts:
        said = _opened(part.data).get("error") if part.kind == "other" else None
        if isinstance(said, str):
            return error_type(said)
    return "error"


def error_type(said: str) -> str:
    """The type of an error at the beginning of what it says; `error` when there is none."""
    word, colon, _ = said.partition(":")
    return word if colon and word.isidentifier() else "error"


class Content:
    """What was said, for spans that tell it because somebody asked for it: redacted, and cut."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact

    def messages(self, said: Iterable[tuple[str, Iterable[Part]]]) -> str:
        """Messages by role, as JSON."""
        told = [{"role": role, "parts": [_shown(part) for part in parts]} for role, parts in said]
        return self._bounded(json.dumps(told, ensure_ascii=False))

    def arguments(self, call: ToolCall) -> Attributes:
        """What a tool was given."""
        return {names.TOOL_ARGUMENTS: self._value(call.arguments)}

    def result(self, call: ToolCall) -> Attributes:
        """What a tool gave back."""
        return {names.TOOL_RESULT: self._value(call.result) if not call.error else self._bounded(call.error)}

    def _value(self, value: Value | None) -> str:
        return self._bounded(json.dumps(_opened(value), ensure_ascii=False))

    def _bounded(self, text: str) -> str:
        said = self._redact(text)
        return said if len(said) <= TELEMETRY_CONTENT_CHARS else said[:TELEMETRY_CONTENT_CHARS] + " …"


def _shown(part: Part) -> dict[str, Any]:
    data = _opened(part.data)
    if part.kind == "tool_call":
        return {"type": "tool_call", **{key: data.get(key) for key in ("id", "name", "arguments")}}
    return {"type": part.kind, "content": part.text}


def _opened(value: Value | None) -> Any:
    """The data of a value; nothing where there is none, or where it is kept as an object of its own."""
    return thaw(value) if value is not None and value.encoded is not None else {}
