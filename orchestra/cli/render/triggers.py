"""Snapshots in words, with colours; the words themselves come from `orchestra.history.describe`."""

from typing import Final

from orchestra.cli.render.screen import Line, Span, Style
from orchestra.cli.render.times import age, full
from orchestra.history.describe import Described, main_event, sentence

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
        separator: Span = (", " if spans else "", "dim")
        spans += [separator, (each, _COLOURS.get(each, ""))]
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
