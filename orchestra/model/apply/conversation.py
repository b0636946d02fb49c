"""What events about messages and tool calls do to a state. See `orchestra.model.apply.apply`."""

from collections.abc import Callable
from typing import Any, Final

from orchestra.ids import AgentId, Instant
from orchestra.model import events as ev
from orchestra.model.apply.checks import illegal
from orchestra.model.frozen import converter, evolve
from orchestra.model.records import Message, MessageStatus, Part, PartKind
from orchestra.model.state import Draft

_message: Final = converter(ev.MessagePosted, Message, "created_at", "updated_at", "completed_at")


def _post(draft: Draft, event: ev.MessagePosted) -> None:
    held = draft.messages.get(event.message)
    message = _message(
        event,
        created_at=held.created_at if held else event.at,
        updated_at=event.at,
        completed_at=None if event.status == "streaming" else event.at,
    )
    _put_message(draft, event.message, message)


def _stream(draft: Draft, event: ev.MessageStreamed) -> None:
    held = draft.messages.get(event.message)
    if held is None or held.status != "streaming":
        raise illegal(event, draft.run, f"message {event.message!r} is not streaming")
    grown = evolve(
        held,
        parts=(*_add_text(held.parts, event.text, event.of), *event.parts),
        status=event.status,
        updated_at=event.at,
        completed_at=None if event.status == "streaming" else event.at,
    )
    _put_message(draft, event.message, grown)


def _put_message(draft: Draft, name: str, message: Message) -> None:
    """Put a message down; its agent knows which one of its own still streams."""
    draft.change(messages=draft.messages.set(name, message))
    agent = draft.agents.get(message.agent) if message.agent is not None else None
    streams = name if message.status == "streaming" else None
    if agent is not None and agent.message != streams and (streams or agent.message == name):
        draft.change_agent(message.agent, message=streams)


def end_stream(draft: Draft, agent: AgentId, status: MessageStatus, at: Instant) -> None:
    """Let the message that an agent streams, if there is one, be over before its end."""
    held = draft.agents.get(agent)
    name = held.message if held is not None else None
    message = draft.messages.get(name) if name is not None else None
    if name is not None and message is not None:
        _put_message(draft, name, evolve(message, status=status, updated_at=at))


def _add_text(parts: tuple[Part, ...], text: str, kind: PartKind) -> tuple[Part, ...]:
    if not text:
        return parts
    if parts and parts[-1].kind == kind:
        return (*parts[:-1], evolve(parts[-1], text=parts[-1].text + text))
    return (*parts, Part(kind=kind, text=text))


def _change_call(draft: Draft, event: ev.ToolCallChanged) -> None:
    draft.change(tool_calls=draft.tool_calls.set(event.call, event.record))


HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    ev.MessagePosted: _post,
    ev.MessageStreamed: _stream,
    ev.ToolCallChanged: _change_call,
}
"""What events about messages and tool calls do to a draft."""
