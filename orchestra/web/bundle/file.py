"""The bundle as a file: one run with the page that shows it, which needs no server and no network.

The data is JSON, deflated and written as base64, so that no text of a run can end the element it stands in.
The file allows itself only its own scripts and style, named by their digests: it can neither load nor send.
"""

import base64
import hashlib
import html
import json
import time
import zlib
from typing import Any, Final

import attrs

from orchestra.codec.document import Document
from orchestra.codec.json_values import to_json
from orchestra.codec.loader import Loader
from orchestra.errors import DamageError
from orchestra.history.archive import Archive, if_whole
from orchestra.history.blame import AUTHORS
from orchestra.history.compare import defaults_below, diff_documents
from orchestra.history.describe import Described, Describer
from orchestra.history.lineage import target_of
from orchestra.history.pages import Broken, Pages
from orchestra.history.paths import MISSING, Path, child
from orchestra.history.places import Place, in_reading_order
from orchestra.history.variables import readable_document
from orchestra.ids import RunId
from orchestra.limits import BUNDLE_FILE_BYTES, BUNDLE_OUTPUT_BYTES, BUNDLE_STATE_BYTES, BUNDLE_VALUE_BYTES
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.ports.store import Row, RowQuery, RunRow
from orchestra.web.bundle.script import one_script, one_style, page_text
from orchestra.web.errors import BundleTooLarge
from orchestra.web.views import snapshots
from orchestra.web.views.common import Json
from orchestra.web.views.forms import as_value, cut, escape_key
from orchestra.web.views.outline import Outlines
from orchestra.web.views.runs import Runs, info_json, outputs_of, verify_json, waits_of
from orchestra.web.views.workflow import workflow_json

Patch = list[list[Any]]
"""Each `[path, form]`, or `[path]` where something is gone."""
FORMAT: Final = 1
_NEAR: Final = 64
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
_SHELL: Final = """<!doctype html>
<html lang="en" data-bundle="1">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<style>{style}</style>
<script>{theme}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the run</a>
<main id="main" tabindex="-1"><p class="loading" role="status">Opening…</p></main>
<div id="announcer" class="offscreen" role="status" aria-live="polite"></div>
<noscript><p class="trouble">Scripts show the run in this file. It loads and sends nothing.</p></noscript>
<script type="application/json" id="orchestra-bundle">
{data}
</script>
<script type="module">{script}</script>
</body>
</html>
"""


@attrs.frozen(kw_only=True)
class Bundle:
    """A bundle, ready to be written."""

    run: RunId
    snapshots: int
    content: bytes


def make_bundle(
    archive: Archive,
    run: RunId,
    *,
    file_bytes: int = BUNDLE_FILE_BYTES,
    state_bytes: int = BUNDLE_STATE_BYTES,
) -> Bundle:
    """One file with a run and the page; raises `BundleTooLarge`, `UnknownRun`."""
    data = gather_run(archive, run, state_bytes)
    script, theme, style = one_script("bundled.js", page_text), page_text("theme.js"), one_style(page_text)
    packed = zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), 9)
    policy = (
        f"default-src 'none'; script-src {_digest(script)} {_digest(theme)}; style-src {_digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    content = _SHELL.format(
        policy=html.escape(policy),
        title=html.escape(f"{run} · orchestra"),
        style=style,
        theme=theme,
        data=base64.b64encode(packed).decode(),
        script=script,
    ).encode()
    if len(content) > file_bytes:
        raise BundleTooLarge(run=run, size=len(content), limit=file_bytes)
    return Bundle(run=run, snapshots=len(data["headlines"]), content=content)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# --- what it holds: all that the page asks a server for about one run, gathered in one walk over it


