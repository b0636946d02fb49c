"""`model: local`: a small real model in this process, run by llama.cpp (xllamacpp) from a file of weights.

It is loaded once and works in threads, one answer after another. What it says is seldom sensible, and always
has the shape that was asked for: grammars see to that. Small models do not call tools by themselves, so an
answer is made in two steps: the model chooses among names what to do next, then writes the arguments of that
tool, or the answer. It must call a tool first, where there are any, and calls each at most once for a prompt.
"""

import asyncio
import json
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import attrs
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError
from pydantic_ai.messages import FinishReason
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.tools import ToolDefinition

from orchestra.agents.llm.offline.bounds import bounded_schema
from orchestra.agents.llm.offline.model import CallPiece, EndPiece, OfflineModel, Piece, Question, TextPiece
from orchestra.agents.llm.offline.transcript import ChatTurn
from orchestra.errors import BadModel
from orchestra.limits import LOCAL_MODEL_THREADS, LOCAL_MODEL_TOKENS

_PROFILE: Final = ModelProfile(
    supports_tools=True,
    supports_json_schema_output=True,
    supports_inline_system_prompts=True,
    default_structured_output_mode="native",
)
_ANSWER: Final = "answer"
_SHOWN_CHARS: Final = 200
_SETTINGS: Final = {"temperature": "temperature", "top_p": "top_p", "seed": "seed", "stop_sequences": "stop"}
_USUAL: Final = {"temperature": 0.3, "seed": 0, "repeat_penalty": 1.1}


class LocalModel(OfflineModel):
    """The model `local`."""

    def __init__(self, weights: Path, *, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__("local", settings=settings, profile=_PROFILE)
        self._weights = weights

    async def answer(self, question: Question) -> AsyncGenerator[Piece]:
        """Choose, then write."""
        spent = _Spent()
        chat = _Chat(self._weights, question.settings, spent)
        messages = chat_messages(question.turns)
        tool = await self._choose(chat, messages, question)
        if tool is None:
            async with aclosing(chat.write(messages, question.answer_schema)) as texts:
                async for text in texts:
                    yield TextPiece(text)
        else:
            call_id = f"local_{secrets.token_hex(6)}"
            ask = _asked(f"Call the tool {_told(tool)}. Write its arguments as JSON.")
            yield CallPiece(call_id, tool.name, "")
            async with aclosing(chat.write([*messages, ask], tool.parameters_json_schema)) as texts:
                async for text in texts:
                    yield CallPiece(call_id, tool.name, text)
        reason: FinishReason = "length" if spent.cut else "stop" if tool is None else "tool_call"
        yield EndPiece(spent.tokens_in, spent.tokens_out, reason)

    async def _choose(
        self, chat: "_Chat", messages: list[dict[str, str]], question: Question
    ) -> ToolDefinition | None:
        """The tool to call next, or None for the answer."""
        tools, may_answer = choices(question)
        if may_answer and question.parameters.output_tools and not question.parameters.allow_text_output:
            outputs = {tool.name: tool for tool in question.parameters.output_tools}
            tools, may_answer = {**tools, **outputs}, False
        names = [*tools, *([_ANSWER] if may_answer else [])]
        if len(names) == 1:
            return tools.get(names[0])
        told = "\n".join(f"- {_told(tool)}" for tool in tools.values())
        last = "\n- answer: say the end result" if may_answer else ""
        ask = _asked(f"Choose what to do next.\n{told}{last}")
        async with aclosing(chat.write([*messages, ask], {"enum": names})) as texts:
            chosen = "".join([text async for text in texts])
        try:
            return tools.get(json.loads(chosen))
        except (ValueError, TypeError):  # it was cut off
            return tools.get(names[0])


def choices(question: Question) -> tuple[dict[str, ToolDefinition], bool]:
    """The tools that may be called now, by name, and whether an answer may be given."""
    turns = question.turns
    last = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=0)
    called = {turn.tool for turn in turns[last:] if turn.role == "assistant"}
    tools = {tool.name: tool for tool in question.parameters.declared_function_tools}
    left = {name: tool for name, tool in tools.items() if name not in called}
    wanted = question.settings.get("tool_choice")
    if wanted == "none" or not left:
        return {}, True
    if isinstance(wanted, list):
        left = {name: tool for name, tool in left.items() if name in wanted} or left
    began = bool(called & tools.keys())
    return left, began and wanted != "required"


def chat_messages(turns: list[ChatTurn]) -> list[dict[str, str]]:
    """A conversation as chat templates know it: one word of the system, then user and assistant in turns."""
    system = "\n\n".join(turn.text for turn in turns if turn.role == "system")
    messages = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        if turn.role == "system":
            continue
        role, text = _spoken(turn)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += f"\n\n{text}"
        else:
            messages.append({"role": role, "content": text})
    if not messages or messages[-1]["role"] == "system":
        messages.append({"role": "user", "content": "Begin."})
    return messages


