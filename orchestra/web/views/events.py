"""What happened in snapshots, as JSON: headlines, sentences, and rows of the list."""

from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.describe import event_json, main_event, sentence
from orchestra.history.pages import Broken, Pages
from orchestra.model.snapshot import Header, Headline
from orchestra.ports.store import Row, RowQuery, RunRow
from orchestra.web.views.fields import Json, attributes


def event_with_sentence(line: Headline) -> Json:
    """An event with the sentence that people read."""
    return {**event_json(line), "sentence": sentence(line)}


def header_json(header: Header | None, damage: str | None) -> Json:
    """What a snapshot is about and what happened in it, as far as its header can be read."""
    main = None if header is None else main_event(header)
    return {
        "main": "" if main is None else sentence(main, brief=True),
        "events": [event_with_sentence(line) for line in header.events] if header else [],
        **attributes(header, "confidence", "generation"),
        "damage": damage,
    }


def headlines(archive: Archive, run: RunRow, first: int, last: int) -> Json:
    """Rows of the list of snapshots."""
    pages = Pages(archive.store, RowQuery(run=run.run, first=first, last=last), run.head)
    return {"first": first, "rows": [row_json(archive, found) for found in pages]}


def row_json(archive: Archive, found: Row | Broken) -> Json:
    """A row of the list: when, what happened, and what is wrong with it."""
    if isinstance(found, Broken):
        return {"seq": found.seq, "digest": None, "at": 0, **header_json(None, found.reason)}
    try:
        said = header_json(archive.header(found), None)
    except DamageError as damage:
        said = header_json(None, str(damage))
    return {"seq": found.seq, "digest": found.digest.hex()[:12], "at": found.at, **said}