def gather_run(archive: Archive, run: RunId, state_bytes: int = BUNDLE_STATE_BYTES) -> Json:
    """The data of a run's bundle; raises `BundleTooLarge`."""
    row = archive.run(run)
    walk = _Walk(archive, row)
    walk.take_all(state_bytes)
    runs = Runs(archive)
    base = walk.base()
    held = if_whole(lambda: archive.document_of(archive.row(row.run, row.head)), {})
    return {
        "format": FORMAT,
        "info": info_json(archive, **_INFO, now=time.time_ns() // 1000),
        "run": runs.details(row, playing=False),
        "snapshots": snapshots.columns(archive, row, RowQuery(run=row.run, content=False), runs.forks(row)),
        "outline": _outline(archive, row),
        "headlines": walk.headlines,
        "details": walk.details,
        "states": walk.states.full,
        "patches": walk.states.patches,
        "base": None if base is None else snapshots.position_json((base.run, base.seq)),
        "base_state": None if base is None else whole_form(archive.document_of(base), archive.loader),
        "defaults": defaults_below(State, lambda held: form_of(Place(held), archive.loader)),
        "authors": {field: list(kinds) for field, kinds in AUTHORS.items()},
        "decisions": {"decisions": _decisions(archive, row, walk.details)},
        "questions": {"waits": waits_of(archive, row.run, held, only_open=False)},
        "outputs": _outputs(archive, held),
        "workflow": workflow_json(archive, row),
        "family": runs.family(row.family),
        "verify": verify_json(archive, row.run),
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
    content = if_whole(lambda: archive.value(as_value(held)), None)
    data = content.encode() if isinstance(content, str) else content
    return base64.b64encode(data).decode() if isinstance(data, bytes) else None


class _Walk:
    """Goes over the snapshots of a run once, oldest first."""

    def __init__(self, archive: Archive, run: RunRow) -> None:
        self._archive, self._run = archive, run
        self._describer = Describer(archive)
        self._lineages = snapshots.Lineages(archive)
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
            self.headlines.append(snapshots.row_json(self._archive, found))
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
        place = None if self._first is None else snapshots.builds_on(self._archive, self._first)
        return None if place is None else self._archive.row(*place)

    def _take(self, row: Row) -> None:
        if row.seq == 0:
            self._first = row
        described = self._describer.describe(row)
        damage = described.damage
        try:
            self._document = self._archive.next_document(row, self._document)
            self.states.add(row.seq, self._document, last=row.seq == self._run.head)
        except DamageError as error:
            damage = damage or (None if row.pruned else str(error))
            self._document = None
            self.states.skip(str(error), pruned=row.pruned)
        self.details.append(self._detail(described, damage))

    def _detail(self, found: Described, damage: str | None) -> Json:
        row, before = found.row, self._before
        self._before = before if self._document is None else self._document
        return {
            **snapshots.facts_json(found),
            "decisions": self._decisions(found),
            "metrics": None if self._document is None else snapshots.metrics_since(self._document, before),
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
        place = (self._run.run, seq) if seq >= 0 else None
        if place is None and found.header is not None:
            place = snapshots.builds_on(self._archive, found.row)
        return snapshots.position_json(place)

    def _decisions(self, found: Described) -> list[Json]:
        if self._document is None:
            return []
        seq = found.row.seq
        made: Vec[Document] = self._document.get("decisions", Vec())
        self._decided[seq] = len(made)
        before = self._decided.get(self._base_seq(found), len(made) if seq else self._inherited())
        undone = self._lineages.is_undone(self._run, seq)
        return [snapshots.decision_json(self._archive, seq, each, undone) for each in made[before:]]

    def _inherited(self) -> int:
        """How many decisions a fork brought along."""
        base = if_whole(self.base, None)
        part = {} if base is None else if_whole(lambda: self._archive.part_of(base, ("decisions",)), {})
        return len(part.get("decisions", ()))


def _decisions(archive: Archive, row: RunRow, details: list[Json]) -> list[Json]:
    """Every decision of a run, and those that a fork brought along."""
    own = len(details[0]["decisions"]) if details else 0
    inherited = if_whole(lambda: snapshots.inherited_decisions(archive, row, own=own), [])
    return [*inherited, *(each for found in details for each in found["decisions"])]


# --- its states


class States:
    """Takes the documents of a run one after the other: the whole now and then, else what changed.

    A whole state is written where nothing is known before it, and again once the changes since the last one
    take as much room as a state does; so opening any snapshot costs about two states, and a bundle is at most
    about twice its changes.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._before: Document | None = None
        self._since, self._whole, self._count = 0, 0, 0
        self.full: list[tuple[int, Any]] = []
        self.patches: list[Patch | dict[str, Any]] = []
        self.size = 0

    def skip(self, reason: str, *, pruned: bool) -> None:
        """A snapshot whose state cannot be had."""
        self._before = None
        self.patches.append({"reason": reason, "pruned": pruned})

    def add(self, seq: int, document: Document, *, last: bool) -> None:
        document = readable_document(document)
        patch = None if self._before is None else self._patch(self._before, document)
        self._before = document
        self._count += 1
        if patch is not None:
            size = _size(patch)
            self._since += size
            self.size += size
        if patch is None or self._since > self._whole or (last and self._count > _NEAR):
            form = whole_form(document, self._loader)
            self._whole, self._since, self._count = _size(form), 0, 0
            self.size += self._whole
            self.full.append((seq, form))
        self.patches.append(patch if patch is not None else {"reason": "", "pruned": False})

    def _patch(self, old: Document, new: Document) -> Patch | None:
        """What changed, or None when that is too much to be told change by change."""
        found = diff_documents(old, new, self._loader, stored=True)
        if found.truncated:
            return None
        removed = [[list(each.path)] for each in found.changes if each.kind == "removed"]
        others = [each for each in found.changes if each.kind != "removed"]
        return [*([list(each.path), self._at(new, each.path)] for each in others), *removed]

    def _at(self, document: Document, path: Path) -> Any:
        place = Place(document)
        for step in path:
            place = place.open(self._loader)
            held = child(place.held, step)
            assert held is not MISSING, "BUG: a change leads to what is there"
            place = Place(held, place.theirs, step)
        return form_of(place, self._loader)


def whole_form(document: Document, loader: Loader) -> Any:
    """A state as JSON, nothing left out but what is too large."""
    return form_of(Place(in_reading_order(document)), loader)


def form_of(place: Place, loader: Loader) -> Any:
    """A place and all below it as JSON, in the forms of the browser; what is too large is only named."""
    held = place.held
    is_large = isinstance(held, Value) and held.digest is not None and held.size > BUNDLE_VALUE_BYTES
    place = place.open(loader, large=not is_large)
    held = place.held
    if place.instant is not None:
        return {"$at": held}
    if isinstance(held, dict | Table):
        return {escape_key(str(each.name)): form_of(each, loader) for each in place.below()}
    if isinstance(held, Vec | list | tuple):
        items = [form_of(each, loader) for each in place.below()]
        return {"$tuple": items} if isinstance(held, tuple) else items
    if isinstance(held, str) and len(held) > BUNDLE_VALUE_BYTES:
        return cut(held, BUNDLE_VALUE_BYTES)
    return to_json(held)


def _size(form: Any) -> int:
    return len(json.dumps(form, separators=(",", ":"), ensure_ascii=False))