def _spoken(turn: ChatTurn) -> tuple[str, str]:
    if turn.role == "tool":
        return "user", f"The tool {turn.tool} returned: {turn.text}"
    if turn.role == "assistant":
        return "assistant", f"{turn.tool}({turn.text})" if turn.tool else turn.text
    return "user", turn.text


def _asked(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _told(tool: ToolDefinition) -> str:
    """A tool in a line."""
    description = " ".join((tool.description or "").split())[:_SHOWN_CHARS]
    return f"{tool.name}: {description}" if description else tool.name


# --- asking -----------------------------------------------------------------------------------------------


@attrs.define
class _Spent:
    """What an answer has taken."""

    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False  # it was as long as it may be


@attrs.frozen
class _Chat:
    """Requests to one model, with the settings of one question."""

    weights: Path
    settings: Mapping[str, Any]
    spent: _Spent

    async def write(
        self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None
    ) -> AsyncGenerator[str]:
        """What the model writes, token by token; leaving it stops the model."""
        request = self._request(messages, schema)
        chunks: asyncio.Queue[Any] = asyncio.Queue()
        stop = threading.Event()
        _start(self.weights, request, asyncio.get_running_loop(), chunks, stop)
        try:
            while (chunk := await chunks.get()) is not None:
                if isinstance(chunk, BaseException):
                    raise chunk
                if text := self._take(chunk):
                    yield text
        finally:
            stop.set()

    def _request(self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        given = {
            word: self.settings[name]
            for name, word in _SETTINGS.items()
            if self.settings.get(name) is not None
        }
        request: dict[str, Any] = {
            **_USUAL,
            **given,
            "messages": messages,
            "max_tokens": self.settings.get("max_tokens") or LOCAL_MODEL_TOKENS,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if schema is not None:
            request["json_schema"] = bounded_schema(schema)
        return request

    def _take(self, chunk: dict[str, Any]) -> str:
        """The text of a piece of an answer; raises `ModelHTTPError` for what the model refuses."""
        if "error" in chunk:
            raise _refusal(chunk["error"])
        usage = chunk.get("usage") or {}
        self.spent.tokens_in += usage.get("prompt_tokens", 0)
        self.spent.tokens_out += usage.get("completion_tokens", 0)
        for choice in chunk.get("choices", ()):
            self.spent.cut |= choice.get("finish_reason") == "length"
            return choice.get("delta", {}).get("content") or ""
        return ""


def _refusal(error: dict[str, Any]) -> ModelHTTPError:
    long = error.get("type") == "exceed_context_size_error"
    return ModelHTTPError.for_category(
        ModelContextWindowExceededError if long else None,
        status_code=int(error.get("code", 400)),
        model_name="local",
        body={"error": error},
        in_stream=True,
    )


# --- the model itself -------------------------------------------------------------------------------------


def _start(
    weights: Path,
    request: dict[str, Any],
    loop: asyncio.AbstractEventLoop,
    chunks: "asyncio.Queue[Any]",
    stop: threading.Event,
) -> None:
    """Let a thread ask the model; what it says arrives in `chunks`, None last.

    No daemon: a process that ends while the model is at work would crash. It ends with the next token.
    """

    def put(chunk: Any) -> bool:
        """Hand a piece over; whether there is nobody left to take it."""
        if not stop.is_set():
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:  # the loop is closed
                stop.set()
        return stop.is_set()

    def work() -> None:
        try:
            _load(weights).handle_chat_completions(request, put)
        except ValueError as error:  # a schema that cannot be made a grammar
            put(_refusal({"code": 400, "message": str(error), "type": "invalid_request_error"}))
        except Exception as error:
            put(error)
        finally:
            put(None)

    threading.Thread(target=work, name="local-model").start()


def _load(weights: Path) -> Any:
    """The model of a file, loaded when it is first wanted; raises `BadModel`."""
    with _LOADING:
        if weights not in _LOADED:
            _LOADED[weights] = _open(weights)
        return _LOADED[weights]


def _open(weights: Path) -> Any:
    xllamacpp: Any = import_module("xllamacpp")  # it has no types
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx = 0  # as much as the model was made for
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.verbosity = -1
    for cpu in (parameters.cpuparams, parameters.cpuparams_batch):
        cpu.n_threads = _threads()
    # It listens on a port of its own choice on this machine, which cannot be turned off: nobody has its key.
    parameters.api_keys = [secrets.token_hex(32)]
    parameters.endpoint_slots = False
    parameters.ui = False
    parameters.n_threads_http = 1
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        reason = f"{weights} cannot be loaded ({error})"
        raise BadModel(model="local", reason=reason, advice="Name a file with weights in GGUF.") from None


def _threads() -> int:
    """Half of what there is: its threads wait for one another by spinning, and crawl on a busy machine."""
    return max(1, min(LOCAL_MODEL_THREADS, len(os.sched_getaffinity(0)) // 2))


_LOADED: Final[dict[Path, Any]] = {}
_LOADING: Final = threading.Lock()
