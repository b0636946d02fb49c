"""Garbage collection: removing objects that no snapshot needs any more.

*Marking* starts at every row that is not pruned. Such a row needs the seal that its header names and what its
patch refers to; an object needs what its reference list names. Objects whose digests a state names as data
(its workflow's definition, its outputs) are kept, too.

*Sweeping* removes the rest, except what was written within the grace time: a writer puts objects first and
the row that refers to them later. Rows that were committed since are marked while the store sweeps, when no
commit can happen. Nothing at all is removed while anything that is still needed cannot be read.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from orchestra.codec import cbor
from orchestra.codec.frame import references
from orchestra.codec.header import link, open_header
from orchestra.errors import Damaged, DamageError, MissingObject
from orchestra.history.archive import Archive
from orchestra.ids import Digest, Instant
from orchestra.limits import GC_BATCH_OBJECTS, GC_GRACE_SECONDS, MB
from orchestra.ports.store import ObjectInfo, Row, RowQuery

_WITHOUT_REFERENCES: Final = frozenset({"value", "blob"})
_BATCH_BYTES: Final = 16 * MB
_TREES: Final = (cbor.TAG_VEC, cbor.TAG_TABLE, cbor.TAG_VEC_REF, cbor.TAG_TABLE_REF)
_PROBLEMS: Final = 100  # that a report names


@attrs.frozen(kw_only=True)
class GarbageReport:
    """What a garbage collection found and did, or would do."""

    objects: int  # how many there were
    dead: int  # of them, how many nobody needs
    young: int  # of the dead, how many were written within the grace time and stay for now
    removed: int  # how many went
    bytes_freed: int  # how many bytes went, or would go
    problems: tuple[str, ...]  # what is needed and cannot be read; nothing more was removed once one was met
    dry_run: bool


def collect(
    archive: Archive, *, now: Instant, grace_seconds: float = GC_GRACE_SECONDS, dry_run: bool = False
) -> GarbageReport:
    """Remove the objects that no snapshot needs.

    Raises what the store raises, damage excepted, which is reported. May be repeated after any failure.
    """
    marker = _Marker(archive)
    since = archive.store.last_no()  # read first: whatever is committed later is marked during the sweep
    infos: dict[Digest, ObjectInfo] = {}
    with marker.noting():
        infos = {info.digest: info for info in archive.store.objects()}
    marker.sizes = {digest: info.size for digest, info in infos.items()}
    marker.mark(_row_pages(archive, marker, since))
    older_than = Instant(now - round(grace_seconds * 1_000_000))
    dead = {} if marker.problems else {d: info for d, info in infos.items() if d not in marker.live}
    old = {digest: info.size for digest, info in dead.items() if info.at < older_than}
    spared: set[Digest] = set()

    def needed_since(rows: list[Row]) -> Collection[Digest]:
        marker.mark([rows])
        spared.update(old.keys() if marker.problems else old.keys() & marker.live)
        return spared

    removed = 0
    if old and not dry_run:
        removed = archive.store.sweep(old.keys(), since=since, older_than=older_than, spared=needed_since)
    return GarbageReport(
        objects=len(infos),
        dead=len(dead),
        young=len(dead) - len(old),
        removed=removed,
        bytes_freed=sum(size for digest, size in old.items() if digest not in spared),
        problems=tuple(marker.problems),
        dry_run=dry_run,
    )


def _row_pages(archive: Archive, marker: "_Marker", until: int) -> Iterator[list[Row]]:
    """All rows in pages, by commit: unlike a list of runs, that order does not shift while one reads."""
    after = 0
    while after < until:
        page: list[Row] = []
        with marker.noting():
            page = archive.store.rows(RowQuery(after_no=after, limit=GC_BATCH_OBJECTS))
        yield page
        if len(page) < GC_BATCH_OBJECTS:
            return
        after = page[-1].no


class _Marker:
    """Finds out what rows need."""

    def __init__(self, archive: Archive) -> None:
        self._fetch, self._framer = archive.store.get_objects, archive.framer
        self._reader = _Reader()
        self._required: set[Digest] = set()  # to be looked into; they must be there
        self._possible: set[Digest] = set()  # to be looked into if they are there
        self._absent: set[Digest] = set()  # possible ones that were not there
        self.sizes: dict[Digest, int] = {}  # of objects as stored, as far as known; keeps batches small
        self.live: set[Digest] = set()  # whatever is needed, or would be if it were there
        self.problems: list[str] = []

    def mark(self, pages: Iterable[list[Row]]) -> None:
        """Mark everything that these rows need; stops after a page with a problem."""
        for rows in pages:
            for row in rows:
                if not row.pruned:
                    self._row(row)
            while self._required or self._possible:
                self._objects()
            if self.problems:
                return

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Take down what cannot be read, and go on."""
        try:
            yield
        except DamageError as error:
            self._note(error)

    def _note(self, error: DamageError) -> None:
        if len(self.problems) < _PROBLEMS:
            self.problems.append(str(error))

    def _row(self, row: Row) -> None:
        what = f"snapshot {row.run}@{row.seq}"
        with self.noting():
            plain = open_header(row.digest, row.header, self._framer, what=what)
            seal, patch = link(plain, "seal"), link(plain, "patch")
            same = (plain.get("run"), plain.get("seq")) == (row.run, row.seq)
            if seal is None or patch is None or row.patch is None or not same:
                raise Damaged(what=what, reason="its header and its content do not belong together")
            self._require(seal)
            what = f"the patch of {row.run}@{row.seq}"
            self._follow(self._framer.open(patch, row.patch, what=what, kinds=("patch",)).canonical, what)

    def _objects(self) -> None:
        """Look into the next objects: those that must be there, then those that may be."""
        required = bool(self._required)
        batch = self._batch(self._required or self._possible)
        with self.noting():
            found = self._fetch(batch)
            if required:
                for digest in batch - found.keys():
                    self._note(_missing(digest))
            else:
                self._absent |= batch - found.keys()
            for digest, frame in found.items():
                what = f"object {digest.hex()[:16]}"
                with self.noting():
                    framed = self._framer.open(digest, frame, what=what)
                    if framed.kind not in _WITHOUT_REFERENCES:
                        self._follow(framed.canonical, what)

    def _batch(self, source: set[Digest]) -> set[Digest]:
        batch, room = set[Digest](), _BATCH_BYTES
        while source and len(batch) < GC_BATCH_OBJECTS and room > 0:
            digest = source.pop()
            room -= self.sizes.get(digest, 0)
            batch.add(digest)
        return batch

    def _follow(self, canonical: bytes, what: str) -> None:
        listed = self._reader.read(canonical, what)
        self.live.update(self._reader.values)  # they refer to nothing, and may be large: no need to read them
        for digest in listed:
            self._require(digest)
        for digest in self._reader.named:
            if digest not in self.live:
                self.live.add(digest)
                self._possible.add(digest)

    def _require(self, digest: Digest) -> None:
        if digest not in self.live:
            self.live.add(digest)
            self._required.add(digest)
        elif digest in self._absent:
            self._note(_missing(digest))
        elif digest in self._possible:
            self._possible.remove(digest)
            self._required.add(digest)


