"""The store port: where rows and objects are kept. A store sees bytes and ids, never the model.

Terms. An *object* is bytes under a digest; it never changes. A *row* is one snapshot: a header, a patch
and columns to find it by. A run's *head* is its newest row. A *claim* is the right to append to a run; its
*fence* is a number by which a writer that lost the claim is refused. A *command* is a message to the owner of
a run. An *annotation* is a pin or a note on a snapshot.

Promises every store makes (`orchestra.testing.store_contract` proves them):

1. A commit happens whole or not at all. Once `commit` returns its number, every later reader sees its row,
   its objects and that its commands are consumed, also after the process died or, in a durable store, the
   power failed. Before that no reader sees any of it.
2. Rows of a run have the sequence numbers 0, 1, 2, … without gaps, and are never changed except by `prune`.
3. Objects and rows come back byte for byte, or an error is raised.
4. Methods are synchronous, may be called from any thread, and raise only `OrchestraError`s.
5. Nothing is created over something that exists, and a store of a newer format is not touched.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Literal, Self

import attrs

from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Fence, Instant, RunId

DEFAULT_STORE: Final = "sqlite:outputs/orchestra.db"
"""The store that is used where nobody names one."""
STORE_VARIABLE: Final = "ORCHESTRA_STORE"
"""The environment variable that names one."""


@attrs.frozen(kw_only=True)
class Properties:
    """What sets one store apart from another, as data."""

    scheme: str
    durable: bool  # survives the process
    many_processes: bool  # several processes may work on it at once


@attrs.frozen(kw_only=True)
class Row:
    """One snapshot as a store keeps it."""

    run: RunId
    seq: int
    digest: Digest
    parent: Digest | None
    at: Instant
    status: str
    phase: str | None
    triggers: tuple[str, ...]
    agents: tuple[str, ...]
    marked: bool
    seal: Digest
    sealed_at: int
    size: int  # bytes that this snapshot added: header, patch and new objects
    header: bytes = b""  # empty when only columns were asked for
    patch: bytes | None = None  # None when pruned, or when only columns were asked for
    pruned: bool = False
    no: int = 0  # given by the store: counts commits over all runs


@attrs.frozen(kw_only=True)
class RunRow:
    """One run as a store keeps it."""

    run: RunId
    family: RunId
    workflow: str
    status: str
    phase: str | None
    head: int  # sequence number of the newest row
    digest: Digest  # of the newest row
    fence: Fence
    owner: str | None  # who claimed it last; a hint for people, not a lock
    owned: bool  # whether a live process holds the claim now
    created_at: Instant
    updated_at: Instant


@attrs.frozen(kw_only=True)
class Claim:
    """The right to append to a run."""

    run: RunId
    fence: Fence
    owner: str


@attrs.frozen(kw_only=True)
class Commit:
    """One row to append, with all that must become visible together with it."""

    row: Row
    fence: Fence
    expected: Digest | None  # digest of the head this row follows; None for the first row of a run
    family: RunId
    workflow: str
    objects: tuple[tuple[Digest, bytes], ...] = ()
    requires: tuple[Digest, ...] = ()  # objects that must be there already
    whole: tuple[RunId, int] | None = None  # a snapshot that must not have been pruned or deleted meanwhile
    consumed: tuple[int, ...] = ()  # commands that this row answers; they must still be there


@attrs.frozen(kw_only=True)
class Command:
    """A message to whoever owns a run."""

    id: int
    run: RunId
    at: Instant
    body: bytes


AnnotationKind = Literal["pin", "note"]


@attrs.frozen(kw_only=True)
class Annotation:
    """A pin or a note on a snapshot; the body carries its own check."""

    run: RunId
    seq: int
    kind: AnnotationKind
    body: bytes


@attrs.frozen(kw_only=True)
class RunQuery:
    """Which runs to list, newest first (by creation, then by id)."""

    status: tuple[str, ...] = ()
    workflow: str | None = None
    family: RunId | None = None
    contains: str | None = None  # part of the run id
    limit: int = 100
    offset: int = 0


@attrs.frozen(kw_only=True)
class RowQuery:
    """Which rows to list. All given conditions must hold."""

    run: RunId | None = None
    first: int | None = None  # lowest sequence number
    last: int | None = None  # highest sequence number
    after_no: int | None = None  # only rows committed after this number; the order is then that of commits
    triggers: tuple[str, ...] = ()  # any of these
    phase: str | None = None
    agent: str | None = None
    status: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    marked: bool | None = None
    sealed: bool | None = None  # only rows that are sealed themselves (sealed_at == seq), or only others
    newest_first: bool = False
    limit: int | None = None
    content: bool = True  # with header and patch, or columns only


@attrs.frozen(kw_only=True)
class ObjectInfo:
    """An object without its bytes."""

    digest: Digest
    size: int  # as stored
    at: Instant  # when it was last written


@attrs.frozen(kw_only=True)
class StoreProblem:
    """Something wrong that a check found."""

    what: str  # e.g. "row", "object", "run", "index", "file"
    where: str  # e.g. "code-review_…@12", a digest, a table
    reason: str


@attrs.frozen(kw_only=True)
class StoreStats:
    """How much a store holds."""

    runs: int
    rows: int
    pruned: int
    objects: int
    object_bytes: int
    row_bytes: int
    file_bytes: int


SparedRows = Callable[[], Collection[int]]
"""Tells which rows of a run must stay."""
SparedObjects = Callable[[list[Row]], Collection[Digest]]
"""Tells which objects must stay because of these rows."""


def spare_nothing() -> Collection[int]:
    """For callers that know that nobody forks or pins meanwhile."""
    return ()


class Store(ABC):
    """Where rows and objects are kept. See the module's docstring for the promises."""

    properties: Properties
    place: str
    """How a person finds it: the path or URL, without secrets."""

    @abstractmethod
    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        """Take the right to append to `run`.

        Adds one to the fence of an existing run, so that every earlier claim is void. With `new` the run must
        not exist yet; nothing is written until its first commit, whose fence is 1. Raises `RunOwned` when
        somebody alive holds a claim, `UnknownRun`, and with `new` `RunExists`.
        """

    @abstractmethod
    def release(self, claim: Claim) -> None:
        """Give the claim up. Idempotent; releasing a void claim does nothing."""

    @abstractmethod
    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        """Append rows of one or many runs, in order, in one durable step.

        Returns for each commit its number, or the error for which it alone was refused: `FenceLost`,
        `HeadMoved`, `RunExists`, `MissingObject` for `requires`, `PrunedSnapshot` or `UnknownSnapshot` for
        `whole`, `CommandGone` for `consumed`. A commit whose row is the head already gets its old number, so
        that one of unknown outcome can be repeated. Objects that exist are kept and count as written now.

        Raises `StoreFull`, `StoreFailed`, `StoreBusy`, `StoreReadOnly` or `StoreClosed` when the whole step
        failed; then no commit happened. Raises `StoreBusy` at once where another writer is in the way and the
        caller is not `patient`.
        """

    @abstractmethod
    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        """Write objects ahead of the row that will refer to them. Idempotent, durable on return."""

    @abstractmethod
    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        """The objects that are there; missing ones are left out."""

    @abstractmethod
    def objects(self) -> Iterator[ObjectInfo]:
        """Every object, without its bytes, in no particular order."""

    @abstractmethod
    def run(self, run: RunId) -> RunRow | None:
        """One run, or None."""

    @abstractmethod
    def runs(self, query: RunQuery) -> list[RunRow]:
        """Runs, newest first."""

    @abstractmethod
    def rows(self, query: RowQuery) -> list[Row]:
        """Rows by sequence number (or by commit number when `after_no` is given)."""

    @abstractmethod
    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        """Rows, columns only, whose digest lies between `low` and `high`, both included."""

    @abstractmethod
    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        """Leave a command for the owner of `run`; returns its id. Raises `UnknownRun`."""

    @abstractmethod
    def commands(self, run: RunId) -> list[Command]:
        """Commands not consumed yet, oldest first."""

    @abstractmethod
    def withdraw(self, run: RunId, command: int) -> bool:
        """Remove a command that waits; durable on return. False when it was consumed or never was.

        A command is either withdrawn or consumed, never both.
        """

    @abstractmethod
    def annotate(self, annotation: Annotation) -> None:
        """Set the annotation of that kind on a snapshot; empty removes it. Raises `UnknownSnapshot`."""

    @abstractmethod
    def annotations(self, run: RunId) -> list[Annotation]:
        """All annotations of a run, by sequence number."""

    @abstractmethod
    def prune(self, run: RunId, seqs: Collection[int], *, spared: SparedRows = spare_nothing) -> int:
        """Remove the patches of these rows, keep their headers, and return how many were removed.

        Skips rows that are pruned already, and the head. Removes the newest first, so that after an
        interruption those that are left are older than those that are gone. Works on a full disk.

        Before each step that removes something, and while no commit and no annotation can happen, calls
        `spared`, which may read the store, for rows that must stay: forks and pins may have come meanwhile.
        """

    @abstractmethod
    def delete(self, run: RunId, *, spared: SparedRows = spare_nothing) -> bool:
        """Remove a run with its rows, commands and annotations. Raises `UnknownRun`, `RunOwned`.

        Removes nothing and returns False when `spared`, called while no commit and no annotation can happen,
        names a row that must stay.
        """

    @abstractmethod
    def sweep(
        self, dead: Collection[Digest], *, since: int, older_than: Instant, spared: SparedObjects
    ) -> int:
        """Remove objects that nobody needs, and return how many were removed.

        `dead` was worked out from all rows up to commit number `since`. While no commit can happen, passes
        every later row to `spared` and removes those of the dead that it does not return and that were last
        written before `older_than`. Works on a full disk.
        """

    @abstractmethod
    def last_no(self) -> int:
        """The number of the newest commit, 0 when there is none."""

    @abstractmethod
    def stats(self) -> StoreStats:
        """How much there is."""

    @abstractmethod
    def check(self) -> Iterator[StoreProblem]:
        """Everything wrong that the store can find without knowing what the bytes mean."""

    @abstractmethod
    def compact(self) -> None:
        """Give free space back to the filesystem."""

    @abstractmethod
    def meta(self, key: str) -> bytes | None:
        """A value that `set_meta` recorded about the store itself, or None."""

    @abstractmethod
    def set_meta(self, key: str, value: bytes) -> None:
        """Record a value about the store itself, e.g. its address key id."""

    @abstractmethod
    def close(self) -> None:
        """Release everything, claims included. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
