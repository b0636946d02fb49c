"""Conversations: what an assignment has said to a language model so far, and its reports as events."""

from collections.abc import Iterable
from itertools import chain, count
from typing import Any, Final

import attrs

from orchestra.codec.values import freeze
from orchestra.engine.redact import Redactor
from orchestra.engine.view import View
from orchestra.errors import BadOrder
from orchestra.history.paths import BadPath, parse_path
from orchestra.ids import Instant, TaskId
from orchestra.limits import TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.frozen import converter
from orchestra.model.records import WHOLE, Generation, Message, Part, PartKind, Task, ToolCall, Wait
from orchestra.model.tree import Table
from orchestra.ports import agent as port

spent_event: Final = converter(port.Used, ev.Spent, "at", "agent", "phase")
"""What an agent used, as an event."""
_VALUES = ("settings", "provider")


def message_name(task: TaskId, number: int) -> str:
    """What a state calls a message of an assignment."""
    return f"{task}#{number}"


def call_name(task: TaskId, call: str) -> str:
    """What a state calls a tool call of an assignment."""
    return f"{task}#{call}"


# What was said so far.


def messages_of(view: View, task: TaskId) -> tuple[port.ChatMessage, ...]:
    """The conversation of an assignment so far; empty for most."""
    found: list[port.ChatMessage] = []
    for number in count() if view.state.messages else ():
        held = view.state.messages.get(message_name(task, number))
        if held is None:
            break
        found.append(_chat_message(view, number, held))
    return tuple(found)


def earlier_rounds(
    view: View, task: TaskId, round: int
) -> tuple[tuple[port.ChatMessage, ...], tuple[port.ChatCall, ...]]:
    """What the same assignment said and called in the rounds before this one."""
    names = [_task_of(task, each) for each in range(1, round)]
    messages = [messages_of(view, name) for name in names]
    calls = [calls_of(view, name, said) for name, said in zip(names, messages, strict=True)]
    return tuple(chain.from_iterable(messages)), tuple(chain.from_iterable(calls))


def _task_of(task: TaskId, round: int) -> TaskId:
    """The same assignment in another round."""
    base = task.partition("~")[0]
    return TaskId(base if round == 1 else f"{base}~{round}")


def calls_of(view: View, task: TaskId, messages: tuple[port.ChatMessage, ...]) -> tuple[port.ChatCall, ...]:
    """The tool calls that messages ask for, as far as something is known of them."""
    asked = (part.data["id"] for each in messages for part in each.parts if part.kind == "tool_call")
    known = ((call, view.state.tool_calls.get(call_name(task, call))) for call in asked)
    return tuple(_chat_call(view, call, held) for call, held in known if held is not None)


def _chat_message(view: View, number: int, held: Message) -> port.ChatMessage:
    parts = (_chat_part(part, view.open_value(part.data)) for part in held.parts)
    generation = held.generation
    return port.ChatMessage(
        number=number,
        role=held.role,
        parts=tuple(parts),
        status=held.status,
        step=held.step_number,
        round=held.round,
        generation=None if generation is None else _chat_generation(view, generation),
        stands_for=tuple(_place_of(name) for name in held.stands_for),
    )


def _place_of(message: str) -> port.ChatPlace:
    task, _, number = message.rpartition("#")
    return int(task.partition("~")[2] or 1), int(number)


def _chat_part(part: Part, data: Any) -> port.ChatPart:
    text = part.text
    if data is not None and WHOLE in data:
        text, data = data[WHOLE], {name: held for name, held in data.items() if name != WHOLE}
    return port.ChatPart(kind=part.kind, text=text, data=data)


def _chat_generation(view: View, held: Generation) -> port.ChatGeneration:
    opened = {name: view.open_value(getattr(held, name)) or {} for name in _VALUES}
    same = {each.name: getattr(held, each.name) for each in attrs.fields(Generation)}
    return port.ChatGeneration(**{**same, **opened})


def _chat_call(view: View, call: str, held: ToolCall) -> port.ChatCall:
    assert held.asked is not None, "BUG: a call is recorded with what was asked"
    return port.ChatCall(
        call=call,
        tool=held.tool,
        message=int(held.message.rpartition("#")[2]),
        asked=held.asked,
        arguments=view.open_value(held.arguments),
        risky=held.risky,
        status=held.status,
        attempts=held.attempts,
        result=view.open_value(held.result),
        error=held.error,
    )


