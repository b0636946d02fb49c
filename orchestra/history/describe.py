"""Snapshots in words: what happened, who did it, and the same as JSON."""

import os
import re
from typing import Any, Final

import attrs

from orchestra.errors import DamageError
from orchestra.history.annotations import Remark, annotations_of
from orchestra.history.archive import Archive
from orchestra.ids import Instant, RunId, iso, uuid_of
from orchestra.limits import HEADLINE_CHARS
from orchestra.model.snapshot import Header, Headline
from orchestra.ports.store import Row

_PLAIN: Final = """
    run_started task_planned agent_launched milestone_reached task_failed
    context_contributed criterion_scored spent run_paused run_resumed run_ended
"""
"""Kinds of events whose last word says it."""
_VERBS: Final = {
    **{kind: kind.rpartition("_")[2] for kind in _PLAIN.split()},
    "phase_started": "phase begins",
    "phase_completed": "phase done",
    "text_emitted": "wrote",
    "task_completed": "finished",
    "decision_made": "decided",
    "confidence_reported": "confidence",
    "message_posted": "message",
    "message_streamed": "wrote",
    "output_written": "output",
    "evaluation_completed": "judged",
    "wait_opened": "waits",
    "wait_closed": "wait over",
    "effect_intended": "about to",
    "effect_settled": "did",
    "snapshot_requested": "snapshot",
    "forked": "forked from",
    "more": "and more",
}
_ANSWERS: Final = {
    "streaming": "asks {}",
    "complete": "has the answer of {}",
    "interrupted": "was interrupted while {} answered",
    "error": "got no whole answer from {}",
}
_CALLS: Final = {
    "waiting": "wants to call {}",
    "started": "called {}",
    "done": "{} done",
    "failed": "{} failed",
    "refused": "{} was refused",
}
_TELLING: Final = """
    task_failed rolled_back run_ended forked wait_opened evaluation_completed decision_made
    task_completed phase_started phase_completed agent_launched milestone_reached
"""
"""Kinds of events by how much they say about a turn; the others say less."""
_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_FOLDED: Final = re.compile(r"… \d+ frames? of ")
_CHAINED: Final = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
STACK_LINES: Final = 12
"""How many lines of a stack are shown."""
_INSTANTS: Final = ("at", "timestamp", "until")
_BRIEFLY_UNSAID: Final = frozenset({"confidence", "attempt"})


def sentence(line: Headline, *, brief: bool = False) -> str:
    """A headline as a sentence, e.g. `decided: go on`; `brief` leaves out confidence and attempts."""
    if (talk := talk_of(line)) is not None:
        text = talk[0]
    else:
        verb, what = _verb_and_object(line)
        text = f"{verb}: {what}" if what else verb
    shown = [pair for pair in line.figures if not (brief and pair[0] in _BRIEFLY_UNSAID)]
    figures = ", ".join(f"{name} {figure(value)}" for name, value in shown)
    return f"{text} ({figures})" if figures else text


def _verb_and_object(line: Headline) -> tuple[str, str]:
    if line.kind == "task_retired":  # it says itself what became of the task
        task, _, outcome = line.what.rpartition(": ")
        return outcome, task
    verb = _VERBS.get(line.kind, line.kind.replace("_", " "))
    asked = line.kind == "wait_closed"  # of a question its digest is left out
    return verb, line.what.partition("?")[0] if asked else headline_text(line)


def talk_of(line: Headline) -> tuple[str, str] | None:
    """What a model is asked, answers or calls, in words, and its status; None for anything else."""
    if line.kind == "message_streamed" and line.who is not None:
        return "wrote", "streaming"  # its name is that of the assignment
    if line.kind == "message_posted":
        _, status, model, name = [*line.what.split(" ", 3), "", "", ""][:4]
        return (_ANSWERS[status].format(model), status) if name and status in _ANSWERS else None
    if line.kind != "tool_call_changed":
        return None
    tool, status, why = [*headline_text(line).split(": ", 2), "", ""][:3]
    words = _CALLS.get(status, f"{{}} {status}").format(tool)
    return (f"{words}: {why}" if why else words), status


def headline_text(line: Headline) -> str:
    """The text of a headline; one that was cut ends with a whole word and `…`."""
    if len(line.what) < HEADLINE_CHARS:
        return line.what
    words = line.what.rpartition(" ")[0] or line.what
    return f"{words.rstrip(' ,;:.')}…"


