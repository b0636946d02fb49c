"""Conversations of agents with language models: what was said, what was called, and in which snapshot.

Only messages, tool calls and questions are read of a state. Where a message got its last words is found by
its time in the index; of the snapshots it may have been, the patches tell.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice, pairwise
from typing import Any

import attrs

from orchestra.codec.json_values import to_json
from orchestra.codec.readers import structure
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.describe import pick
from orchestra.history.lineage import ancestry_through_forks
from orchestra.history.paths import Path
from orchestra.ids import AgentId
from orchestra.model.records import WHOLE, Generation, Message, Part, PartKind, ToolCall, Wait
from orchestra.model.tree import Table
from orchestra.model.value import Value
from orchestra.ports.store import Row

_OVER = frozenset({"done", "failed", "refused"})


@attrs.frozen(kw_only=True)
class CallQuestion:
    """A question to a person about a tool call: whether it may run, or whether it is run again."""

    wait: str
    held: Wait
    answer: Any = None


@attrs.frozen(kw_only=True)
class AskedCall:
    """A tool call as a message asks for it, and what is known of it; nothing before it was begun."""

    id: str
    tool: str
    arguments: Any
    name: str = ""  # of its record
    record: ToolCall | None = None
    result: Any = None
    questions: tuple[CallQuestion, ...] = ()

    @property
    def status(self) -> str:
        """How it stands."""
        return "asked" if self.record is None else self.record.status

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end."""
        return self.status in _OVER


@attrs.frozen(kw_only=True)
class SpokenPart:
    """One piece of a message with its whole text; what stands beside it is ordinary data."""

    kind: PartKind
    path: Path = ()  # of its text in the state
    text: str = ""
    data: Any = None
    call: AskedCall | None = None


@attrs.frozen(kw_only=True)
class SpokenMessage:
    """A message of a conversation.

    One that is superseded was said again, or is not part of what follows; one that is compacted was, until a
    summary took its place: it is kept, and the model sees it no more.
    """

    name: str
    held: Message
    parts: tuple[SpokenPart, ...]
    superseded: bool = False
    compacted: bool = False

    @property
    def calls(self) -> list[AskedCall]:
        """The tool calls that it asks for."""
        return [part.call for part in self.parts if part.call is not None]


def messages_at(archive: Archive, row: Row) -> dict[str, Message]:
    """The messages at a snapshot by name, in their order; raises like `Archive.part_of`."""
    plain = archive.part_of(row, ("messages",)).get("messages", Table())
    what = f"a message in {row.run}@{row.seq}"
    return {name: structure(held, Message, what=what) for name, held in plain.items()}


@attrs.frozen(kw_only=True)
class Calls:
    """The tool calls at a snapshot by name, and what people were asked about them by their ids."""

    records: Mapping[str, ToolCall]
    questions: Mapping[tuple[str | None, str], tuple[CallQuestion, ...]]


def calls_at(archive: Archive, row: Row) -> Calls:
    """The tool calls at a snapshot; raises like `Archive.part_of`."""
    part = archive.part_of(row, ("tool_calls", "waits"))
    what = f"a tool call in {row.run}@{row.seq}"
    records = {
        name: structure(held, ToolCall, what=what) for name, held in part.get("tool_calls", {}).items()
    }
    questions: dict[tuple[str | None, str], tuple[CallQuestion, ...]] = {}
    for name, plain in part.get("waits", {}).items():
        held = structure(plain, Wait, what=f"a wait in {row.run}@{row.seq}")
        details = _open(archive, held.details) if held.kind == "question" else None
        if isinstance(details, dict) and isinstance(call := details.get("call"), str):
            asked = CallQuestion(wait=name, held=held, answer=_open(archive, held.answer))
            questions[held.task, call] = (*questions.get((held.task, call), ()), asked)
    return Calls(records=records, questions=questions)


def speakers(messages: Mapping[str, Message]) -> dict[AgentId, list[str]]:
    """The agents that have messages, and the names of these."""
    found: dict[AgentId, list[str]] = {}
    for name, held in messages.items():
        if held.agent is not None:
            found.setdefault(held.agent, []).append(name)
    return found


def conversation(
    archive: Archive,
    messages: Mapping[str, Message],
    calls: Calls,
    *,
    first: int = 0,
    last: int | None = None,
) -> list[SpokenMessage]:
    """Messages with all that people read in them; those from `first` to before `last`."""
    newest = {_step(held): name for name, held in messages.items() if held.role == "assistant"}
    gone = _compacted(messages)
    return [
        SpokenMessage(
            name=name,
            held=held,
            parts=tuple(_spoken(archive, held, name, place, calls) for place in range(len(held.parts))),
            superseded=held.status in ("interrupted", "error")
            or (held.role == "assistant" and newest[_step(held)] != name),
            compacted=name in gone,
        )
        for name, held in islice(messages.items(), first, last)
    ]


def _step(held: Message) -> tuple[str | None, str | None, int, int, bool]:
    return held.agent, held.task, held.round, held.step_number, bool(held.stands_for)


def _compacted(messages: Mapping[str, Message]) -> set[str]:
    """The messages that a summary stands for, unless the conversation was taken up again before that."""
    summaries: dict[tuple[str | None, str | None, int], list[Message]] = {}
    for held in messages.values():
        made = summaries.setdefault((held.agent, held.task, held.round), [])
        if held.role == "assistant":
            made[:] = [each for each in made if each.step_number <= held.step_number]
        if held.stands_for and held.status == "complete" and any(part.text.strip() for part in held.parts):
            made.append(held)
    return {name for made in summaries.values() for each in made for name in each.stands_for}


