"""Turns: from a state and events to one row, ready to be committed. No input or output happens here."""

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from orchestra.checkpoint.active import ActiveRun, RecordedTurn
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.checkpoint.triggers import is_marked, triggers_of
from orchestra.codec import cbor, patch
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.header import write_header
from orchestra.codec.seal import Seal, Sealer
from orchestra.codec.writers import Writer
from orchestra.errors import SnapshotTooLarge
from orchestra.history.archive import agents_of
from orchestra.ids import Digest, Fence, RunId
from orchestra.limits import PACKED_LATER_BYTES, SEAL_EVERY_PATCH_BYTES, SEAL_EVERY_ROWS
from orchestra.model import events as ev
from orchestra.model.frozen import changer, maker
from orchestra.model.headline import headlines
from orchestra.model.snapshot import Counts, Header
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.ports.store import Commit, Row

Events = tuple[ev.Event, ...]
_Objects = tuple[tuple[Digest, bytes], ...]


@attrs.frozen(kw_only=True)
class _Change:
    """What leads to the next state: a patch, the large values it brought, and a seal when one is due."""

    patch: bytes  # canonical
    large: list[Value]
    seal: Seal | None


_turn: Final = maker(RecordedTurn)
_header: Final = maker(Header)
_row: Final = maker(Row)
_commit: Final = maker(Commit)
_count: Final = maker(Counts)
_with: Final = changer(Commit, "row", "objects")
_with_patch: Final = changer(Row, "patch", "size")


