"""What happened in snapshots, as JSON: headlines, sentences, and rows of the list."""

from typing import Any

from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.describe import event_json, main_event, sentence
from orchestra.history.pages import Broken, Pages
from orchestra.model.snapshot import Header, Headline
from orchestra.ports.store import Row, RowQuery, RunRow


def event_with_sentence(line: Headline) -> dict[str, Any]:
    """An event with the sentence that people read."""
    return {**event_json(line), "sentence": sentence(line)}


def main_sentence(header: Header) -> str:
    """What a snapshot is about, in a sentence."""
    line = main_event(header)
    return "" if line is None else sentence(line, brief=True)


def headlines(archive: Archive, run: RunRow, first: int, last: int) -> dict[str, Any]:
    """Rows of the list of snapshots."""
    pages = Pages(archive.store, RowQuery(run=run.run, first=first, last=last), run.head)
    return {"first": first, "rows": [row_json(archive, found) for found in pages]}


def row_json(archive: Archive, found: Row | Broken) -> dict[str, Any]:
    """A row of the list: when, what happened, and what is wrong with it."""
    if isinstance(found, Broken):
        return _unread(found.seq, None, 0, found.reason)
    try:
        header = archive.header(found)
    except DamageError as damage:
        return _unread(found.seq, found.digest.hex()[:12], found.at, str(damage))
    return {
        "seq": found.seq,
        "digest": found.digest.hex()[:12],
        "at": found.at,
        "main": main_sentence(header),
        "events": [event_with_sentence(line) for line in header.events],
        "confidence": header.confidence,
        "generation": header.generation,
        "damage": None,
    }


def _unread(seq: int, digest: str | None, at: int, damage: str) -> dict[str, Any]:
    return {
        "seq": seq,
        "digest": digest,
        "at": at,
        "main": "",
        "events": [],
        "confidence": None,
        "generation": None,
        "damage": damage,
    }
