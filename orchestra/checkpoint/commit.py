"""A run that this process writes, and its turns: from a state and events to one row, ready to be committed.

No input or output happens here.
"""

from collections.abc import Callable
from typing import Final

import anyio
import attrs

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.checkpoint.triggers import is_marked, triggers_of
from orchestra.codec import cbor, patch
from orchestra.codec.address import Addresser
from orchestra.codec.frame import FORMAT, Framer
from orchestra.codec.header import write_header
from orchestra.codec.seal import Seal, Sealer
from orchestra.codec.writers import Writer
from orchestra.errors import SnapshotTooLarge
from orchestra.history.archive import agents_of
from orchestra.ids import Digest, Fence, RunId
from orchestra.limits import PACKED_LATER_BYTES, SEAL_EVERY_PATCH_BYTES, SEAL_EVERY_ROWS
from orchestra.model import events as ev
from orchestra.model.frozen import changer, converter, maker
from orchestra.model.headline import headlines
from orchestra.model.snapshot import Counts, Header, Snapshot
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.ports.store import Claim, Commit, Row

Events = tuple[ev.Event, ...]
Commands = tuple[int, ...]
_Objects = tuple[tuple[Digest, bytes], ...]


@attrs.frozen(kw_only=True)
class RecordedTurn:
    """One turn, ready to be committed."""

    commit: Commit
    header: Header
    state: State
    events: Events
    seal: Seal | None
    patch_bytes: int

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot this turn makes."""
        return Snapshot(digest=self.commit.row.digest, header=self.header, state=self.state, format=FORMAT)


class TurnLock:
    """Lets one turn be recorded at a time. Cheaper than `anyio.Lock` while nobody waits."""

    __slots__ = ("_busy", "_waiting")

    def __init__(self) -> None:
        self._busy = False
        self._waiting: anyio.Event | None = None

    async def __aenter__(self) -> None:
        while self._busy:
            self._waiting = self._waiting or anyio.Event()
            await self._waiting.wait()
        self._busy = True

    async def __aexit__(self, *_error: object) -> None:
        self._busy = False
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None


@attrs.define(eq=False, repr=False, kw_only=True)
class ActiveRun:
    """The newest known state of a run and the right to append to it."""

    claim: Claim
    state: State
    seq: int = -1
    digest: Digest | None = None
    seal: Digest = Digest(b"")
    sealed_at: int = 0
    left: str = ""  # why the run is paused, where the snapshot it was restored at says so
    ago: int | None = None  # how many snapshots ago the last decision came, if that is known
    rows_since_seal: int = 0
    bytes_since_seal: int = 0
    unsaved: list[RecordedTurn] = attrs.field(factory=list)
    uncertain: RecordedTurn | None = None
    lock: TurnLock = attrs.field(factory=TurnLock)

    @classmethod
    def at(cls, claim: Claim, snapshot: Snapshot) -> "ActiveRun":
        """A run that was restored at a snapshot."""
        header = snapshot.header
        active = cls(claim=claim, state=snapshot.state, seq=header.seq, digest=snapshot.digest)
        active.seal, active.sealed_at = header.seal, header.sealed_at
        active.ago = None if header.counts is None else header.counts.ago
        active.left = next((each.what for each in header.events[::-1] if each.kind == "run_paused"), "")
        active.rows_since_seal = header.seq - header.sealed_at
        if snapshot.format != FORMAT:
            active.rows_since_seal = SEAL_EVERY_ROWS  # the next row is sealed in today's format
        return active

    @property
    def run(self) -> RunId:
        return self.claim.run

    @property
    def is_degraded(self) -> bool:
        """Whether snapshots are waiting to be saved."""
        return bool(self.unsaved)

    def advance(self, turn: RecordedTurn) -> None:
        """Move on to the state after `turn`."""
        header = turn.header
        self.state, self.seq, self.digest = turn.state, header.seq, turn.commit.row.digest
        self.ago = None if header.counts is None else header.counts.ago
        if turn.seal is not None:
            self.seal, self.sealed_at = header.seal, header.seq
            self.rows_since_seal = self.bytes_since_seal = 0
        else:
            self.rows_since_seal += 1
            self.bytes_since_seal += turn.patch_bytes


_turn: Final = maker(RecordedTurn)
_header: Final = maker(Header)
_row: Final = converter(Header, Row, "digest", "agents", "size", "header", "patch")
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
        self, active: ActiveRun, state: State, events: Events, consumed: Commands = ()
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
        return self._finish(active, state, events, canonical, writer.large, seal, consumed)

    def pack(self, commit: Commit) -> Commit:
        """A commit as it is stored. The writer asks for it, on its thread.

        Compressing lets go of the interpreter. While turns are made, getting it back takes several times as
        long as compressing a few kilobytes.
        """
        return _pack(commit, self._packer.pack)

    def make_jump(
        self, active: ActiveRun, state: State, events: Events, base: Snapshot | None, consumed: Commands = ()
    ) -> RecordedTurn:
        """A turn whose state does not follow from the one before: a run's first, a fork's, a rollback's.

        `base` is the snapshot that it follows from; a run's first has none.
        """
        seal = self._sealer.seal(state)
        canonical = cbor.encode([[seal.root], [["reset", seal.root]]])
        return self._finish(active, state, events, canonical, self._sealer.large, seal, consumed, base)

    def _finish(
        self,
        active: ActiveRun,
        state: State,
        events: Events,
        canonical: bytes,  # the patch
        large: list[Value],  # values that came with it
        seal: Seal | None,
        consumed: Commands,
        base: Snapshot | None = None,
    ) -> RecordedTurn:
        framer = self._framer
        header = self._header(active, state, events, framer.address("patch", canonical), seal, base)
        digest, head = write_header(header, framer)
        frame = framer.write("patch", canonical)
        objects: _Objects = () if seal is None else tuple(seal.objects)
        if large:
            values = {each.digest: each.encoded for each in large if each.digest is not None}
            found = [(each, framer.write("value", encoded)) for each, encoded in values.items() if encoded]
            objects = (*found, *objects)
        size = _size(head, frame, objects)
        row = _row(header, digest=digest, agents=agents_of(header), size=size, header=head, patch=frame)
        commit = _commit(
            row=row,
            fence=Fence(active.claim.fence),
            expected=active.digest,
            family=state.family,
            workflow=state.workflow.name,
            objects=objects,
            consumed=consumed,
            whole=None if base is None else (base.header.run, base.header.seq),
        )
        limit = self._settings.size_limit_bytes
        if size > limit:  # it may be smaller packed, by a packer that is not the writer's
            packer = Framer(self._addresser, level=self._settings.level)
            size = _pack(commit, packer.pack).row.size
            if size > limit:
                raise SnapshotTooLarge(run=row.run, size=size, limit=limit)
        return _turn(
            commit=commit, header=header, state=state, events=events, seal=seal, patch_bytes=len(canonical)
        )

    def _header(
        self,
        active: ActiveRun,
        state: State,
        events: Events,
        patch: Digest,
        seal: Seal | None,
        base: Snapshot | None,
    ) -> Header:
        seq = active.seq + 1
        before = active.state if active.seq >= 0 else None
        triggers = triggers_of(before, state, events, self._settings)
        return _header(
            run=active.run,
            seq=seq,
            parent=active.digest if base is None else active.digest or base.digest,
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
            patch=patch,
            seal=seal.root if seal else active.seal,
            sealed_at=seq if seal else active.sealed_at,
        )


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
