"""Sample rows and commits. A store does not look into the bytes, so any bytes and any digests will do."""

import hashlib
from collections.abc import Sequence
from typing import Any

import attrs

from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Fence, Instant, RunId, run_id
from orchestra.ports.store import Annotation, AnnotationKind, Claim, Commit, Row, RowQuery, Store
from orchestra.testing import clock

NOON, SECOND = clock.START, clock.SECOND
OWNER = "the contract suite"


def sample_digest(*parts: object) -> Digest:
    """32 bytes that are the same for the same parts."""
    return Digest(hashlib.sha256(repr(parts).encode()).digest())


def sample_object(text: str, size: int | None = None) -> tuple[Digest, bytes]:
    """An object made of a text, repeated to a size if one is given."""
    data = text.encode()
    if size is not None:
        data = (data * (size // len(data) + 1))[:size]
    return Digest(hashlib.sha256(data).digest()), data


def sample_row(run: str, seq: int, previous: Row | None = None, **columns: Any) -> Row:
    """The row that follows `previous`, or one as good as any; columns can be given by name."""
    header = f"header of {run}@{seq}\0".encode()
    patch = f"patch of {run}@{seq}\n".encode() * 3
    row = Row(
        run=run_id(run), seq=seq, digest=sample_digest(run, seq, sorted(columns.items())),
        parent=previous.digest if previous else None, at=Instant(NOON + seq * SECOND), status="running",
        phase="analyse", triggers=("decision",), agents=("structure",), marked=False, sealed_at=0,
        seal=sample_digest("seal", run), size=len(header) + len(patch), header=header, patch=patch,
    )  # fmt: skip
    return attrs.evolve(row, **columns)


def sample_commit(row: Row, previous: Row | None = None, *, fence: int = 1, **parts: Any) -> Commit:
    """The commit that appends `row` after `previous`."""
    expected = previous.digest if previous else None
    commit = Commit(row=row, fence=Fence(fence), expected=expected, family=row.run, workflow="code-review")
    return attrs.evolve(commit, **parts)


class SampleRun:
    """A run being recorded: holds its claim and knows its head, so that tests say only what matters."""

    def __init__(self, store: Store, run: str, *, new: bool = True, claim: Claim | None = None) -> None:
        self.store = store
        self.run: RunId = run_id(run)
        self.claim = claim or store.claim(self.run, OWNER, new=new)
        found = store.rows(RowQuery(run=self.run))
        self.head: Row | None = found[-1] if found else None

    def commit(self, *, parts: dict[str, Any] | None = None, **columns: Any) -> Commit:
        """The next commit, not handed in."""
        seq = 0 if self.head is None else self.head.seq + 1
        row = sample_row(self.run, seq, self.head, **columns)
        return sample_commit(row, self.head, fence=self.claim.fence, **(parts or {}))

    def append(self, *, parts: dict[str, Any] | None = None, **columns: Any) -> Row:
        """Commit the next row and return it as the store must give it back."""
        commit = self.commit(parts=parts, **columns)
        return self.accept(commit, self.store.commit([commit])[0])

    def extend(self, count: int) -> list[Row]:
        return [self.append() for _ in range(count)]

    def accept(self, commit: Commit, result: int | OrchestraError) -> Row:
        """Take over the result of a commit that had to succeed."""
        if isinstance(result, OrchestraError):
            raise AssertionError(f"{commit.row.run}@{commit.row.seq} was refused") from result
        self.head = attrs.evolve(commit.row, no=result, pruned=commit.row.patch is None)
        return self.head

    def send(self, body: bytes = b"pause", at: int = NOON) -> int:
        """Leave a command for the run; returns its id."""
        return self.store.send(self.run, body, Instant(at))

    def annotate(self, seq: int, kind: AnnotationKind, body: bytes = b"n") -> Annotation:
        """Set an annotation on a snapshot of the run and return it."""
        annotation = Annotation(run=self.run, seq=seq, kind=kind, body=body)
        self.store.annotate(annotation)
        return annotation

    def release(self) -> None:
        self.store.release(self.claim)

    def delete(self) -> None:
        """Give the run up and remove it."""
        self.release()
        assert self.store.delete(self.run)


def start_run(store: Store, run: str = "a", *, rows: int = 1) -> SampleRun:
    """A new run with that many plain rows."""
    started = SampleRun(store, run)
    started.extend(rows)
    return started


def numbers(results: Sequence[int | OrchestraError]) -> list[int]:
    """The numbers of commits that all had to succeed."""
    for result in results:
        if isinstance(result, OrchestraError):
            raise AssertionError("a commit was refused") from result
    return [result for result in results if isinstance(result, int)]
