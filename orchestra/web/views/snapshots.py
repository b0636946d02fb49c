"""Snapshots as JSON: one in full, what happened in some, and all of a run as columns."""

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final

import attrs

from orchestra.codec.document import Document
from orchestra.errors import DamageError, UnknownRun
from orchestra.history.annotations import open_annotation
from orchestra.history.archive import Archive, if_whole
from orchestra.history.describe import Described, Describer, event_json, main_event, sentence
from orchestra.history.lineage import jumps, lived_ranges, origin_of, target_of
from orchestra.history.pages import Broken, Pages
from orchestra.history.story import StoryEntry, Teller
from orchestra.ids import Digest, RunId, uuid_of
from orchestra.limits import WEB_RUNS_MAX
from orchestra.model.snapshot import Header, Headline
from orchestra.model.tree import Table, Vec
from orchestra.ports.store import Row, RowQuery, RunRow
from orchestra.web.views.common import Cached, CheckWanted, Json, always_wanted, attributes, fields
from orchestra.web.views.runs import Runs, metrics_json, value_form

Position = tuple[RunId, int]
"""A snapshot by its run and its number."""
MARKED, PRUNED, SEALED, ERROR, ROLLED_BACK, FORKED, PINNED, NOTE, BROKEN = (1 << bit for bit in range(9))
_NAMES: Final = ("seq", "at", "status", "phase", "triggers", "agents", "flags", "size")
_FLAGS: Final = {"error_encountered": ERROR, "failed": ERROR, "rolled_back": ROLLED_BACK, "forked": FORKED}
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
        key = (run.run, run.digest)
        stretches = if_whole(lambda: self._stretches.get(key, lambda: self._lived(run)), None)
        return stretches is not None and not any(seq in stretch for stretch in stretches)

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
        found = Describer(self._archive).describe(row)
        run = self._archive.run(row.run)
        undone = self._lineages.is_undone(run, row.seq)
        return {
            **reference_json(row),
            **facts_json(found),
            "events": self._events(row, found),
            **self._content(row, found, undone),
            "undone": undone,
            "forks": [each["run"] for each in self._runs.forks(run) if each["seq"] == row.seq],
        }

    def _events(self, row: Row, found: Described) -> list[Json]:
        """What happened, in sentences; of the end of a wait the state knows what was asked and answered."""
        lines = found.header.events if found.header is not None else ()
        part: Document = {}
        if not row.pruned and any(line.kind == "wait_closed" for line in lines):
            part = if_whole(lambda: self._archive.part_of(row, ("waits",)), {})
        waits = part.get("waits", Table())
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
                    before = (row.run, row.seq - 1) if row.seq else None  # each run counts what it spends
                    metrics = metrics_since(held, self._part(before, "metrics") or {})
                    earlier, made = self._part(base, "decisions"), held.get("decisions", Vec())
                    known = len(made) if earlier is None else len(earlier.get("decisions", ()))
                    decisions = [decision_json(self._archive, row.seq, each, undone) for each in made[known:]]
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


def reference_json(row: Row) -> Json:
    """A snapshot as people write it, its run and its number."""
    return {"reference": f"{row.run}@{row.seq}", "run": row.run, "seq": row.seq}


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
    return None if row.pruned else origin_of(archive, row)


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


# --- what happened in them


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
    digest, at = (None, 0) if isinstance(found, Broken) else (found.digest.hex()[:12], found.at)
    return {"seq": found.seq, "digest": digest, "at": at, **header_json(*archive.try_header(found))}


# --- all of a run as columns, with words coded as numbers: ten thousand are a few numbers each, not objects


def columns(
    archive: Archive,
    run: RunRow,
    query: RowQuery,
    forks: Iterable[Json],
    check_wanted: CheckWanted = always_wanted,
) -> Json:
    """The rows that a query asks for, as columns; `forks` are the runs that began at one of them."""
    made = _Columns()
    for found in Pages(archive.store, query, run.head).stretches():
        check_wanted()
        if isinstance(found, Broken):
            made.add_broken(found.seq)
        else:
            made.add(found)
    return {"run": run.run, "head": run.head, **made.json(_other_flags(archive, run, forks))}


def _other_flags(archive: Archive, run: RunRow, forks: Iterable[Json]) -> dict[int, int]:
    """What is said about snapshots outside their rows: pins, notes, and that another run began there."""
    found: dict[int, int] = {fork["seq"]: FORKED for fork in forks}
    for annotation in archive.store.annotations(run.run):
        with suppress(DamageError):
            remark = open_annotation(annotation, archive.framer)
            found[remark.seq] = found.get(remark.seq, 0) | (PINNED if remark.kind == "pin" else NOTE)
    return found


@cache
def _trigger_flags(triggers: tuple[str, ...]) -> int:
    """What triggers say in flags."""
    return sum({_FLAGS.get(each, 0) for each in triggers})


class _Words(dict[Any, int]):
    """Codes words as numbers, in the order in which they are met."""

    def __missing__(self, word: Any) -> int:
        code = self[word] = len(self)
        return code


class _Columns:
    def __init__(self) -> None:
        self._no = 0
        self._words = {name: _Words() for name in ("status", "phase", "triggers", "agents")}
        self._held: dict[str, list[int]] = {name: [] for name in _NAMES}

    def add(self, rows: list[Row]) -> None:
        """Some rows more, a column at a time."""
        held, words, phases = self._held, self._words, self._words["phase"]
        status, triggers, agents = words["status"], words["triggers"], words["agents"]
        held["seq"] += [row.seq for row in rows]
        held["at"] += [row.at for row in rows]
        held["status"] += [status[row.status] for row in rows]
        held["phase"] += [-1 if row.phase is None else phases[row.phase] for row in rows]
        held["triggers"] += [triggers[row.triggers] for row in rows]
        held["agents"] += [agents[row.agents] for row in rows]
        held["size"] += [row.size for row in rows]
        held["flags"] += [
            _trigger_flags(row.triggers)
            | row.marked * MARKED
            | row.pruned * PRUNED
            | (row.sealed_at == row.seq) * SEALED
            for row in rows
        ]
        self._no = max([self._no, *(row.no for row in rows)])

    def add_broken(self, seq: int) -> None:
        """A row that cannot be read: all that is known of it is that it should be there."""
        words, at = self._words, self._held["at"][-1] if self._held["at"] else 0
        status, triggers, agents = words["status"][""], words["triggers"][()], words["agents"][()]
        for name, value in zip(_NAMES, (seq, at, status, -1, triggers, agents, BROKEN, 0), strict=True):
            self._held[name].append(value)

    def json(self, extra: Mapping[int, int]) -> Json:
        """The columns, and the words that their numbers stand for."""
        seqs, flags = self._held["seq"], self._held["flags"]
        if extra:
            flags = [flag | extra.get(seq, 0) for seq, flag in zip(seqs, flags, strict=True)]
        is_complete = bool(seqs) and seqs[-1] - seqs[0] + 1 == len(seqs)
        return {
            "no": self._no,
            "count": len(seqs),
            "first": seqs[0] if seqs else None,
            "columns": {**self._held, "flags": flags, "seq": None if is_complete else seqs},
            "words": {name: list(words) for name, words in self._words.items()},
        }