def begins(call: port.ChatCall, held: ToolCall | None) -> bool:
    """Whether a call begins, for the first time or again."""
    return call.status == "started" and (held is None or call.attempts > held.attempts)


def withdrawals(
    waits: Table[Wait], names: Iterable[str], task: TaskId | None, now: Instant
) -> tuple[ev.WaitClosed, ...]:
    """The events that take an assignment's questions back; who asks the same again asks anew."""
    found = ((name, waits[name]) for name in names)
    return tuple(
        ev.WaitClosed(at=now, wait=name)
        for name, wait in found
        if wait.kind == "question" and wait.task == task
    )


# What is said now.


@attrs.frozen(kw_only=True)
class Scribe:
    """Writes down what an assignment's agent says in its conversation."""

    view: View
    redactor: Redactor
    now: Instant
    name: TaskId
    task: Task

    def clean(self, report: port.Posted | port.ToolReported) -> port.Posted | port.ToolReported:
        """A report without secrets."""
        if isinstance(report, port.Posted):
            return attrs.evolve(report, messages=tuple(self._clean_message(each) for each in report.messages))
        call = report.call
        cleaned = attrs.evolve(
            call,
            arguments=self.redactor.value(call.arguments),
            result=self.redactor.value(call.result),
            error=self.redactor.text(call.error),
        )
        return attrs.evolve(report, call=cleaned)

    def _clean_message(self, message: port.ChatMessage) -> port.ChatMessage:
        parts = tuple(
            attrs.evolve(part, text=self.redactor.text(part.text), data=self.redactor.value(part.data))
            for part in message.parts
        )
        generation = message.generation
        if generation is not None:
            provider = self.redactor.value(dict(generation.provider))
            generation = attrs.evolve(generation, provider=provider)
        return attrs.evolve(message, parts=parts, generation=generation)

    def message_events(self, report: port.Posted) -> tuple[ev.Event, ...]:
        """Messages that are new or changed, and what they used, as events."""
        posted: list[ev.Event] = [self._message_event(each) for each in report.messages]
        if report.used is not None:
            used = spent_event(report.used, at=self.now, agent=self.task.agent, phase=self.task.phase)
            posted.append(used)
        return tuple(posted)

    def _message_event(self, message: port.ChatMessage) -> ev.MessagePosted:
        generation = message.generation
        return ev.MessagePosted(
            at=self.now,
            message=message_name(self.name, message.number),
            role=message.role,
            agent=self.task.agent,
            task=self.name,
            round=message.round,
            parts=self._parts(message),
            status=message.status,
            step_number=message.step,
            model=None if generation is None else generation.model,
            generation=None if generation is None else self._generation(generation),
            stands_for=tuple(
                message_name(_task_of(self.name, round), number) for round, number in message.stands_for
            ),
        )

    def _parts(self, message: port.ChatMessage) -> tuple[Part, ...]:
        """The parts of a message; of texts that are too long the whole is kept as a value."""
        made, room = [], TEXT_CHARS
        for part in message.parts:
            text, data = part.text, part.data
            if len(text) > room:
                text, data = text[:room], {**(data or {}), WHOLE: text}
            room -= len(text)
            made.append(Part(kind=part.kind, text=text, data=self._freeze(data)))
        return tuple(made)

    def stream_events(self, report: port.Streamed) -> tuple[ev.Event, ...]:
        """Text that joins a message, as much as a state keeps of one that is not complete."""
        name = message_name(self.name, report.number)
        held = self.view.state.messages.get(name)
        if held is None or held.status != "streaming":
            return ()  # it came after the end of its message
        room = TEXT_CHARS - sum(len(part.text) for part in held.parts)
        if room <= 0:
            return ()
        return (ev.MessageStreamed(at=self.now, message=name, text=report.text[:room], of=report.of),)

    def _generation(self, generation: port.ChatGeneration) -> Generation:
        same = {each.name: getattr(generation, each.name) for each in attrs.fields(Generation)}
        frozen = {name: self._freeze(dict(same[name]) or None) for name in _VALUES}
        return Generation(**{**same, **frozen})

    def call_events(self, report: port.ToolReported) -> tuple[ev.Event, ...]:
        """A tool call as it stands now, and that it counts when it begins, as events."""
        held = self.view.state.tool_calls.get(call_name(self.name, report.call.call))
        changed = self.call_event(report)
        if not begins(report.call, held):
            return (changed,)
        return changed, ev.Spent(at=self.now, agent=self.task.agent, tool_calls=1, phase=self.task.phase)

    def call_event(self, report: port.ToolReported) -> ev.ToolCallChanged:
        """A tool call as it stands now, as an event."""
        call, key = report.call, call_name(self.name, report.call.call)
        held = self.view.state.tool_calls.get(key)
        began = held.started_at if held is not None else None
        record = ToolCall(
            tool=call.tool,
            agent=self.task.agent,
            task=self.name,
            message=message_name(self.name, call.message),
            arguments=self._freeze(call.arguments),
            asked=call.asked,
            risky=call.risky,
            status=call.status,
            attempts=call.attempts,
            result=self._freeze(call.result),
            error=call.error,
            started_at=self.now if call.status == "started" else began,
            ended_at=self.now if call.status in ("done", "failed", "refused") else None,
        )
        return ev.ToolCallChanged(at=self.now, call=key, record=record)

    def _freeze(self, value: Any) -> Any:
        return None if value is None else freeze(value, self.view.addresser)