class _Reader:
    """Finds the digests in one object or patch, without making anything else of its canonical bytes."""

    def __init__(self) -> None:
        self.values: list[Digest] = []  # of large values, which its reference list names, too
        self.named: list[Digest] = []  # in its body, as data: they may be those of objects
        passed = dict.fromkeys(_TREES, lambda _content, _key: None)  # what stands inside was seen already
        hooks = {cbor.TAG_DIGEST: self._name, cbor.TAG_VALUE_REF: self._value}
        self._decode = cbor.make_decoder(hooks | passed)

    def read(self, canonical: bytes, what: str) -> list[Digest]:
        """The reference list of a pair of references and body; raises `Damaged`."""
        self.values, self.named = [], []
        try:
            return list(references(self._decode(canonical, what)))
        except ValueError as error:
            raise Damaged(what=what, reason=str(error)) from None

    def _name(self, digest: Any, _key: bool) -> None:
        self.named.append(cbor.check_digest(digest))

    def _value(self, parts: Any, _key: bool) -> None:
        if not isinstance(parts, list) or len(parts) != 2:
            raise cbor.Refused("a value reference is not [digest, size]")
        self.values.append(cbor.check_digest(parts[0]))


def _missing(digest: Digest) -> MissingObject:
    return MissingObject(what=f"object {digest.hex()[:16]}")
