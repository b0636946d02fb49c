"""One snapshot as JSON: what it is, what it builds on, what was decided and spent in it."""

import json
import threading
from contextlib import suppress
from typing import Final

import attrs

from orchestra.codec.document import Document
from orchestra.errors import DamageError, UnknownRun
from orchestra.history.archive import Archive
from orchestra.history.describe import Described, Describer
from orchestra.history.lineage import jumps, lived_ranges, target_of
from orchestra.history.story import StoryEntry, Teller
from orchestra.ids import Digest, RunId, uuid_of
from orchestra.limits import WEB_RUNS_MAX
from orchestra.model.snapshot import Headline
from orchestra.model.tree import Table, Vec
from orchestra.ports.store import Row, RunRow
from orchestra.web.views.cache import Cached
from orchestra.web.views.events import event_with_sentence
from orchestra.web.views.fields import Json, attributes, fields
from orchestra.web.views.runs import Runs, metrics_json, value_form

Position = tuple[RunId, int]
"""A snapshot by its run and its number."""
_ADDED: Final = ("tokens", "cost_micros", "api_calls", "elapsed_us")


class _Jumps:
    """The rollbacks of one run, as far as they were looked for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.upto = -1
        self.known: list[tuple[int, int]] = []


class Lineages:
    """Tells what was undone. Rollbacks are looked for once, then only among new snapshots."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._jumps: Cached[tuple[RunId, int], _Jumps] = Cached(WEB_RUNS_MAX)
        self._stretches: Cached[tuple[RunId, Digest], list[range]] = Cached(WEB_RUNS_MAX)

    def is_undone(self, run: RunRow, seq: int) -> bool:
        """Whether the head does not build on a snapshot, because a later rollback went behind it."""
        try:
            stretches = self._stretches.get((run.run, run.digest), lambda: self._lived(run))
        except DamageError:
            return False
        return not any(seq in stretch for stretch in stretches)

    def _lived(self, run: RunRow) -> list[range]:
        found = self._jumps.get((run.run, run.created_at), _Jumps)
        with found.lock:
            found.known += jumps(self._archive, run.run, found.upto + 1)
            found.upto = max(found.upto, run.head, *(seq for seq, _ in found.known[-1:]))
            return lived_ranges([jump for jump in found.known if jump[0] <= run.head], run.head)


class Snapshots:
    """Single snapshots of runs."""

    def __init__(self, archive: Archive, runs: Runs) -> None:
        self._archive, self._runs = archive, runs
        self._lineages = Lineages(archive)

    def json(self, row: Row) -> Json:
        """A snapshot without its state."""
        found = Describer(self._archive).describe(row)
        run = self._archive.run(row.run)
        undone = self._lineages.is_undone(run, row.seq)
        return {
            "reference": found.reference,
            "run": row.run,
            "seq": row.seq,
            **facts_json(found),
            "events": self._events(row, found),
            **self._content(row, found, undone),
            "undone": undone,
            "forks": [each["run"] for each in self._runs.forks(run) if each["seq"] == row.seq],
        }

    def _events(self, row: Row, found: Described) -> list[Json]:
        """What happened, in sentences; of the end of a wait the state knows what was asked and answered."""
        lines = found.header.events if found.header is not None else ()
        waits: Table[Document] = Table()
        if not row.pruned and any(line.kind == "wait_closed" for line in lines):
            with suppress(DamageError):
                waits = self._archive.part_of(row, ("waits",)).get("waits", Table())
        return [event_with_sentence(line) | self._answer(line, waits) for line in lines]

    def _answer(self, line: Headline, waits: Table[Document]) -> Json:
        wait = waits.get(line.what) if line.kind == "wait_closed" else None
        if wait is None or wait["kind"] != "question":
            return {}
        answer = json.dumps(value_form(self._archive, wait.get("answer"), "answer"), ensure_ascii=False)
        return {"sentence": f"answered: {answer} (to: {wait.get('text', '')})"}

    def _content(self, row: Row, found: Described, undone: bool) -> Json:
        """What only its state tells."""
        base, damage = None, found.damage
        decisions: list[Json] = []
        metrics: Json | None = None
        if found.header is not None:
            try:
                base = builds_on(self._archive, row)
                if not row.pruned:
                    held = self._archive.part_of(row, ("decisions", "metrics"))
                    before = (row.run, row.seq - 1) if row.seq else base  # what was spent is never taken back
                    metrics = metrics_since(held, self._part(before, "metrics") or {})
                    decisions = self._decisions(row, held, self._part(base, "decisions"), undone)
            except DamageError as error:
                damage = str(error)
        return {
            "decisions": decisions,
            "metrics": metrics,
            "verified": damage is None and not row.pruned,
            "damage": damage,
            "builds_on": position_json(base),
        }

    def _part(self, at: Position | None, name: str) -> Document | None:
        """A field of the state at another snapshot; None when it cannot be read."""
        try:
            return {} if at is None else self._archive.part_of(self._archive.row(*at), (name,))
        except (DamageError, UnknownRun):
            return None

    def _decisions(self, row: Row, held: Document, earlier: Document | None, undone: bool) -> list[Json]:
        made: Vec[Document] = held.get("decisions", Vec())
        known = len(made) if earlier is None else len(earlier.get("decisions", ()))
        return [decision_json(self._archive, row.seq, each, undone) for each in made[known:]]