def _spoken(archive: Archive, message: Message, name: str, place: int, calls: Calls) -> SpokenPart:
    part: Part = message.parts[place]
    path: Path = ("messages", name, "parts", place)
    data = _open(archive, part.data)
    if part.kind == "tool_call" and isinstance(data, dict):
        call = _asked(archive, message, name, data, calls)
        return SpokenPart(kind=part.kind, path=(*path, "text"), text=part.text, data=data, call=call)
    if isinstance(data, dict) and WHOLE in data:
        rest = {key: held for key, held in data.items() if key != WHOLE} or None
        return SpokenPart(kind=part.kind, path=(*path, "data", WHOLE), text=data[WHOLE], data=rest)
    return SpokenPart(kind=part.kind, path=(*path, "text"), text=part.text, data=data)


def _asked(archive: Archive, message: Message, name: str, data: Mapping[str, Any], calls: Calls) -> AskedCall:
    call, tool = str(data.get("id", "")), str(data.get("name", ""))
    key = f"{name.rpartition('#')[0]}#{call}"
    record = calls.records.get(key)
    if record is None:
        return AskedCall(id=call, tool=tool, arguments=data.get("arguments"))
    return AskedCall(
        id=call,
        tool=record.tool,
        arguments=_open(archive, record.arguments),
        name=key,
        record=record,
        result=_open(archive, record.result),
        questions=calls.questions.get((message.task, call), ()),
    )


def _open(archive: Archive, value: Value | None) -> Any:
    return None if value is None else archive.value(value)


# In which snapshot.


def message_rows(archive: Archive, row: Row, messages: Mapping[str, Message]) -> dict[str, Row]:
    """The snapshots in which messages of `row` got their last words, by name: each can be forked from.

    A clock that was put back can hide one from the index; then all patches are looked through. Those that lie
    behind damage are not found.
    """
    wanted = dict(messages)
    found: dict[str, Row] = {}
    for by_time in (True, False):
        with suppress(DamageError):
            found.update(_find_rows(archive, row, wanted, by_time=by_time) if wanted else ())
    return found


def _find_rows(
    archive: Archive, row: Row, wanted: dict[str, Message], *, by_time: bool
) -> Iterator[tuple[str, Row]]:
    """Go back from `row` until all that is wanted is found; what is found is taken from `wanted`."""
    for newer, older in pairwise(chain(ancestry_through_forks(archive, row), [None])):
        assert newer is not None, "BUG: only the end is None"
        near = [name for name, held in wanted.items() if not by_time or _is_between(older, held, newer)]
        for name in _changed(archive, older, newer, near, wanted):
            del wanted[name]
            yield name, newer
        if not wanted:
            return


def _is_between(older: Row | None, held: Message, newer: Row) -> bool:
    return (older is None or older.at <= held.updated_at) and held.updated_at <= newer.at


def _changed(
    archive: Archive, older: Row | None, newer: Row, near: list[str], wanted: Mapping[str, Message]
) -> list[str]:
    """Those messages that a snapshot changed. Where its patch does not tell, the time does."""
    if older is None and not newer.pruned:  # a fork whose origin is gone began with them
        began = messages_at(archive, newer) if near else {}
        return [name for name in near if name in began]
    later = [name for name in near if older is None or older.at < wanted[name].updated_at <= newer.at]
    if newer.pruned or older is None or "rolled_back" in newer.triggers or older.run != newer.run:
        return later
    touched = set(_touched_messages(archive, newer)) if near else set()
    return [name for name in near if name in touched]


def _touched_messages(archive: Archive, row: Row) -> Iterator[str]:
    """The messages that the patch of a row adds or changes."""
    for operation in archive.step(row).operations:
        if len(operation) < 2 or not isinstance(operation[1], list) or operation[1][:1] != ["messages"]:
            continue
        if operation[0] == "put" and len(operation[1]) == 1:
            yield from (key for key, _ in operation[2])
        elif len(operation[1]) > 1:
            yield operation[1][1]


# As JSON.


def message_json(spoken: SpokenMessage, row: Row | None, archive: Archive) -> dict[str, Any]:
    """A message as JSON, with the snapshot it was found in."""
    held = spoken.held
    return {
        "message": spoken.name,
        **pick(held, "agent task round step=step_number role status model"),
        "superseded": spoken.superseded,
        "compacted": spoken.compacted,
        "stands_for": list(held.stands_for),
        "snapshot": None if row is None else f"{row.run}@{row.seq}",
        "pruned": row is not None and row.pruned,
        **pick(held, "created_at updated_at completed_at"),
        "generation": None if held.generation is None else _generation_json(held.generation, archive),
        "parts": [_part_json(part) for part in spoken.parts],
    }


def _generation_json(held: Generation, archive: Archive) -> dict[str, Any]:
    return {
        **pick(held, "model tokens_in tokens_out cache_read cache_write cost_micros latency_us finish asked"),
        "price": None if held.price is None else attrs.asdict(held.price),
        "settings": to_json(_open(archive, held.settings)),
        "provider": to_json(_open(archive, held.provider)),
    }


def _part_json(part: SpokenPart) -> dict[str, Any]:
    call = None if part.call is None else _call_json(part.call)
    return {**pick(part, "kind text"), "data": to_json(part.data), "call": call}


def _call_json(call: AskedCall) -> dict[str, Any]:
    record = call.record or ToolCall(tool=call.tool)
    return {
        **pick(call, "id tool status"),
        "arguments": to_json(call.arguments),
        "result": to_json(call.result),
        **pick(record, "error risky attempts started_at ended_at"),
        "questions": [
            {"wait": each.wait, **pick(each.held, "text status opened_at closed_at")}
            | {"answer": to_json(each.answer)}
            for each in call.questions
        ],
    }
