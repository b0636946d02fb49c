"""Tools whose every call is on the record: before it runs, after it, and who allowed it."""

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import anyio
import attrs
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic_ai import Agent as ModelAgent
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import to_jsonable_python

from orchestra.agents.context import Context
from orchestra.agents.failures import message_of, misbehaviour
from orchestra.agents.llm.budget import Budget
from orchestra.agents.llm.journal import ENDED, Journal
from orchestra.agents.llm.messages import tool_digest
from orchestra.agents.llm.toolbox import OnUnknown
from orchestra.codec.values import spell_surrogates
from orchestra.errors import UnstorableValue, ValueTooLarge
from orchestra.limits import LLM_TOOL_CHARS, LLM_TOOL_SECONDS
from orchestra.ports.agent import EDITABLE, ChatCall

APPROVE: Final = "approve"
REFUSE: Final = "refuse"


@attrs.frozen(kw_only=True)
class ToolPolicy:
    """How calls of a tool are treated."""

    risky: bool = False  # a person must allow each call
    timeout: float = LLM_TOOL_SECONDS
    output_chars: int = LLM_TOOL_CHARS
    on_unknown: OnUnknown | None = None  # a call that had begun when the process died; None: ask if risky
    is_errand: bool = False  # the engine knows how far it came, and nothing is done twice

    @property
    def unknown_course(self) -> OnUnknown:
        """What is done about a call of which nobody knows whether it ended."""
        return self.on_unknown or ("ask" if self.risky else "rerun")


@attrs.define(kw_only=True, eq=False)
class ToolGuard:
    """Carries tool calls out, each at most once as far as anybody can know."""

    ctx: Context
    journal: Journal
    budget: Budget
    policies: Mapping[str, ToolPolicy]

    def policy(self, tool: str) -> ToolPolicy:
        """How a tool is treated: by its own name, else by a pattern; risky if any of them says so."""
        fitting = [held for pattern, held in self.policies.items() if fnmatchcase(tool, pattern)]
        chosen = self.policies.get(tool) or (fitting[-1] if fitting else ToolPolicy())
        return attrs.evolve(chosen, risky=any(each.risky for each in (chosen, *fitting)))

    async def call(self, call_id: str, tool: str, arguments: dict[str, Any], work: Any) -> Any:
        """The result of a call: the one on the record, or that of running it now.

        `work` is called with the arguments that were allowed. Raises `ToolFailed`, which the model is told.
        """
        asked = tool_digest(tool, to_jsonable_python(arguments, fallback=repr))
        held = self.journal.find_call(call_id, asked)
        if held is not None and held.status in ENDED:
            return _outcome(held)
        policy = self.policy(tool)
        call = held or ChatCall(
            call=call_id,
            tool=tool,
            message=self.journal.message_of(call_id),
            asked=asked,
            arguments=to_jsonable_python(arguments, fallback=repr),
            risky=policy.risky,
            status="waiting",
            attempts=0,
        )
        goes_on = policy.is_errand and call.status == "started"
        if not goes_on:
            await self.budget.count_tool_call()
        if call.status == "started" and not goes_on and not await self._may_rerun(call, policy):
            return _outcome(await self.journal.record_call(_ended(call, "failed", error=UNKNOWN)))
        if policy.risky:
            allowed = await self._approval(call)
            if allowed is None:
                refused = _ended(call, "refused", error="a person refused this call")
                return _outcome(await self.journal.record_call(refused))
            call, arguments = allowed, dict(allowed.arguments)  # as they were shown
        call = await self.journal.record_call(
            attrs.evolve(call, status="started", attempts=call.attempts + (not goes_on))
        )
        ended = await self._run(call, arguments, policy, work)
        try:
            return _outcome(await self.journal.record_call(ended))
        except (UnstorableValue, ValueTooLarge) as error:
            failed = _ended(call, "failed", error=f"its result cannot be kept: {error}")
            return _outcome(await self.journal.record_call(failed))

    async def _run(
        self, call: ChatCall, arguments: dict[str, Any], policy: ToolPolicy, work: Any
    ) -> ChatCall:
        try:
            limit = None if policy.is_errand else policy.timeout  # an errand has limits of its own
            with ModelAgent.using_thread_executor(OwnThreads()), anyio.move_on_after(limit):
                return _ended(call, "done", result=_bounded(_plain(await work(arguments)), policy))
            return _ended(call, "failed", error=f"{call.tool} took longer than {policy.timeout:g} s")
        except (ModelRetry, ToolFailed) as error:
            return _ended(call, "failed", error=_bounded(spell_surrogates(error.message), policy))
        except (
            ServerLost
        ) as error:  # it stays begun: the next attempt decides by policy whether it is run again
            reason = f"what runs {call.tool} was lost in the middle of a call ({error})"
            raise misbehaviour(self.ctx.agent, "ToolLost", reason) from error
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # in the loop these would end the program
            said = f"{type(error).__name__}: {message_of(error)}"
            return _ended(call, "failed", error=_bounded(said, policy))

    async def _approval(self, call: ChatCall) -> ChatCall | None:
        """The call as a person allowed it, perhaps with other arguments; None when it was refused."""
        if self.journal.find_call(call.call, call.asked) is None:
            call = await self.journal.record_call(call)
        answer = await self.ctx.ask(
            f"May {self.ctx.agent} call {call.tool}?",
            [APPROVE, REFUSE],
            details={**_details(call), EDITABLE: ["arguments"]},
            key=f"approve:{call.call}:{call.asked.hex()[:16]}",
        )
        if answer == APPROVE:
            return call
        if isinstance(answer, Mapping) and answer.get("choice") == APPROVE:
            changed = answer.get("arguments", call.arguments)
            if isinstance(changed, Mapping):
                return attrs.evolve(call, arguments=dict(changed))
        return None  # whatever is not plainly a yes is a no

    async def _may_rerun(self, call: ChatCall, policy: ToolPolicy) -> bool:
        """Decide about a call that had begun when its process died, on the record."""
        course = policy.unknown_course
        if course == "ask":
            question = f"{call.tool} had begun when {self.ctx.agent} was interrupted. Run it again?"
            answer = await self.ctx.ask(
                question,
                ["run it again", "do not run it"],
                details=_details(call),
                key=f"unknown:{call.call}:{call.attempts}",
            )
            course = "rerun" if answer == "run it again" else "fail"
        said = "Run" if course == "rerun" else "Do not run"
        await self.ctx.decide(
            f"{said} {call.tool} again",
            rationale=f"nobody knows whether it ended when the process died ({policy.unknown_course})",
            alternatives=[each for each in ("rerun", "ask", "fail") if each != course],
            kind="unknown_tool_call",
        )
        return course == "rerun"