def figure(value: int | float) -> str:
    """A number with as many digits as it needs."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}".rstrip("0").rstrip(".")


def main_event(header: Header) -> Headline | None:
    """The event that says most about a snapshot."""
    ranks = {kind: rank for rank, kind in enumerate(_TELLING.split())}
    return min(header.events, key=lambda line: ranks.get(line.kind, len(ranks)), default=None)


def stack_lines(stack: str, working_dir: str = "") -> list[str]:
    """A traceback by lines, innermost frame first, files relative to `working_dir`; other text as it is."""
    *earlier, (_, told) = _errors(stack, f"{working_dir}/" if working_dir else "")
    for said, frames in reversed(earlier):
        told = [*told, f"before that, {said}", *frames]
    told = told or [line for line in stack.splitlines() if line.strip()][-STACK_LINES:]
    more = len(told) - STACK_LINES
    return told if more <= 0 else [*told[:STACK_LINES], f"… {more} more"]


def _errors(stack: str, base: str) -> list[tuple[str, list[str]]]:
    """The errors of a traceback, each with what it says and its frames, the innermost first."""
    errors: list[tuple[str, list[str]]] = [("", [])]
    for line in stack.splitlines():
        said, frames = errors[-1]
        bare = line.strip(" |")
        if bare in _CHAINED:
            errors.append(("", []))
        elif found := _FRAME.match(bare):
            name = f" in {found['name']}" if found["name"] else ""
            file = os.path.normpath(found["file"]).removeprefix(base)
            frames.insert(0, f"{file}:{found['line']}{name}")
        elif _FOLDED.match(bare):
            frames.insert(0, bare)
        elif frames and not said and not line.startswith(" "):
            errors[-1] = bare, frames
        elif frames and not said and bare.strip("^~ ") and ": " not in frames[0]:
            frames[0] += f": {bare}"  # the code that stands there
    return [(said, sorted(frames, key=lambda line: line.startswith("…"))) for said, frames in errors]


@attrs.frozen(kw_only=True)
class Described:
    """A snapshot's row with what can be read of it besides its state."""

    row: Row
    header: Header | None  # None when it is damaged
    damage: str | None = None
    pin: Remark | None = None
    note: Remark | None = None

    @property
    def reference(self) -> str:
        return f"{self.row.run}@{self.row.seq}"


class Describer:
    """Describes snapshots; the pins and notes of a run are read once."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._remarks: dict[RunId, dict[tuple[int, str], Remark]] = {}
        self.damage: str | None = None
        """Why the pins and notes of a run could not be read."""

    def describe(self, row: Row, damage: str | None = None) -> Described:
        """A row with its header, pin and note; damage is told, not raised. It may be known already."""
        header, damage = self._archive.try_header(row) if damage is None else (None, damage)
        remarks = self._remarks_of(row.run)
        pin, note = remarks.get((row.seq, "pin")), remarks.get((row.seq, "note"))
        return Described(row=row, header=header, damage=damage, pin=pin, note=note)

    def _remarks_of(self, run: RunId) -> dict[tuple[int, str], Remark]:
        if run not in self._remarks:
            try:
                found = annotations_of(self._archive.store, self._archive.framer, run)
            except DamageError as error:
                self.damage, found = str(error), []
            self._remarks[run] = {(remark.seq, remark.kind): remark for remark in found}
        return self._remarks[run]


def described_json(found: Described) -> dict[str, Any]:
    """A snapshot as JSON, without its state."""
    row, header = found.row, found.header
    return {
        "reference": found.reference,
        **pick(row, "run seq digest"),
        "uuid": str(uuid_of(row.digest)),
        **pick(row, "parent at status phase triggers marked agents"),
        "confidence": header.confidence if header else None,
        "generation": header.generation if header else None,
        "events": [event_json(line) for line in header.events] if header else [],
        **pick(row, "size pruned"),
        "pinned": found.pin is not None,
        "note": found.note.text if found.note else None,
        "damage": found.damage,
    }


def event_json(line: Headline) -> dict[str, Any]:
    """A headline as JSON."""
    return {"kind": line.kind, "who": line.who, "what": line.what, "figures": dict(line.figures)}


def pick(record: Any, names: str) -> dict[str, Any]:
    """Fields of a record under these names, in this order; `key=field` gives a field another name.

    Instants become ISO text, digests hexadecimal and tuples lists.
    """
    pairs = (name.partition("=") for name in names.split())
    return {key: _plain(key, getattr(record, field or key)) for key, _, field in pairs}


def _plain(key: str, held: Any) -> Any:
    if isinstance(held, bytes):
        return held.hex()
    if isinstance(held, int) and (key in _INSTANTS or key.endswith("_at")):
        return iso(Instant(held))
    return list(held) if isinstance(held, tuple) else held
