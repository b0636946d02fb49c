"""`orchestra chat`: the conversation of an agent with its language model, as it was or as it goes on."""

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from orchestra.cli.exit_codes import OK
from orchestra.cli.options import Full, Reference, StoreUrl
from orchestra.cli.play.following import code_of, looks
from orchestra.cli.render.chat import ChatPrinter
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Column, Screen, json_text, print_json, print_table, screen
from orchestra.cli.store import archive, option
from orchestra.errors import BadSetting
from orchestra.history.archive import Archive
from orchestra.history.conversation import (
    SpokenMessage,
    calls_at,
    conversation,
    message_json,
    message_rows,
    messages_at,
    speakers,
)
from orchestra.history.references import resolve, resolve_run
from orchestra.ids import RunId
from orchestra.model.records import Message
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import Row

AgentArgument = Annotated[
    str | None, Parameter(help="Whose; needed when several have messages. An assignment may be named, too.")
]


def chat(
    ref: Reference,
    agent: AgentArgument = None,
    /,
    *,
    follow: Annotated[
        bool, Parameter(name="--follow", help="Go on with what is said until the run is left.")
    ] = False,
    full: Full = False,
    store: StoreUrl = None,
    json: Annotated[
        bool, Parameter(name="--json", help="Print one JSON document; with --follow an object per line.")
    ] = False,
) -> int:
    """Show the conversation of an agent with its language model: what is said, and which tools are called.

    Below every message stands its snapshot: `orchestra fork` begins there. Without AGENT it is the only one
    that has messages, or those that have are listed. With --follow it is the first that has some, and the
    exit code is that of `orchestra watch`.
    """
    if follow and "@" in ref:
        raise BadSetting(
            setting="--follow", value=ref, reason="what goes on is not followed from an earlier snapshot"
        )
    with archive(store) as opened:
        if follow:
            return _follow(opened, resolve_run(opened, ref), agent, full=full, as_json=json)
        row = resolve(opened, ref)
        messages = messages_at(opened, row)
        chosen = choose(messages, agent)
        if json:
            print_json(_document(opened, row, messages, chosen))
        elif chosen is None:
            _list(screen(), row, messages, store)
        else:
            _print(screen(), opened, row, chosen, store, whole=full)
        return OK


def choose(messages: Mapping[str, Message], wanted: str | None) -> dict[str, Message] | None:
    """The messages of an agent or an assignment; None when nobody is wanted and not just one has some."""
    found = speakers(messages)
    if wanted is None:
        return dict(messages) if len(found) == 1 else None
    if not (chosen := _of(messages, wanted)):
        reason = f"those with messages are {', '.join(found)}" if found else "no agent has messages there"
        raise BadSetting(setting="AGENT", value=wanted, reason=reason)
    return chosen


def _of(messages: Mapping[str, Message], wanted: str) -> dict[str, Message]:
    """The messages of an agent, or of an assignment by its whole name or the last part of it."""
    return {
        name: held
        for name, held in messages.items()
        if wanted in (held.agent, held.task, (held.task or "").rpartition("/")[2])
    }


# As it was.


def _print(
    out: Screen, opened: Archive, row: Row, chosen: Mapping[str, Message], store: str | None, *, whole: bool
) -> None:
    rows = message_rows(opened, row, chosen)
    ChatPrinter(out, whole=whole).finish(conversation(opened, chosen, calls_at(opened, row)), rows)
    kept = [name for name in chosen if name in rows and not rows[name].pruned]
    if kept:
        last = rows[kept[-1]]
        hint = f"orchestra fork {last.run}@{last.seq}{option(store)}"
        out.hints((hint, "a new run that goes on from there"))


class _Speaker(NamedTuple):
    """An agent with its messages."""

    agent: str
    messages: list[Message]

    @property
    def model(self) -> str | None:
        """The model that answered it last."""
        return next((held.model for held in reversed(self.messages) if held.model), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "messages": len(self.messages),
            "model": self.model,
            "status": self.messages[-1].status,
        }


def _speakers(messages: Mapping[str, Message]) -> list[_Speaker]:
    found = speakers(messages).items()
    return [_Speaker(agent, [messages[name] for name in names]) for agent, names in found]


_COLUMNS = (
    Column[_Speaker]("agent", lambda each: each.agent, name=True, least=12),
    Column[_Speaker]("messages", lambda each: str(len(each.messages)), align="right"),
    Column[_Speaker]("last", lambda each: each.messages[-1].status, drop=2),
    Column[_Speaker]("model", lambda each: each.model or "", least=10, drop=1),
)


def _list(out: Screen, row: Row, messages: Mapping[str, Message], store: str | None) -> None:
    found = _speakers(messages)
    if not found:
        out.line(f"No agent of {row.run} has talked to a language model by snapshot {row.seq}.")
        return
    print_table(out, _COLUMNS, found)
    example = f"orchestra chat {row.run}@{row.seq} {found[0].agent}{option(store)}"
    out.hints((example, "one of these conversations"))


def _document(
    opened: Archive, row: Row, messages: Mapping[str, Message], chosen: Mapping[str, Message] | None
) -> dict[str, Any]:
    shown = chosen or {}
    rows = message_rows(opened, row, shown)
    said = conversation(opened, shown, calls_at(opened, row)) if shown else []
    return {
        "run": row.run,
        "seq": row.seq,
        "status": row.status,
        "agents": [each.to_json() for each in _speakers(messages)],
        "messages": [message_json(each, rows.get(each.name), opened) for each in said],
    }


# As it goes on.


def _follow(opened: Archive, run: RunId, agent: str | None, *, full: bool, as_json: bool) -> int:
    out = screen()
    printer = ChatPrinter(out, whole=full)
    seen, said, rows, known = -1, list[SpokenMessage](), dict[str, Row](), dict[str, SpokenMessage]()
    for row in looks(opened, run):
        if row.head == seen:
            continue
        seen = row.head
        newest = opened.newest(run)
        chosen = _choose_later(messages_at(opened, newest), agent)
        said = conversation(opened, chosen, calls_at(opened, newest))
        new = [each for each in said if known.get(each.name) != each]
        known.update((each.name, each) for each in new)
        rows |= message_rows(opened, newest, {each.name: each.held for each in new})
        if as_json:
            _write_lines(opened, new, rows)
        else:
            printer.show(said, rows)
    if agent is not None and not said:
        choose(messages_at(opened, opened.newest(run)), agent)  # raises that nobody of that name has any
    if not as_json:
        printer.finish(said, rows)
        out.line()
        out.line(*status_cell(shown_status(opened.store, row)), ("  nobody plays it now", "dim"))
    return code_of(row)


def _choose_later(messages: Mapping[str, Message], wanted: str | None) -> Mapping[str, Message]:
    """The messages of the one that is followed; it may have none yet. Nobody in particular: the first."""
    found = speakers(messages)
    if wanted is None:
        return {name: messages[name] for name in next(iter(found.values()), [])}
    return _of(messages, wanted)


def _write_lines(opened: Archive, new: Iterable[SpokenMessage], rows: Mapping[str, Row]) -> None:
    sys.stdout.writelines(json_text(message_json(each, rows.get(each.name), opened)) for each in new)
    sys.stdout.flush()