class ServerLost(Exception):
    """A tool's server went away, so that nobody knows how far the call came."""


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the connection to a tool's server has ended."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _LOST) and getattr(error, "code", _CLOSED) == _CLOSED


_LOST: Final = frozenset(
    {"MCPError", "TransportError", "ClosedResourceError", "BrokenResourceError", "ConnectionError"}
)
_CLOSED: Final = -32000  # an MCP connection's end


class OwnThreads(Executor):
    """A thread for each call. One that never ends keeps neither other calls nor the program's end waiting."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a function in a thread of its own."""
        future: Future[Any] = Future()

        def body() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except StopIteration as error:  # which a future cannot bring
                future.set_exception(RuntimeError(f"StopIteration {error}".strip()))
            except BaseException as error:
                future.set_exception(error)

        future.set_running_or_notify_cancel()
        threading.Thread(target=body, name="tool", daemon=True).start()
        return future


UNKNOWN: Final = "it had begun when the process died; nobody knows whether it did what it should"


def _ended(call: ChatCall, status: Literal["done", "failed", "refused"], **fields: Any) -> ChatCall:
    return attrs.evolve(call, status=status, **fields)


def _details(call: ChatCall) -> dict[str, Any]:
    """What a person is shown of a call."""
    return {"tool": call.tool, "arguments": call.arguments, "call": call.call}


def _outcome(call: ChatCall) -> Any:
    if call.status == "done":
        return call.result
    raise ToolFailed(call.error)


def _plain(found: Any) -> Any:
    if isinstance(found, str):
        return spell_surrogates(found)
    return to_jsonable_python(found, fallback=repr, bytes_mode="base64")


def _bounded(found: Any, policy: ToolPolicy) -> Any:
    """A result as much of which is kept as a model may be shown."""
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    if len(text) <= policy.output_chars:
        return found
    shown = policy.output_chars
    return f"{text[:shown]}\n[cut here: of {len(text):,} characters {shown:,} are shown]"


class JournalledToolset(WrapperToolset[Any]):
    """Tools that are called through a guard."""

    def __init__(self, wrapped: AbstractToolset[Any], guard: ToolGuard) -> None:
        super().__init__(wrapped)
        self.guard = guard

    async def __aenter__(self) -> "JournalledToolset":
        """Start the server whose tools these are, if they are one's."""
        try:
            await super().__aenter__()
        except Exception as error:
            server = getattr(self.wrapped, "prefix", "")
            reason = f"the MCP server `{server}` cannot be used: {message_of(error)}"
            raise misbehaviour(self.guard.ctx.agent, "NoServer", reason) from error
        return self

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool, or take its result from the record."""
        if ctx.tool_call_id is None:
            raise misbehaviour(self.guard.ctx.agent, "UnnamedCall", f"the model calls {name} without an id")

        async def work(arguments: dict[str, Any]) -> Any:
            if arguments is not tool_args:  # they were allowed by a person, and perhaps changed
                arguments = _fitting(arguments, tool)
            try:
                return await self.wrapped.call_tool(name, arguments, ctx, tool)
            except Exception as error:
                if not isinstance(self.wrapped, FunctionToolset) and is_lost(error):
                    raise ServerLost(message_of(error)) from error
                raise

        return await self.guard.call(ctx.tool_call_id, name, tool_args, work)


def _fitting(arguments: dict[str, Any], tool: ToolsetTool[Any]) -> dict[str, Any]:
    """Arguments that a person allowed, as the tool takes them; raises `ToolFailed` when they do not fit."""
    wrong = next(Draft202012Validator(tool.tool_def.parameters_json_schema).iter_errors(arguments), None)
    if wrong is not None:
        where = wrong.json_path.replace("$", "arguments", 1)
        raise ToolFailed(f"its arguments do not fit: {where}: {wrong.message}")
    fitting: dict[str, Any] = tool.args_validator.validate_python(arguments)
    return fitting