class TurnMaker:
    """Makes turns for the runs of one store."""

    def __init__(self, addresser: Addresser, settings: CheckpointSettings) -> None:
        self._addresser, self._settings = addresser, settings
        self._framer = Framer(addresser, level=settings.level, compress_from=PACKED_LATER_BYTES)
        self._packer = Framer(addresser, level=settings.level)
        self._inline = Writer()
        self._sealer = Sealer(self._framer)

    def make_turn(
        self, active: ActiveRun, state: State, events: Events, consumed: tuple[int, ...] = ()
    ) -> RecordedTurn:
        """An ordinary turn: a patch, and a seal when it is time for one; raises `SnapshotTooLarge`."""
        writer = self._inline
        writer.references, writer.large = [], []
        operations = patch.make(writer, active.state, state)
        canonical = patch.encode(writer.references, operations)
        due = (
            active.rows_since_seal + 1 >= SEAL_EVERY_ROWS
            or active.bytes_since_seal + len(canonical) >= SEAL_EVERY_PATCH_BYTES
        )
        seal = self._sealer.seal(state) if due else None
        change = _Change(patch=canonical, large=writer.large, seal=seal)
        return self._finish(active, state, events, change, consumed)

    def pack(self, commit: Commit) -> Commit:
        """A commit as it is stored. The writer asks for it, on its thread.

        Compressing lets go of the interpreter. While turns are made, getting it back takes several times as
        long as compressing a few kilobytes.
        """
        return _pack(commit, self._packer.pack)

    def make_jump(
        self,
        active: ActiveRun,
        state: State,
        events: Events,
        *,
        consumed: tuple[int, ...] = (),
        parent: Digest | None = None,
        whole: tuple[RunId, int] | None = None,
    ) -> RecordedTurn:
        """A turn whose state does not follow from the one before: a run's first, a fork's, a rollback's."""
        seal = self._sealer.seal(state)
        canonical = cbor.encode([[seal.root], [["reset", seal.root]]])
        change = _Change(patch=canonical, large=self._sealer.large, seal=seal)
        return self._finish(active, state, events, change, consumed, parent, whole)

    def _finish(
        self,
        active: ActiveRun,
        state: State,
        events: Events,
        change: _Change,
        consumed: tuple[int, ...],
        parent: Digest | None = None,
        whole: tuple[RunId, int] | None = None,
    ) -> RecordedTurn:
        header = self._header(active, state, events, change, parent)
        row, objects = self._row(header, change)
        commit = _commit(
            row=row,
            fence=Fence(active.claim.fence),
            expected=active.digest,
            family=state.family,
            workflow=state.workflow.name,
            objects=objects,
            consumed=consumed,
            whole=whole,
        )
        if row.size > self._settings.size_limit_bytes:
            self._check_size(commit)
        return _turn(
            commit=commit,
            header=header,
            state=state,
            events=events,
            seal=change.seal,
            patch_bytes=len(change.patch),
        )

    def _check_size(self, commit: Commit) -> None:
        """Raise `SnapshotTooLarge` for a commit that is too large also when it is packed."""
        limit = self._settings.size_limit_bytes
        packer = Framer(self._addresser, level=self._settings.level)  # the other one is the writer's
        size = _pack(commit, packer.pack).row.size
        if size > limit:
            raise SnapshotTooLarge(run=commit.row.run, size=size, limit=limit)

    def _header(
        self, active: ActiveRun, state: State, events: Events, change: _Change, parent: Digest | None
    ) -> Header:
        seq = active.seq + 1
        before = active.state if active.seq >= 0 else None
        triggers = triggers_of(before, state, events, self._settings)
        return _header(
            run=active.run,
            seq=seq,
            parent=active.digest or parent,
            at=events[-1].at,
            triggers=triggers,
            marked=is_marked(triggers, self._settings),
            events=headlines(events, state),
            status=state.status,
            phase=state.cursor.phase,
            ordinal=state.cursor.ordinal,
            generation=state.generation,
            confidence=state.confidence.overall,
            open_failure=state.has_open_failure,
            counts=_counts(active, state),
            patch=self._framer.address("patch", change.patch),
            seal=change.seal.root if change.seal else active.seal,
            sealed_at=seq if change.seal else active.sealed_at,
        )

    def _row(self, header: Header, change: _Change) -> tuple[Row, _Objects]:
        digest, head = write_header(header, self._framer)
        patch_frame = self._framer.write("patch", change.patch)
        objects: _Objects = ()
        if change.large or change.seal is not None:
            objects = (*self._values(change.large), *(change.seal.objects if change.seal else ()))
        row = _row(
            run=header.run,
            seq=header.seq,
            digest=digest,
            parent=header.parent,
            at=header.at,
            status=header.status,
            phase=header.phase,
            triggers=header.triggers,
            agents=agents_of(header),
            marked=header.marked,
            seal=header.seal,
            sealed_at=header.sealed_at,
            size=_size(head, patch_frame, objects),
            header=head,
            patch=patch_frame,
        )
        return row, objects

    def _values(self, large: list[Value]) -> Iterable[tuple[Digest, bytes]]:
        return {
            value.digest: self._framer.write("value", value.encoded)
            for value in large
            if value.digest is not None and value.encoded is not None
        }.items()


def _pack(commit: Commit, pack: Callable[[bytes], bytes]) -> Commit:
    row = commit.row
    assert row.patch is not None, "BUG: a new row has its patch"
    patch = pack(row.patch)
    objects = tuple([(digest, pack(frame)) for digest, frame in commit.objects])
    size = _size(row.header, patch, objects)
    return _with(commit, row=_with_patch(row, patch=patch, size=size), objects=objects)


def _size(header: bytes, patch: bytes, objects: _Objects) -> int:
    return len(header) + len(patch) + sum([len(frame) for _, frame in objects])


def _counts(active: ActiveRun, state: State) -> Counts:
    """How much there is now, and how many snapshots ago the last decision came, if that is known."""
    tasks, decisions = state.tasks.pairs.count, state.decisions.count
    if not decisions:
        return _count(tasks=tasks, decisions=0)
    if active.seq < 0 or state.decisions is not active.state.decisions:
        return _count(tasks=tasks, decisions=decisions, ago=0)
    return _count(tasks=tasks, decisions=decisions, ago=None if active.ago is None else active.ago + 1)