# What a person sets.


def edit_event(view: View, path: str, value: Any, now: Instant) -> tuple[ev.Event, TaskId]:
    """The event that sets a place in a message or tool call, and whose it is; raises `BadOrder`."""
    try:
        section, name, *place = parse_path(path)
    except (BadPath, ValueError) as error:
        raise BadOrder(order="set", reason=f"{path!r} is no path: {error}") from None
    table: Table[Any] = getattr(view.state, str(section))
    held = table.get(name) if isinstance(name, str) else None
    if held is None or held.task is None:
        raise BadOrder(
            order="set", reason=f"there is no {str(section)[:-1].replace('_', ' ')} {name!r} there"
        )
    task: TaskId = held.task
    scribe = Scribe(view=view, redactor=Redactor(), now=now, name=task, task=view.state.tasks[task])
    local = str(name).removeprefix(f"{task}#")
    if section == "messages":
        told = _chat_message(view, int(local), held)
        (event,) = scribe.message_events(port.Posted(messages=(_edited_message(told, place, value),)))
        return event, task
    call = _edited_call(_chat_call(view, local, held), place, value)
    return scribe.call_event(port.ToolReported(call=call)), task


def _edited_message(told: port.ChatMessage, place: list[str | int], value: Any) -> port.ChatMessage:
    """A message in which a text, or what a tool is called with, is another one."""
    if told.status != "complete":
        raise BadOrder(order="set", reason=f"that message is {told.status}; only a complete one can be set")
    if told.role != "assistant" and told.step != 1:
        reason = "what the model was told there follows from its answer; set that, or the result of a tool"
        raise BadOrder(order="set", reason=reason)
    match place, value:
        case ["text"], str():
            parts: tuple[port.ChatPart, ...] = (_edited_text(told, "text", value),)
        case ["parts", int(at), "text"], str() if -1 < at < len(told.parts):
            kind = told.parts[at].kind
            parts = (*told.parts[:at], _edited_text(told, kind, value), *told.parts[at + 1 :])
        case ["parts", int(at), "data", "arguments"], dict() if -1 < at < len(told.parts) and told.parts[
            at
        ].kind in ("tool_call", "answer"):
            part = attrs.evolve(told.parts[at], data={**told.parts[at].data, "arguments": value})
            parts = (*told.parts[:at], part, *told.parts[at + 1 :])
        case _:
            can = "`.text` and `.parts[N].text` to a text, `.parts[N].data.arguments` to a tool's arguments"
            raise BadOrder(order="set", reason=f"of a message can be set: {can}")
    return attrs.evolve(told, parts=parts)


def _edited_text(told: port.ChatMessage, kind: PartKind, text: str) -> port.ChatPart:
    """A text of a person's; of a model's answer nothing of its provider's stays beside it."""
    if kind not in ("text", "reasoning"):
        raise BadOrder(order="set", reason=f"that part of the message is no text but {kind}")
    return port.ChatPart(kind=kind, text=text, data=None if told.role == "assistant" else {port.EDITED: True})


def _edited_call(call: port.ChatCall, place: list[str | int], value: Any) -> port.ChatCall:
    """A tool call that ended with another result."""
    match place, value:
        case ["result"], _:
            return attrs.evolve(call, status="done", result=value, error="")
        case ["error"], str():
            return attrs.evolve(call, status="failed", result=None, error=value)
        case _:
            raise BadOrder(order="set", reason="of a tool call can be set: `.result`, and `.error` to a text")
