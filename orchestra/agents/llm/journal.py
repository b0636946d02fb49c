"""The journal: what of a conversation is on the record, and what is put there before and after every step.

A step is one request to the model. Before it, a message that streams says that it has begun; after it, the
message is complete and says what was used. Of tool calls the same is kept. An attempt that comes after a
crash goes through the conversation from its start: what is complete is taken from here.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import attrs

from orchestra.ids import Digest
from orchestra.limits import LLM_STREAM_SECONDS
from orchestra.model.records import MessageRole, MessageStatus, PartKind
from orchestra.ports.agent import (
    EDITED,
    Assignment,
    ChatCall,
    ChatGeneration,
    ChatMessage,
    ChatPart,
    ChatPlace,
    Link,
    Posted,
    Streamed,
    ToolReported,
    Used,
)

ENDED: Final = frozenset({"done", "failed", "refused"})
"""Statuses of a tool call that has come to its end."""


TOO_LONG: Final = "ModelContextWindowExceededError"
"""How the note begins in a message whose request had more than the model's context holds."""


class Journal:
    """The record of one assignment's conversation, as an attempt reads and extends it."""

    def __init__(self, assignment: Assignment, link: Link) -> None:
        self._link = link
        self._round = max(assignment.round, 1)
        self._messages: list[ChatMessage] = []
        self._steps: dict[tuple[int, MessageRole], list[int]] = {}  # numbers of the messages of a step
        self._instructions = ""  # what the model was told last to be like
        for each in assignment.messages:
            self._keep(each)
        self.earlier = tuple(each for each in assignment.earlier_messages if each.status == "complete")
        """The messages of the rounds before this one that a model has seen or said, in their order."""
        self._earlier_calls = {call.call: call for call in assignment.earlier_calls}
        self._calls = {call.call: call for call in assignment.calls}
        self._replays = True  # until something is asked that is not on the record
        self._stream = _Stream(link)
        self.changed_at: int | None = None
        """The first step at which something else is asked than what the record has."""

    @property
    def paid(self) -> tuple[ChatGeneration, ...]:
        """Every request that was answered in this round: what the assignment has used so far."""
        made = [each.generation for each in self._messages if each.generation is not None]
        return tuple(each for each in made if each.tokens_in or each.tokens_out)

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of all tool calls that were ever asked for, in this round and before."""
        parts = (part for each in (*self.earlier, *self._messages) for part in each.parts)
        return frozenset(part.data["id"] for part in parts if part.kind in ("tool_call", "answer"))

    @property
    def calls_begun(self) -> int:
        """How often tools were begun, in all attempts of this round."""
        return sum(call.attempts for call in self._calls.values())

    def edited_text(self, role: MessageRole) -> str | None:
        """What a person wrote in the place of what a model is told in this round; None: nothing."""
        parts = [part for each in self._of_step(1, role) for part in each.parts]
        edited = [part.text for part in parts if part.data is not None and part.data.get(EDITED)]
        return edited[-1] if edited else None

    async def reject_answer(self) -> None:
        """Let the last answer be no good: it stays on the record, and whoever comes next asks again."""
        said = (each for each in reversed(self._messages) if each.role == "assistant")
        answer = next((each for each in said if each.status == "complete" and not each.stands_for), None)
        if answer is not None:
            await self._post((attrs.evolve(answer, status="error"),))

    def holds(self, step: int, *, summary: bool) -> bool:
        """Whether a step is on the record: with a summary of what came before it, or with its answer."""
        return self._replays and bool(self._answers(step, summary=summary))

    def is_summed_up_in_vain(self, step: int) -> bool:
        """Whether a step was answered after no summary could be had."""
        tried = any(each.stands_for for each in self._of_step(step, "assistant"))
        return self.holds(step, summary=False) and tried and not self.holds(step, summary=True)

    def is_too_long(self, step: int, asked: Digest, model: str) -> bool:
        """Whether the last thing known of a step is that this model refused it as too long."""
        held = [each for each in self._of_step(step, "assistant") if not each.stands_for]
        if not self._replays or not held or held[-1].status != "error" or held[-1].generation is None:
            return False
        same = (held[-1].generation.asked, held[-1].generation.model) == (asked, model)
        return same and any(
            part.kind == "other" and str(part.data.get("error", "")).startswith(TOO_LONG)
            for part in held[-1].parts
        )

    def find_answer(self, step: int, asked: Digest, *, summary: bool = False) -> ChatMessage | None:
        """The model's answer to the same request, if it is on the record.

        Once a request differs from the record, what the record has of later steps answers something else.
        """
        if not self._replays:
            return None
        held = self._answers(step, summary=summary)
        if held and held[-1].generation is not None and held[-1].generation.asked == asked:
            return held[-1]
        self._replays = False
        if held:
            self.changed_at = step
        return None

    def _answers(self, step: int, *, summary: bool) -> list[ChatMessage]:
        said = self._of_step(step, "assistant")
        return [each for each in said if each.status == "complete" and bool(each.stands_for) == summary]

    def places_of(self, step: int) -> tuple[list[ChatPlace], list[ChatPlace]]:
        """Where a step stands: what it said to the model, and what the model answered."""
        said = [each.place for each in self._of_step(step, "user")]
        return said, [each.place for each in self._answers(step, summary=False)[-1:]]

    def summary_place(self, step: int) -> ChatPlace:
        """Where the summary stands that was made at a step."""
        return self._answers(step, summary=True)[-1].place

    def find_call(self, call: str, asked: Digest) -> ChatCall | None:
        """What is known of a tool call, if the same was asked."""
        held = self._calls.get(call)
        return held if held is not None and held.asked == asked else None

    def call_of(self, call: str) -> ChatCall | None:
        """What is known of a tool call, whatever was asked."""
        return self._calls.get(call) or self._earlier_calls.get(call)

    def message_of(self, call: str) -> int:
        """The number of the message that asks for a tool call."""
        for each in reversed(self._messages):
            if any(part.kind == "tool_call" and part.data["id"] == call for part in each.parts):
                return each.number
        raise AssertionError(f"BUG: no message asks for the call {call!r}")

    async def begin_step(
        self,
        step: int,
        said: Iterable[tuple[MessageRole, ChatPart]],
        generation: ChatGeneration,
        stands_for: tuple[ChatPlace, ...] = (),
        *,
        has_other: bool = False,
    ) -> ChatMessage | None:
        """Record that a request is about to be made, and what it says that was not said before.

        None when it must not be made: another model is to be asked, which there is when it `has_other`.
        """
        spoken = {("system", self._instructions)} | {("user", text) for text in self._asked(step)}
        unsaid = [(role, part) for role, part in said if (role, part.text) not in spoken]
        new = [self._new(role, step, after=at, parts=(part,)) for at, (role, part) in enumerate(unsaid)]
        begun: dict[str, Any] = {"status": "streaming", "generation": generation, "stands_for": stands_for}
        answer = self._new("assistant", step, after=len(new), **begun)
        if await self._post((*new, answer), has_other=has_other) is None:
            return None
        self._stream = _Stream(self._link, answer.number)
        return answer

    def stream_text(self, text: str, of: PartKind = "text") -> None:
        """Show some of an answer while it comes; at most once a second it is put on the record."""
        self._stream.add(text, of)

    async def end_step(
        self,
        answer: ChatMessage,
        parts: tuple[ChatPart, ...],
        status: MessageStatus,
        generation: ChatGeneration,
        used: Used | None = None,
    ) -> ChatMessage:
        """Record an answer and what it used; what is returned has no secrets in it, as on the record."""
        self._stream.close()
        whole = attrs.evolve(answer, parts=parts, status=status, generation=generation)
        kept = await self._post((whole,), used)
        assert kept is not None, "BUG: only beginnings are refused"
        return kept[0]

    async def break_off(self, answer: ChatMessage, reason: str) -> None:
        """Record that an answer did not come whole; what was streamed of it stays."""
        self._stream.flush()
        note = ChatPart(kind="other", data={"error": reason})
        parts = (*self._stream.parts(), note)
        self._stream.close()
        await self._post((attrs.evolve(answer, parts=parts, status="error"),))

    async def record_call(self, call: ChatCall) -> ChatCall:
        """Put down how a tool call stands; what is returned has no secrets in it."""
        reported: ToolReported = await self._link.call(ToolReported(call=call))
        self._calls[call.call] = reported.call
        return reported.call

    async def _post(
        self, messages: tuple[ChatMessage, ...], used: Used | None = None, *, has_other: bool = False
    ) -> tuple[ChatMessage, ...] | None:
        """The messages as they are on the record; None when they were refused."""
        said = Posted(messages=messages, used=used, has_other=has_other)
        posted: Posted = await self._link.call(said)
        if posted.refused:
            return None
        for each in posted.messages:
            self._keep(each)
        return posted.messages

    def _keep(self, message: ChatMessage) -> None:
        """Have a message at hand as it is on the record now."""
        if message.number == len(self._messages):
            self._steps.setdefault((message.step, message.role), []).append(message.number)
        self._messages[message.number : message.number + 1] = [message]
        if message.role == "system":  # said anew only when it has changed
            self._instructions = message.parts[0].text

    def _new(self, role: MessageRole, step: int, *, after: int = 0, **fields: Any) -> ChatMessage:
        number = len(self._messages) + after
        return ChatMessage(number=number, role=role, step=step, round=self._round, **fields)

    def asked_text(self) -> str:
        """What the model was told in this round, as text without secrets: prompts, and results of tools."""
        said = [
            part.text
            for each in self._messages
            if each.round == self._round and each.role != "assistant"
            for part in each.parts
        ]
        results = [
            f"{call.tool}: {call.result if call.status == 'done' else call.error}"
            for call in self._calls.values()
        ]
        return "\n".join([*said, *results])

    def _asked(self, step: int) -> set[str]:
        """What an earlier attempt said to the model in a step."""
        return {part.text for each in self._of_step(step, "user") for part in each.parts}

    def _of_step(self, step: int, role: MessageRole) -> list[ChatMessage]:
        return [self._messages[number] for number in self._steps.get((step, role), ())]


class _Stream:
    """Text on its way to the record: gathered for a while, because every piece would be a snapshot."""

    def __init__(self, link: Link, number: int = -1) -> None:
        self._link, self._number = link, number
        self._gathered: list[tuple[PartKind, list[str]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._said: list[tuple[PartKind, list[str]]] = []

    def add(self, text: str, of: PartKind) -> None:
        """Gather some text; it is sent at the latest when the time is over."""
        if not text:
            return
        _gather(self._gathered, of, text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LLM_STREAM_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        gathered, self._gathered = self._gathered, []
        for of, pieces in gathered:
            text = "".join(pieces)
            _gather(self._said, of, text)
            self._link.send(Streamed(number=self._number, text=text, of=of))

    def parts(self) -> tuple[ChatPart, ...]:
        """What the record has by now."""
        return tuple(ChatPart(kind=of, text="".join(pieces)) for of, pieces in self._said)

    def close(self) -> None:
        """Send nothing any more: the whole message takes its place."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._gathered = []


def _gather(said: list[tuple[PartKind, list[str]]], of: PartKind, text: str) -> None:
    """Add a piece of text; pieces are put together once, or each would copy all that came before it."""
    if said and said[-1][0] == of:
        said[-1][1].append(text)
    else:
        said.append((of, [text]))


def used_by(generation: ChatGeneration) -> Used:
    """What a request used, for the books of the run."""
    return Used(
        api_calls=1,
        tokens_in=generation.tokens_in,
        tokens_out=generation.tokens_out,
        cost_micros=generation.cost_micros or 0,
    )
