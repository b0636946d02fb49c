"""Runs to verify, move and write out: recorded for real, with every part of a state in use."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.values import contribution, freeze
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId, TaskId, run_id
from orchestra.limits import LARGE_VALUE_BYTES
from orchestra.model import events as ev
from orchestra.model.records import Blocker, Decision, Effect, Failure, Issue, Output, Part, Score, Verdict
from orchestra.model.reducers import REDUCERS
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import State, WorkflowRef
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.ports.store import Row, Store
from orchestra.stores.memory import MemoryStore

ADDRESSER = Addresser()
FRAMER = Framer(ADDRESSER)
R1 = RunId("r1")
Recorded = tuple[MemoryStore, list[State]]
"""A store with runs in it, and the states of the first, by number."""
MERCURY, APOLLO, ATLAS = AgentId("mercury_1"), AgentId("apollo"), AgentId("atlas")


class TickingClock:
    """A clock that moves on by a millisecond whenever it is asked."""

    def __init__(self, at: int = 1_794_744_000_000_000) -> None:
        self._at = at

    def now(self) -> Instant:
        self._at += 1000
        return Instant(self._at)

    def monotonic(self) -> float:
        return self._at / 1e6


class Story:
    """Makes turns that use every part of a state; the same seed tells the same story."""

    def __init__(self, seed: int, *, large: bool = True) -> None:
        self._random = random.Random(seed)
        self._clock = TickingClock()
        self._large = large
        self._turn = 0

    def start(self, run: str) -> tuple[ev.RunStarted, ev.PhaseStarted]:
        return (
            ev.RunStarted(
                at=self._clock.now(),
                run=run_id(run),
                workflow=WorkflowRef(name="review", digest=Digest(b"w" * 32)),
                inputs=freeze({"files": ["a.py", "b.py"], "$odd": b"\0"}, ADDRESSER),
                thresholds=(0.5, 0.75),
            ),
            ev.PhaseStarted(at=self._clock.now(), phase=PhaseId("analyse")),
        )

    def turn(self) -> list[ev.Event]:
        """The events of the next turn."""
        self._turn += 1
        makers: Sequence[Callable[[Instant, int], list[ev.Event]]] = (
            self._work, self._work, self._work, self._talk, self._contribute, self._judge, self._wait,
            self._act, self._spend, self._fail,
        )  # fmt: skip
        return self._random.choice(makers)(self._clock.now(), self._turn)

    def _value(self) -> Value:
        size = LARGE_VALUE_BYTES + 1 if self._large and self._random.random() < 0.1 else 60
        return freeze({"text": self._text(size), "n": self._turn, "set": {1, 2}}, ADDRESSER)

    def _text(self, size: int) -> str:
        words = ("structure", "module", "tests", "weak", "graph", "naïve", "docs")
        text = ""
        while len(text) < size:
            text += self._random.choice(words) + " "
        return text[:size]

    def _work(self, at: Instant, turn: int) -> list[ev.Event]:
        task = TaskId(f"task-{turn}")
        return [
            ev.TaskPlanned(at=at, task=task, agent=MERCURY, phase=PhaseId("analyse"), key=Digest(b"k" * 32)),
            ev.AgentLaunched(at=at, agent=MERCURY, task=task),
            ev.MilestoneReached(
                at=at, agent=MERCURY, progress=0.5, step=f"step {turn}", private=self._value(),
                blockers=(Blocker(by="key", reason="none", at=at),),
            ),
            ev.TextEmitted(at=at, agent=MERCURY, text=self._text(40)),
            ev.TaskCompleted(at=at, task=task, result=self._value(), confidence=self._random.random()),
        ]  # fmt: skip

    def _fail(self, at: Instant, turn: int) -> list[ev.Event]:
        task = TaskId(f"task-{turn}")
        failure = Failure(error="ValueError", message="no", at=at, stack="…", details=self._value())
        return [
            ev.TaskPlanned(at=at, task=task, agent=MERCURY, phase=PhaseId("analyse")),
            ev.AgentLaunched(at=at, agent=MERCURY, task=task),
            ev.TaskFailed(at=at, task=task, failure=failure, final=True),
        ]

    def _talk(self, at: Instant, turn: int) -> list[ev.Event]:
        name = f"message-{turn}"
        return [
            ev.MessagePosted(at=at, message=name, role="assistant", agent=MERCURY, status="streaming"),
            ev.MessageStreamed(at=at, message=name, text=self._text(100)),
            ev.MessageStreamed(
                at=at, message=name, parts=(Part(kind="tool_call", data=self._value()),), status="complete"
            ),
        ]

    def _contribute(self, at: Instant, turn: int) -> list[ev.Event]:
        made: list[ev.Event] = []
        for reducer in REDUCERS:
            value: object = {"replace": [turn], "append": turn, "merge": {f"k{turn % 9}": turn}}.get(
                reducer, turn
            )
            held = contribution(reducer, value, ADDRESSER)
            made.append(ev.ContextContributed(at=at, name=f"${reducer}", contribution=held, agent=MERCURY))
        output = Output(digest=Digest(bytes([turn % 256]) * 32), media_type="text/plain", size=turn, at=at)
        return [*made, ev.OutputWritten(at=at, path=f"report-{turn}.md", output=output)]

    def _judge(self, at: Instant, turn: int) -> list[ev.Event]:
        phase, score = PhaseId("analyse"), Score(criterion=f"c{turn % 4}", score=0.5)
        decision = Decision(
            at=at, agent=ATLAS, kind="workflow_adjustment", description=f"choice {turn}",
            rationale=self._text(50), confidence=0.9, alternatives=("wait", "ask"), details=self._value(),
        )  # fmt: skip
        return [
            ev.CriterionScored(at=at, evaluation="e", agent=APOLLO, phase=phase, score=score),
            ev.EvaluationCompleted(
                at=at, evaluation=f"e{turn % 3}", agent=APOLLO, phase=phase,
                verdict=Verdict(kind="revise", score=0.4), issues=(Issue(description="thin"),),
            ),
            ev.DecisionMade(at=at, decision=decision),
        ]  # fmt: skip

    def _wait(self, at: Instant, turn: int) -> list[ev.Event]:
        name = f"wait-{turn}"
        return [
            ev.WaitOpened(at=at, wait=name, waits_for="question", text="why?", details=self._value()),
            ev.WaitClosed(at=at, wait=name, answer=self._value()),
        ]

    def _act(self, at: Instant, turn: int) -> list[ev.Event]:
        effect = Effect(name="mail", task=TaskId("t"), risky=True, intent=self._value(), intended_at=at)
        return [
            ev.EffectIntended(at=at, effect=f"effect-{turn}", details=effect),
            ev.EffectSettled(at=at, effect=f"effect-{turn}", status="done", outcome=self._value()),
        ]

    def _spend(self, at: Instant, turn: int) -> list[ev.Event]:
        return [
            ev.Spent(
                at=at,
                api_calls=1,
                tokens_in=10,
                tokens_out=turn,
                elapsed_us=1500,
                memory_peak_bytes=turn << 20,
            ),
            ev.SnapshotRequested(at=at, why="user_requested"),
            ev.ConfidenceReported(at=at, value=self._random.random()),
        ]


async def record(
    store: Store,
    *,
    run: str = "r1",
    turns: int = 80,
    seed: int = 1,
    large: bool = True,
    rollback_at: int | None = None,
) -> list[State]:
    """Record a run; returns its state at every snapshot."""
    story = Story(seed, large=large)
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        active = await manager.begin(*story.start(run))
        states = [active.state]
        for turn in range(turns):
            snapshot = await _recorded(manager, active, story, turn == rollback_at)
            states.append(snapshot.state)
        await manager.release(active)
    return states


async def _recorded(manager: CheckpointManager, active: ActiveRun, story: Story, rollback: bool) -> Snapshot:
    if rollback:
        return await manager.rollback(active, 3, reason="try again")
    return await manager.record(active, story.turn())


async def fork(store: Store, run: str, seq: int, new: str, *, turns: int = 5, seed: int = 2) -> None:
    """Fork a run and go on with it for a while."""
    story = Story(seed)
    for _ in range(200):  # names of its tasks must be new
        story.turn()
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        active = await manager.fork(run_id(run), seq, run_id(new))
        for _ in range(turns):
            await manager.record(active, story.turn())
        await manager.release(active)


# --- damaging a store in memory


def copied(store: MemoryStore) -> MemoryStore:
    """A store with the same content, to be damaged by itself."""
    copy = MemoryStore()
    copy._objects = dict(store._objects)
    copy._index.last_no = store._index.last_no
    for run, entry in store._index.runs.items():
        copy._index.runs[run] = attrs.evolve(
            entry, rows=list(entry.rows), annotations=dict(entry.annotations)
        )
    return copy


def objects_of(store: MemoryStore) -> dict[Digest, bytes]:
    return {digest: data for digest, (data, _) in store._objects.items()}


def set_object(store: MemoryStore, digest: Digest, data: bytes | None) -> None:
    """Change or remove an object behind the store's back."""
    _, at = store._objects.pop(digest)
    if data is not None:
        store._objects[digest] = (data, at)


