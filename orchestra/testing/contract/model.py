"""Random work against a model: after every step the store and a few dictionaries must show the same."""

import random
from collections.abc import Callable

import attrs
import pytest

from orchestra.errors import FenceLost, HeadMoved, OrchestraError, RunOwned
from orchestra.ids import Digest, Fence, Instant, RunId
from orchestra.ports.store import Annotation, AnnotationKind, Claim, Command, Commit, Row, RunRow, Store
from orchestra.testing.contract.base import FAR, Look, OpenStore, StoreSuite, look
from orchestra.testing.samples import NOON, sample_commit, sample_digest, sample_object, sample_row

SEEDS = 12
STEPS = 60
NAMES = ("ann", "bob", "cid", "dee")
KINDS: tuple[AnnotationKind, ...] = ("pin", "note")


@attrs.define
class ModelRun:
    """What one run must look like."""

    rows: list[Row]
    fence: int
    owner: str
    commands: dict[int, Command] = attrs.field(factory=dict)
    annotations: dict[tuple[int, AnnotationKind], Annotation] = attrs.field(factory=dict)


class Model:
    """Random steps, done to a store and to the model alike."""

    def __init__(self, open_store: OpenStore, seed: int) -> None:
        self.open_store = open_store
        self.store: Store = open_store()
        self.chance = random.Random(seed)
        self.runs: dict[RunId, ModelRun] = {}
        self.claims: dict[RunId, Claim] = {}
        self.objects: dict[Digest, bytes] = {}
        self.last_no = 0
        self.made = 0

    def step(self) -> None:
        """One of the things that can happen; what is listed twice happens more often."""
        often = [self.append, self.append, self.append, self.batch]
        steps: list[Callable[[], None]] = [
            *often, self.claim, self.release, self.zombie, self.stale, self.repeat, self.put, self.send,
            self.withdraw, self.annotate, self.prune, self.delete, self.sweep, self.compact, self.reopen,
        ]  # fmt: skip
        self.chance.choice(steps)()

    def claim(self) -> None:
        run = RunId(self.chance.choice(NAMES))
        owner = f"owner {self.chance.randrange(3)}"
        known = self.runs.get(run)
        if run in self.claims:
            with pytest.raises(RunOwned):
                self.store.claim(run, owner, new=known is None)
            return
        self.claims[run] = claim = self.store.claim(run, owner, new=known is None)
        if known is not None:
            known.fence, known.owner = known.fence + 1, owner
        assert claim.fence == (known.fence if known else 1)

    def release(self) -> None:
        if self.claims:
            self.store.release(self.claims.pop(self.chance.choice(sorted(self.claims))))

    def append(self) -> None:
        self._commit([self.chance.choice(sorted(self.claims))] if self.claims else [])

    def batch(self) -> None:
        self._commit(sorted(self.claims))

    def zombie(self) -> None:
        for run, known in self.runs.items():
            row = self._next_row(run)
            commit = sample_commit(row, known.rows[-1], fence=known.fence - 1, objects=(self._object(),))
            assert isinstance(self.store.commit([commit])[0], FenceLost)

    def stale(self) -> None:
        for run, known in self.runs.items():
            other = attrs.evolve(known.rows[-1], digest=sample_digest("other"))
            commit = sample_commit(self._next_row(run), other, fence=known.fence, objects=(self._object(),))
            assert isinstance(self.store.commit([commit])[0], HeadMoved)

    def repeat(self) -> None:
        for known in self.runs.values():
            before = known.rows[-2] if len(known.rows) > 1 else None
            commit = sample_commit(known.rows[-1], before, fence=known.fence)
            assert self.store.commit([commit]) == [known.rows[-1].no]

    def put(self) -> None:
        things = [self._object() for _ in range(self.chance.randrange(4))]
        self.store.put_objects(things)
        self.objects.update(things)

    def send(self) -> None:
        for run, known in self.runs.items():
            body = self.chance.randbytes(self.chance.randrange(50))
            id = self.store.send(run, body, Instant(NOON + self.made))
            assert id not in known.commands
            known.commands[id] = Command(id=id, run=run, at=Instant(NOON + self.made), body=body)

    def withdraw(self) -> None:
        for run, known in self.runs.items():
            wanted = self.chance.choice([*known.commands, self.made])
            assert self.store.withdraw(run, wanted) == (known.commands.pop(wanted, None) is not None)

    def annotate(self) -> None:
        for run, known in self.runs.items():
            seq, kind = self.chance.randrange(len(known.rows)), self.chance.choice(KINDS)
            body = self.chance.choice((b"", b"one", b"two"))
            annotation = Annotation(run=run, seq=seq, kind=kind, body=body)
            self.store.annotate(annotation)
            known.annotations.pop((seq, kind), None)
            if body:
                known.annotations[seq, kind] = annotation

    def prune(self) -> None:
        for run, known in self.runs.items():
            seqs = [seq for seq in range(len(known.rows) + 1) if self.chance.random() < 0.3]
            doomed = [row for row in known.rows[:-1] if row.seq in seqs and not row.pruned]
            assert self.store.prune(run, seqs) == len(doomed)
            for row in doomed:
                known.rows[row.seq] = attrs.evolve(row, patch=None, pruned=True)

    def delete(self) -> None:
        if not self.runs or self.chance.random() < 0.5:
            return
        run = self.chance.choice(sorted(self.runs))
        if run in self.claims:
            with pytest.raises(RunOwned):
                self.store.delete(run)
        else:
            self.store.delete(run)
            del self.runs[run]

    def sweep(self) -> None:
        dead = [digest for digest in sorted(self.objects) if self.chance.random() < 0.5]
        kept = {digest for digest in dead if self.chance.random() < 0.3}
        since = self.chance.randrange(self.last_no + 1)
        later: list[Row] = []

        def spare(rows: list[Row]) -> set[Digest]:
            later.extend(rows)
            return kept

        removed = self.store.sweep(dead, since=since, older_than=FAR, spared=spare)
        assert sorted(row.no for row in later) == [row.no for row in self._rows() if row.no > since]
        assert removed == len(set(dead) - kept)
        for digest in set(dead) - kept:
            del self.objects[digest]

    def compact(self) -> None:
        self.store.compact()

    def reopen(self) -> None:
        if self.store.properties.durable:
            self.store.close()
            self.claims.clear()
            self.store = self.open_store()

    def expected_look(self) -> Look:
        runs = [self._run_row(run, known) for run, known in self.runs.items()]
        return Look(
            runs=sorted(runs, key=lambda run: (run.created_at, run.run), reverse=True),
            rows=self._rows(),
            objects=self.objects,
            commands={run: list(known.commands.values()) for run, known in self.runs.items()},
            annotations={run: _in_order(known.annotations) for run, known in self.runs.items()},
            last_no=self.last_no,
        )

    def actual_look(self) -> Look:
        """What it shows, with annotations of one snapshot in a fixed order."""
        found = look(self.store)
        notes = {run: _in_order({(n.seq, n.kind): n for n in all}) for run, all in found.annotations.items()}
        return attrs.evolve(found, annotations=notes)

    def _commit(self, runs: list[RunId]) -> None:
        commits = [self._next_commit(run) for run in runs]
        for commit, result in zip(commits, self.store.commit(commits), strict=True):
            assert not isinstance(result, OrchestraError), result
            assert result > self.last_no
            run, self.last_no = commit.row.run, result
            claim = self.claims[run]
            known = self.runs.setdefault(run, ModelRun([], claim.fence, claim.owner))
            known.rows.append(attrs.evolve(commit.row, no=result))
            known.commands = {id: c for id, c in known.commands.items() if id not in commit.consumed}
            self.objects.update(commit.objects)

    def _next_commit(self, run: RunId) -> Commit:
        known = self.runs.get(run)
        commands = sorted(known.commands) if known else []
        return sample_commit(
            self._next_row(run),
            known.rows[-1] if known else None,
            fence=self.claims[run].fence,
            objects=tuple(self._object() for _ in range(self.chance.randrange(3))),
            requires=tuple(sorted(self.objects))[:2],
            consumed=tuple(id for id in commands if self.chance.random() < 0.5),
        )

    def _next_row(self, run: RunId) -> Row:
        known = self.runs.get(run)
        self.made += 1
        return sample_row(
            run,
            len(known.rows) if known else 0,
            known.rows[-1] if known else None,
            at=Instant(NOON + self.made),
            status=f"status {self.made}",
            patch=self.chance.randbytes(self.chance.randrange(300)),
        )

    def _object(self) -> tuple[Digest, bytes]:
        return sample_object(f"object {self.chance.randrange(40)}")

    def _rows(self) -> list[Row]:
        return sorted((row for known in self.runs.values() for row in known.rows), key=lambda row: row.no)

    def _run_row(self, run: RunId, known: ModelRun) -> RunRow:
        head = known.rows[-1]
        return RunRow(
            run=run, family=run, workflow="code-review", status=head.status, phase=head.phase,
            head=head.seq, digest=head.digest, created_at=known.rows[0].at, updated_at=head.at,
            fence=Fence(known.fence), owner=known.owner, owned=run in self.claims,
        )  # fmt: skip


def _in_order(annotations: dict[tuple[int, AnnotationKind], Annotation]) -> list[Annotation]:
    return [annotations[key] for key in sorted(annotations)]


class ModelContract(StoreSuite):
    """All promises at once, in orders nobody thought of."""

    @pytest.mark.parametrize("seed", range(SEEDS))
    def test_random_work(self, open_store: OpenStore, seed: int) -> None:
        model = Model(open_store, seed)
        try:
            for _ in range(STEPS):
                model.step()
                assert model.actual_look() == model.expected_look()
            assert list(model.store.check()) == []
        finally:
            model.store.close()
