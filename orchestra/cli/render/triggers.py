"""Snapshots in words, with colours; the words themselves come from `orchestra.history.describe`."""

from typing import Final

from orchestra.cli.render.screen import Line, Span, Style, print_json, screen
from orchestra.cli.render.times import age, full
from orchestra.history.archive import Archive
from orchestra.history.describe import Described, Describer, described_json, main_event, sentence
from orchestra.ports.store import Row

_COLOURS: Final[dict[str, Style]] = {
    "error_encountered": "bad",
    "failed": "bad",
    "rolled_back": "warn",
    "forked": "warn",
    "recovered": "warn",
    "paused": "warn",
    "user_question": "warn",
    "dependency_request": "warn",
    "rate_limited": "warn",
    "decision": "accent",
    "completed": "good",
}


def trigger_spans(triggers: tuple[str, ...], *, short: bool) -> Line:
    """Triggers, the first of them only when it has to be short."""
    ranked = sorted(triggers, key=lambda each: each not in _COLOURS)
    if short and len(ranked) > 1:
        return [(ranked[0], _COLOURS.get(ranked[0], "")), (f" +{len(ranked) - 1}", "dim")]
    spans: list[Span] = []
    for each in triggers:
        spans += [(", " if spans else "", "dim"), (each, _COLOURS.get(each, ""))]
    return spans


def about(found: Described) -> Line:
    """A snapshot in one line: when, who, what happened."""
    event = main_event(found.header) if found.header else None
    who = event.who if event else None
    return [
        (full(found.row.at), ""),
        (f"  {age(found.row.at)} ago  ", "dim"),
        (f"{who}  " if who else "", "accent"),
        (sentence(event) if event else found.damage or "", "bad" if found.damage else ""),
    ]


def print_outcome(reader: Archive, row: Row, what: str, as_json: bool) -> None:
    """Say what became of a snapshot; as JSON, the snapshot as it is now."""
    found = Describer(reader).describe(reader.row(row.run, row.seq))
    if as_json:
        print_json(described_json(found))
    else:
        screen().line((found.reference, "bold"), f" {what}.")
