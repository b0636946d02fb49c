"""Export a run with its whole history to one file, and import such a file into a store.

The same run always makes the same bytes. An import proves the whole file before any of it can be seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from orchestra.atomic import new_file
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.errors import Damaged, OrchestraError, RunExists
from orchestra.history.archive import Archive
from orchestra.history.verify.ledger import ObjectLedger
from orchestra.history.verify.report import RunReport
from orchestra.history.verify.verifier import check_run
from orchestra.ids import Digest, Fence, RunId
from orchestra.interchange import export_store
from orchestra.interchange.export_store import ExportStore, FrameWriter, Manifest
from orchestra.limits import MB
from orchestra.ports.store import Claim, Commit, Row, RowQuery, RunRow, Store

_PAGE: Final = 128
_BATCH_OBJECTS: Final = 64
_BATCH_BYTES: Final = 8 * MB


@attrs.frozen(kw_only=True)
class Exported:
    """What an export file holds."""

    run: RunId
    path: Path
    rows: int
    objects: int
    size: int
    digest: Digest  # of the file's content


@attrs.frozen(kw_only=True)
class Imported:
    """What an import added to a store."""

    run: RunId
    rows: int  # how many were added; 0 when the store had them all
    objects: int
    head: int  # the newest sequence number of the run in the file

    @property
    def was_there(self) -> bool:
        """Whether the store held everything already."""
        return self.rows == 0


# --- out


def export_run(archive: Archive, run: RunId, file: str | Path, *, force: bool = False) -> Exported:
    """Write a run to one file, atomically.

    Raises `UnknownRun`; `Damaged` when a part of the run cannot be read; `BadName` when the file exists and
    `force` is not set; `StoreFull`, `StoreReadOnly`, `StoreFailed` when it cannot be written.
    """
    path, row = Path(file), archive.run(run)
    with new_file(path, force=force) as out:
        ledger = ObjectLedger(archive.store, archive.framer)
        report = _verify(archive, ledger, run)
        objects = [digest for digest, entry in ledger.entries.items() if entry.kind]
        annotations = [each for each in archive.store.annotations(run) if each.seq < report.rows]
        manifest = Manifest(
            run=run,
            family=row.family,
            workflow=row.workflow,
            created_at=row.created_at,
            digest=archive.row(run, report.rows - 1).digest,
            rows=report.rows,
            pruned=report.pruned,
            objects=len(objects),
            annotations=len(annotations),
        )
        writer = FrameWriter(out, archive.framer)
        writer.put(export_store.MANIFEST, export_store.write_manifest(manifest))
        for digest, frame in _objects(archive.store, ledger, objects):
            writer.put(export_store.OBJECT, digest + frame)
        for each in _rows(archive.store, run, 0, report.rows):
            writer.put(export_store.ROW, export_store.write_row(each))
        for annotation in annotations:
            writer.put(export_store.ANNOTATION, export_store.write_annotation_section(annotation))
        digest = writer.end()
    return Exported(
        run=run, path=path, rows=report.rows, objects=len(objects), size=writer.size, digest=digest
    )


def _verify(archive: Archive, ledger: ObjectLedger, run: RunId, place: str = "") -> RunReport:
    """The report on a run that must be whole; `place` is the file it stands in."""
    result = check_run(archive, ledger, run, lambda _: None)
    ledger.learn_named()
    report = result.report(ledger.findings())
    if damage := next((finding for finding in report.findings if finding.is_damage), None):
        reason = f"{damage.what}: {damage.reason}" if place else damage.reason
        raise Damaged(what=place or damage.what, reason=reason)
    return report


def _objects(store: Store, ledger: ObjectLedger, digests: Sequence[Digest]) -> Iterator[tuple[Digest, bytes]]:
    """Objects in their order; large ones one by one."""
    rest = iter(digests)
    while batch := list(islice(rest, _BATCH_OBJECTS)):
        small = [digest for digest in batch if ledger.entries[digest].kind not in ("value", "blob")]
        found = dict(store.get_objects(small))
        for digest in batch:
            frame = found.get(digest) or store.get_objects((digest,)).get(digest)
            if frame is None:
                raise Damaged(what=f"object {digest.hex()[:16]}", reason="it went while it was exported")
            yield digest, frame


def _rows(store: Store, run: RunId, first: int, end: int) -> Iterator[Row]:
    for start in range(first, end, _PAGE):
        yield from store.rows(RowQuery(run=run, first=start, last=min(end, start + _PAGE) - 1))


# --- in


def import_run(
    store: Store, file: str | Path, *, framer: Framer | None = None, owner: str = "import"
) -> Imported:
    """Bring the run in an export file into a store.

    A store that has the run already is left as it is when it has all of it (`was_there`), and gets the rest
    when it has its beginning, as after an import that was interrupted. Raises `RunExists` for another history
    of that name, `NotAStore` for a file that is no export, `StoreTooNew`, `Damaged` for one that is not
    as it was written, and what the store raises; then nothing was added that can be seen.
    """
    proof = framer or Framer(Addresser())
    with ExportStore(Path(file), proof) as export:
        archive = Archive(export, proof)
        _check(archive, export)
        return _Import(store, archive, export.manifest).run(owner)


def _check(archive: Archive, export: ExportStore) -> None:
    """Prove everything in an export; raises `Damaged`."""
    ledger = ObjectLedger(export, archive.framer)
    place = f"export file {export.place}"
    report = _verify(archive, ledger, export.manifest.run, place)
    extra = [info for info in export.objects() if info.digest not in ledger.entries]
    if extra or report.pruned != export.manifest.pruned:
        reason = "it holds objects that its run does not need, or other numbers than it says"
        raise Damaged(what=place, reason=reason)


class _Import:
    """Brings one proved export into a store."""

    def __init__(self, store: Store, archive: Archive, manifest: Manifest) -> None:
        self._store, self._archive, self._manifest = store, archive, manifest
        self._run = manifest.run

    def run(self, owner: str) -> Imported:
        held = self._store.run(self._run)
        first = 0 if held is None else self._known(held)
        if first == self._manifest.rows:
            return self._imported(0, 0)
        claim = self._store.claim(self._run, owner, new=held is None)
        try:
            objects = self._put_objects()
            self._append(claim, first)
            for annotation in self._archive.store.annotations(self._run):
                self._store.annotate(annotation)
        except BaseException:
            self._undo(claim, is_new=held is None)
            raise
        self._store.release(claim)
        return self._imported(self._manifest.rows - first, objects)

    def _imported(self, rows: int, objects: int) -> Imported:
        return Imported(run=self._run, rows=rows, objects=objects, head=self._manifest.rows - 1)

    def _known(self, held: RunRow) -> int:
        """How many rows of the file the store has; raises `RunExists` when its history is another."""
        common = min(held.head, self._manifest.rows - 1)
        mine = self._store.rows(RowQuery(run=self._run, first=common, last=common, content=False))
        if not mine or mine[0].digest != self._archive.row(self._run, common).digest:
            raise RunExists(run=self._run)
        return common + 1

    def _put_objects(self) -> int:
        """Write the objects ahead of the rows, and see that they are there as they should be."""
        count = 0
        infos = ((info.digest, info.size) for info in self._archive.store.objects())
        for batch in _batches(infos):
            frames = dict(self._archive.store.get_objects(batch))
            for digest, frame in frames.items():
                self._archive.framer.open(digest, frame)
            self._store.put_objects(frames.items())
            held = self._store.get_objects(batch)
            for digest in batch:  # the store keeps what it had, which may be damaged
                if held.get(digest) != frames[digest]:
                    self._archive.framer.open(digest, held.get(digest, b""))
            count += len(batch)
        return count

    def _append(self, claim: Claim, first: int) -> None:
        before = None if first == 0 else self._archive.row(self._run, first - 1).digest
        rows = _rows(self._archive.store, self._run, first, self._manifest.rows)
        while page := list(islice(rows, _PAGE)):
            commits = []
            for row in page:
                commits.append(self._commit(claim, row, before))
                before = row.digest
            for outcome in self._store.commit(commits):
                if isinstance(outcome, OrchestraError):
                    raise outcome

    def _commit(self, claim: Claim, row: Row, before: Digest | None) -> Commit:
        self._archive.header(row)
        return Commit(
            row=attrs.evolve(row, no=0, pruned=False),
            fence=Fence(claim.fence),
            expected=before,
            family=self._manifest.family,
            workflow=self._manifest.workflow,
        )

    def _undo(self, claim: Claim, *, is_new: bool) -> None:
        """Leave nothing of a new run; one that was there keeps what was added, which is its own history."""
        with suppress(OrchestraError):
            self._store.release(claim)
            if is_new and self._store.run(self._run) is not None:
                self._store.delete(self._run)


def _batches(infos: Iterable[tuple[Digest, int]]) -> Iterator[list[Digest]]:
    batch: list[Digest] = []
    size = 0
    for digest, length in infos:
        if batch and (len(batch) >= _BATCH_OBJECTS or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(digest)
        size += length
    if batch:
        yield batch
