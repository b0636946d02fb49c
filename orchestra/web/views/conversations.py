"""Conversations of agents with language models as JSON: who has one, and one of them message by message."""

from collections.abc import Mapping
from typing import Any

from orchestra.history.archive import Archive
from orchestra.history.conversation import (
    AskedCall,
    CallQuestion,
    SpokenMessage,
    SpokenPart,
    calls_at,
    conversation,
    message_rows,
    messages_at,
    speakers,
)
from orchestra.history.paths import Path
from orchestra.ids import Instant, RunId
from orchestra.limits import WEB_CHANGE_BYTES, WEB_MESSAGE_CHARS
from orchestra.model.records import Generation, Message, ToolCall
from orchestra.ports.store import Row
from orchestra.web.views.common import Cached, Json, attributes
from orchestra.web.views.forms import cut, data_form
from orchestra.web.views.snapshots import reference_json

_KNOWN_ROWS = 20_000
_MESSAGE = ("agent", "task", "round", "role", "status", "model", "created_at", "updated_at", "completed_at")
_GENERATION = ("model", "tokens_in", "tokens_out", "cache_read", "cache_write", "cost_micros", "latency_us")
_CALL = ("error", "risky", "attempts", "started_at", "ended_at")


class Conversations:
    """What agents and their models said to one another, at any snapshot."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._places: Cached[tuple[RunId, str, Instant], Json] = Cached(_KNOWN_ROWS)

    def list_at(self, row: Row) -> Json:
        """Who has a conversation at a snapshot, and how much was said."""
        messages = messages_at(self._archive, row)
        found = ([messages[name] for name in names] for names in speakers(messages).values())
        return {**reference_json(row), "conversations": [_speaker_json(each) for each in found]}

    def one_at(self, row: Row, who: str, first: int | None, limit: int) -> Json:
        """The conversation of an agent or an assignment: the newest messages, or those from `first` on."""
        messages = {
            name: held
            for name, held in messages_at(self._archive, row).items()
            if who in (held.agent, held.task)
        }
        start = max(len(messages) - limit, 0) if first is None else min(first, len(messages))
        calls = calls_at(self._archive, row)
        shown = conversation(self._archive, messages, calls, first=start, last=start + limit)
        places = self._find_places(row, {each.name: each.held for each in shown})
        return {
            **reference_json(row),
            "who": who,
            "count": len(messages),
            "first": start,
            "messages": [self._message(each, places.get(each.name)) for each in shown],
        }

    def _find_places(self, row: Row, shown: Mapping[str, Message]) -> dict[str, Json]:
        """The snapshots in which messages got their last words. They stay so, and are remembered."""
        keys = {name: (row.run, name, held.updated_at) for name, held in shown.items()}
        found = {name: place for name, key in keys.items() if (place := self._places.peek(key)) is not None}
        unknown = {name: held for name, held in shown.items() if name not in found}
        for name, each in message_rows(self._archive, row, unknown).items():
            found[name] = self._places.put(keys[name], {"run": each.run, "seq": each.seq})
        return found

    def _message(self, spoken: SpokenMessage, place: Json | None) -> Json:
        held = spoken.held
        return {
            "message": spoken.name,
            **attributes(held, *_MESSAGE),
            "step": held.step_number,
            "superseded": spoken.superseded,
            "compacted": spoken.compacted,
            "stands_for": list(held.stands_for),
            "snapshot": place,
            "generation": None if held.generation is None else self._generation(held.generation, spoken.name),
            "parts": [self._part(each, streams=held.status == "streaming") for each in spoken.parts],
        }

    def _generation(self, held: Generation, message: str) -> Json:
        path = ("messages", message, "generation")
        settings = None if held.settings is None else self._archive.value(held.settings)
        return {
            **attributes(held, *_GENERATION, "finish"),
            "asked": None if held.asked is None else held.asked.hex(),
            "settings": self._form(settings, (*path, "settings")),
        }

    def _part(self, part: SpokenPart, *, streams: bool) -> Json:
        is_long = len(part.text) > WEB_MESSAGE_CHARS and not streams
        return {
            "kind": part.kind,
            "text": cut(part.text, WEB_MESSAGE_CHARS) if is_long else part.text,
            "path": list(part.path),
            "data": None if part.call else self._form(part.data, (*part.path[:4], "data")),
            "call": None if part.call is None else self._call(part.call),
        }

    def _call(self, call: AskedCall) -> Json:
        path = ("tool_calls", call.name)
        return {
            **attributes(call, "id", "name", "tool", "status"),
            "arguments": self._form(call.arguments, (*path, "arguments")),
            "result": self._form(call.result, (*path, "result")),
            **attributes(call.record or ToolCall(tool=call.tool), *_CALL),
            "questions": [self._question(each) for each in call.questions],
        }

    def _question(self, asked: CallQuestion) -> Json:
        return {
            "wait": asked.wait,
            **attributes(asked.held, "text", "status", "opened_at", "closed_at"),
            "answer": self._form(asked.answer, ("waits", asked.wait, "answer")),
        }

    def _form(self, held: Any, path: Path) -> Any:
        return data_form(held, path, self._archive.loader, WEB_CHANGE_BYTES)


def _speaker_json(messages: list[Message]) -> Json:
    paid = [each.generation for each in messages if each.generation is not None]
    return {
        "agent": messages[0].agent,
        "tasks": list(dict.fromkeys(each.task for each in messages if each.task is not None)),
        "messages": len(messages),
        "model": next((each.model for each in reversed(messages) if each.model), None),
        "status": messages[-1].status,
        "tokens": sum(each.tokens_in + each.tokens_out for each in paid),
        "cost_micros": sum(each.cost_micros or 0 for each in paid),
        "updated_at": max(each.updated_at for each in messages),
    }
