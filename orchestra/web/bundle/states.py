"""The states of a run for a bundle: the whole now and then, and what changed from snapshot to snapshot.

A whole state is written where nothing is known before it, and again once the changes since the last one take
as much room as a state does; so opening any snapshot costs about two states, and a bundle is at most about
twice its changes.
"""

import json
from typing import Any, Final

from orchestra.codec.document import Document
from orchestra.codec.json_values import to_json
from orchestra.codec.loader import Loader
from orchestra.history.compare import diff_documents
from orchestra.history.paths import MISSING, Path, child
from orchestra.history.places import Large, Place, in_reading_order
from orchestra.history.variables import readable_document
from orchestra.limits import BUNDLE_VALUE_BYTES
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.web.views.forms import cut, escape_key, large_form

Patch = list[list[Any]]
"""Each `[path, form]`, or `[path]` where something is gone."""
_NEAR: Final = 64


class States:
    """Takes the documents of a run one after the other."""

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
        """The state of the next snapshot."""
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
    place = place.open(loader, large=not _too_large(place.held))
    held = place.held
    if place.instant is not None:
        return {"$at": held}
    if isinstance(held, dict | Table):
        return {escape_key(str(each.name)): form_of(each, loader) for each in place.below()}
    if isinstance(held, Vec | list | tuple):
        items = [form_of(each, loader) for each in place.below()]
        return {"$tuple": items} if isinstance(held, tuple) else items
    if isinstance(held, Large):
        return large_form(held)
    if isinstance(held, str) and len(held) > BUNDLE_VALUE_BYTES:
        return cut(held, BUNDLE_VALUE_BYTES)
    return to_json(held)


def _too_large(held: Any) -> bool:
    return isinstance(held, Value) and held.digest is not None and held.size > BUNDLE_VALUE_BYTES


def _size(form: Any) -> int:
    return len(json.dumps(form, separators=(",", ":"), ensure_ascii=False))