def position_json(position: Position | None) -> Json | None:
    """A snapshot by its run and its number."""
    return None if position is None else {"run": position[0], "seq": position[1]}


def metrics_since(held: Document, before: Document) -> Json:
    """What was spent up to a state, and since an earlier one."""
    total, earlier = metrics_json(held.get("metrics", {})), metrics_json(before.get("metrics", {}))
    return total | {"added": {name: total[name] - earlier[name] for name in _ADDED}}


def decision_json(
    archive: Archive, seq: int, held: Document, undone: bool, *, inherited: bool = False
) -> Json:
    """A decision, with what else was considered; one that a fork brought along is `inherited`."""
    return {
        "seq": seq,
        **fields(held, "at", "agent", "kind", "description", rationale="", confidence=None),
        "alternatives": list(held.get("alternatives", ())),
        "details": value_form(archive, held.get("details"), "details"),
        "undone": undone,
        "inherited": inherited,
    }


def builds_on(archive: Archive, row: Row) -> Position | None:
    """The snapshot whose state a snapshot goes on from: across rollbacks and forks."""
    if "rolled_back" in row.triggers:
        return row.run, target_of(archive.header(row))
    if row.seq > 0:
        return row.run, row.seq - 1
    origin = None if row.pruned else archive.part_of(row, ("origin",)).get("origin")
    if row.parent is None or origin is None or archive.store.run(RunId(origin["run"])) is None:
        return None
    return RunId(origin["run"]), int(origin["seq"])


def decisions(archive: Archive, run: RunRow) -> Json:
    """Every decision of a run, also those that were undone, oldest first; a fork begins with its origin's."""
    told = Teller(archive, run).entries(("decision",))
    entries = [each for each in told if each.event.kind == "decision_made"]
    before = inherited_decisions(archive, run, own=sum(each.seq == 0 for each in entries))
    return {"decisions": [*before, *(_entry_json(archive, each) for each in entries)]}


def inherited_decisions(archive: Archive, run: RunRow, *, own: int) -> list[Json]:
    """The decisions that a fork began with; `own` are those that its first snapshot made itself."""
    first = archive.row(run.run, 0)
    if first.parent is None or first.pruned:
        return []
    held: Vec[Document] = archive.part_of(first, ("decisions",)).get("decisions", Vec())
    return [decision_json(archive, 0, each, False, inherited=True) for each in held[: len(held) - own]]


def _entry_json(archive: Archive, entry: StoryEntry) -> Json:
    event = entry.event
    if entry.decision is not None:
        held = attrs.asdict(entry.decision, recurse=False)
    else:
        held = {"at": entry.at, "agent": event.who or "", "kind": "", "description": event.what}
        held["confidence"] = dict(event.figures).get("confidence")
    return decision_json(archive, entry.seq, held, entry.undone)


def facts_json(found: Described) -> Json:
    """What a snapshot's row, header and remarks tell of it."""
    row = found.row
    return {
        "digest": row.digest.hex(),
        "uuid": str(uuid_of(row.digest)),
        "parent": row.parent.hex() if row.parent else None,
        **attributes(row, "at", "status", "phase", "triggers", "marked", "agents", "size", "pruned"),
        **attributes(found.header, "ordinal", "generation", "confidence"),
        "sealed": row.sealed_at == row.seq,
        "pin": found.pin.text if found.pin else None,
        "note": found.note.text if found.note else None,
    }