def set_row(store: MemoryStore, run: str, seq: int, **columns: Any) -> None:
    """Change a row behind the store's back."""
    rows = store._index.runs[RunId(run)].rows
    rows[seq] = attrs.evolve(rows[seq], **columns)


def rows_of(store: MemoryStore, run: str) -> list[Row]:
    return store._index.runs[RunId(run)].rows


def flipped(data: bytes, bit: int) -> bytes:
    """`data` with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# --- what a reader meets


def is_readable(store: Store, row: Row) -> bool:
    """Whether a snapshot and every large value in it can be read, by a reader that knows nothing yet."""
    archive = Archive(store, FRAMER)
    try:
        for value in large_values(archive.snapshot(row).state):
            archive.value(value)
    except DamageError:
        return False
    return True


def unreadable(store: MemoryStore, run: str) -> list[int]:
    return [row.seq for row in rows_of(store, run) if not row.pruned and not is_readable(store, row)]


def large_values(thing: Any) -> list[Value]:
    """The values in a state that are objects of their own."""
    if isinstance(thing, Value):
        return [thing] if thing.digest is not None else []
    parts: Any = ()
    if isinstance(thing, Vec | tuple):
        parts = thing
    elif isinstance(thing, Table):
        parts = thing.values()
    elif attrs.has(type(thing)):
        parts = [getattr(thing, field.name) for field in attrs.fields(type(thing))]
    return [value for part in parts for value in large_values(part)]


def at(archive: Archive, seq: int) -> Snapshot:
    """A snapshot of the first run."""
    return archive.snapshot(archive.row(R1, seq))
