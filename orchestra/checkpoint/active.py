"""A run that this process writes: its claim, its state and where its chain stands."""

import anyio
import attrs

from orchestra.codec.frame import FORMAT
from orchestra.codec.seal import Seal
from orchestra.ids import Digest, RunId
from orchestra.limits import SEAL_EVERY_ROWS
from orchestra.model import events as ev
from orchestra.model.snapshot import Header, Snapshot
from orchestra.model.state import State
from orchestra.ports.store import Claim, Commit


@attrs.frozen(kw_only=True)
class RecordedTurn:
    """One turn, ready to be committed."""

    commit: Commit
    header: Header
    state: State
    events: tuple[ev.Event, ...]
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
        """The id of the run."""
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
