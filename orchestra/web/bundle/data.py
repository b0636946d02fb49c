"""What a bundle holds: all that the page asks a server for about one run, gathered in one walk over it."""

import base64
import time
from contextlib import suppress
from typing import Any, Final

from orchestra.codec.document import Document
from orchestra.errors import DamageError
from orchestra.history.archive import Archive, advance_document
from orchestra.history.blame import AUTHORS
from orchestra.history.describe import Described, Describer
from orchestra.history.lineage import target_of
from orchestra.history.pages import Broken, Pages
from orchestra.history.verify.verifier import verify_run
from orchestra.ids import RunId
from orchestra.limits import BUNDLE_OUTPUT_BYTES, BUNDLE_STATE_BYTES
from orchestra.model.tree import Table, Vec
from orchestra.ports.store import Row, RowQuery, RunRow
from orchestra.web.bundle.states import States, whole_form
from orchestra.web.errors import BundleTooLarge
from orchestra.web.views.columns import columns
from orchestra.web.views.events import row_json
from orchestra.web.views.fields import Json
from orchestra.web.views.forms import as_value
from orchestra.web.views.outline import Outlines
from orchestra.web.views.runs import Runs, info_json, outputs_of, verify_json, waits_of
from orchestra.web.views.snapshots import (
    Lineages,
    builds_on,
    decision_json,
    facts_json,
    inherited_decisions,
    metrics_since,
    position_json,
)
from orchestra.web.views.workflow import workflow_json

FORMAT: Final = 1
_INFO: Final = {"store": "this file", "read_only": True, "actions": False, "bundle": True}
_UNREAD: Final[Json] = {
    **dict.fromkeys(("digest", "uuid", "parent", "phase", "ordinal", "generation", "confidence")),
    **dict.fromkeys(("pin", "note", "metrics", "builds_on")),
    **dict.fromkeys(("marked", "pruned", "sealed", "verified", "undone"), False),
    **dict.fromkeys(("triggers", "agents", "decisions", "forks"), ()),
    "at": 0,
    "status": "",
    "size": 0,
}
"""A snapshot of which nothing can be told."""


