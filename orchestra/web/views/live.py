"""What a new snapshot brings, for whoever follows a run."""

import json
from typing import Any, Final

import attrs

from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.model.snapshot import Header
from orchestra.ports.store import Row
from orchestra.web.views.events import event_with_sentence, main_sentence

_STREAMED: Final = frozenset({"text_emitted", "message_streamed"})


@attrs.frozen
class Happened:
    """A snapshot that was taken, with the commit number it has."""

    no: int
    run: RunId
    event: bytes  # as it is sent, to however many listen


def row_event(archive: Archive, row: Row) -> Happened:
    """A row as it is told to listeners; damage is told, not raised."""
    header, damage, text = None, None, list[dict[str, Any]]()
    try:
        header = archive.header(row)
        text = _streamed(archive, row, header)
    except DamageError as error:
        damage = str(error)
    said: dict[str, Any] = {
        "no": row.no,
        "run": row.run,
        "seq": row.seq,
        "at": row.at,
        "status": row.status,
        "phase": row.phase,
        "triggers": list(row.triggers),
        "agents": list(row.agents),
        "marked": row.marked,
        "size": row.size,
        "sealed": row.sealed_at == row.seq,
        "events": [event_with_sentence(line) for line in header.events] if header else [],
        "main": main_sentence(header) if header else "",
        "confidence": header.confidence if header else None,
        "generation": header.generation if header else None,
        "text": text,
        "damage": damage,
    }
    return Happened(row.no, row.run, server_event("snapshot", said, row.no))


def server_event(name: str, told: dict[str, Any], no: int | None = None) -> bytes:
    """A server-sent event; its data is one line to every reader, however it tells the end of one."""
    number = b"" if no is None else b"id: %d\n" % no
    data = json.dumps(told, separators=(",", ":"), allow_nan=False).encode()
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), number, data)


def _streamed(archive: Archive, row: Row, header: Header) -> list[dict[str, Any]]:
    """Text that agents wrote in this turn, as it came."""
    if row.pruned or _STREAMED.isdisjoint(line.kind for line in header.events):
        return []
    found: list[dict[str, Any]] = []
    for operation in archive.step(row).operations:
        match operation:
            case ["append" | "set", ["agents", str(agent), "partial"], str(text)]:
                found.append({"agent": agent, "message": None, "append": text})
            case ["append", ["messages", str(message), "parts", int(), "text"], str(text)]:
                found.append({"agent": None, "message": message, "append": text})
            case _:
                pass
    return found