def gather_run(archive: Archive, run: RunId, state_bytes: int = BUNDLE_STATE_BYTES) -> Json:
    """The data of a run's bundle; raises `BundleTooLarge`."""
    row = archive.run(run)
    walk = _Walk(archive, row)
    walk.take_all(state_bytes)
    runs = Runs(archive)
    base, held = walk.base(), Document()
    with suppress(DamageError):
        held = archive.document_of(archive.row(row.run, row.head))
    return {
        "format": FORMAT,
        "info": info_json(archive, **_INFO, now=time.time_ns() // 1000),
        "run": runs.details(row, playing=False),
        "snapshots": columns(archive, row, RowQuery(run=row.run, content=False), runs.forks(row)),
        "outline": _outline(archive, row),
        "headlines": walk.headlines,
        "details": walk.details,
        "states": walk.states.full,
        "patches": walk.states.patches,
        "base": None if base is None else position_json((base.run, base.seq)),
        "base_state": None if base is None else whole_form(archive.document_of(base), archive.loader),
        "authors": {field: list(kinds) for field, kinds in AUTHORS.items()},
        "decisions": {"decisions": _decisions(archive, row, walk.details)},
        "questions": {"waits": waits_of(archive, row.run, held, only_open=False)},
        "outputs": _outputs(archive, held),
        "workflow": workflow_json(archive, row),
        "family": runs.family(row.family),
        "verify": verify_json(verify_run(archive, row.run)),
    }


def _outline(archive: Archive, row: RunRow) -> Json:
    outlines, upto = Outlines(archive), -1
    while (found := outlines.json(row, upto))["more"]:
        upto = found["upto"]
    return outlines.json(row, -1)


def _outputs(archive: Archive, held: Document) -> list[Json]:
    files: Table[Document] = held.get("outputs", Table())
    return [
        found | {"content": _content(archive, files[found["path"]].get("content"), found["size"])}
        for found in outputs_of(held)
    ]


def _content(archive: Archive, held: Any, size: int) -> str | None:
    if held is None or size > BUNDLE_OUTPUT_BYTES:
        return None
    try:
        content = archive.value(as_value(held))
    except DamageError:
        return None
    data = content.encode() if isinstance(content, str) else content
    return base64.b64encode(data).decode() if isinstance(data, bytes) else None


class _Walk:
    """Goes over the snapshots of a run once, oldest first."""

    def __init__(self, archive: Archive, run: RunRow) -> None:
        self._archive, self._run = archive, run
        self._describer = Describer(archive)
        self._lineages = Lineages(archive)
        self._forks = Runs(archive).forks(run)
        self._document: Document | None = None
        self._before: Document = {}  # the newest state so far, for what was spent since
        self._decided: dict[int, int] = {}
        self._first: Row | None = None
        self.states = States(archive.loader)
        self.headlines: list[Json] = []
        self.details: list[Json] = []

    def take_all(self, state_bytes: int) -> None:
        """Take every snapshot; raises `BundleTooLarge`."""
        for found in Pages(self._archive.store, RowQuery(run=self._run.run), self._run.head):
            self.headlines.append(row_json(self._archive, found))
            if isinstance(found, Broken):
                self.states.skip(found.reason, pruned=False)
                self.details.append(_UNREAD | {"damage": found.reason})
                self._document = None
            else:
                self._take(found)
            if self.states.size > state_bytes:
                raise BundleTooLarge(run=self._run.run, size=self.states.size, limit=state_bytes)

    def base(self) -> Row | None:
        """The snapshot that the first one builds on, in another run."""
        place = None if self._first is None else builds_on(self._archive, self._first)
        return None if place is None else self._archive.row(*place)

    def _take(self, row: Row) -> None:
        if row.seq == 0:
            self._first = row
        described = self._describer.describe(row)
        damage = described.damage
        try:
            self._document = self._next(row)
            self.states.add(row.seq, self._document, last=row.seq == self._run.head)
        except DamageError as error:
            damage = damage or (None if row.pruned else str(error))
            self._document = None
            self.states.skip(str(error), pruned=row.pruned)
        self.details.append(self._detail(described, damage))

    def _next(self, row: Row) -> Document:
        if self._document is None or row.sealed_at == row.seq:  # after a rollback there is no patch to follow
            return self._archive.document_of(row)
        return advance_document(self._document, self._archive.step(row))

    def _detail(self, found: Described, damage: str | None) -> Json:
        row, before = found.row, self._before
        self._before = before if self._document is None else self._document
        return {
            **facts_json(found),
            "decisions": self._decisions(found),
            "metrics": None if self._document is None else metrics_since(self._document, before),
            "verified": damage is None and not row.pruned,
            "damage": damage,
            "builds_on": self._builds_on(found),
            "undone": self._lineages.is_undone(self._run, row.seq),
            "forks": [each["run"] for each in self._forks if each["seq"] == row.seq],
        }

    def _base_seq(self, found: Described) -> int:
        """The snapshot of this run that one builds on; -1 is none."""
        if found.header is not None and "rolled_back" in found.row.triggers:
            return target_of(found.header)
        return found.row.seq - 1

    def _builds_on(self, found: Described) -> Json | None:
        seq = self._base_seq(found)
        if seq >= 0:
            return position_json((self._run.run, seq))
        return None if found.header is None else position_json(builds_on(self._archive, found.row))

    def _decisions(self, found: Described) -> list[Json]:
        if self._document is None:
            return []
        seq = found.row.seq
        made: Vec[Document] = self._document.get("decisions", Vec())
        self._decided[seq] = len(made)
        before = self._decided.get(self._base_seq(found), len(made) if seq else self._inherited())
        undone = self._lineages.is_undone(self._run, seq)
        return [decision_json(self._archive, seq, each, undone) for each in made[before:]]

    def _inherited(self) -> int:
        """How many decisions a fork brought along."""
        try:
            base = self.base()
            return (
                0 if base is None else len(self._archive.part_of(base, ("decisions",)).get("decisions", ()))
            )
        except DamageError:
            return 0


def _decisions(archive: Archive, row: RunRow, details: list[Json]) -> list[Json]:
    """Every decision of a run, and those that a fork brought along."""
    own = len(details[0]["decisions"]) if details else 0
    made = [each for found in details for each in found["decisions"]]
    try:
        return [*inherited_decisions(archive, row, own=own), *made]
    except DamageError:
        return made
