"""The CheckpointManager: records runs turn by turn, restores them, forks them and rolls them back.

One turn is one row. A turn that could not be saved leaves the run as it was (`on_save_error: fail`), or is
kept and saved before the next one (`continue`); either way nothing that was acknowledged is lost.
"""

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import anyio.to_thread
import attrs
from anyio.lowlevel import checkpoint_if_cancelled

from orchestra.checkpoint.commit import ActiveRun, RecordedTurn, TurnMaker
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.checkpoint.writer import StoreWriter
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.errors import (
    BadSetting,
    CommandGone,
    DamageError,
    IllegalEvent,
    NotResumable,
    OrchestraError,
    OwnershipError,
)
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_good, newest_whole
from orchestra.ids import RunId, TaskId
from orchestra.limits import UNSAVED_BYTES, UNSAVED_ROWS
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.apply.work import is_open_failure
from orchestra.model.frozen import converter, maker
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import State
from orchestra.model.tree import Table
from orchestra.ports import sink as port
from orchestra.ports.clock import Clock
from orchestra.ports.store import Claim, Row, Store

_checkpoint_saved: Final = converter(Row, port.CheckpointSaved, "seconds")
_turn_recorded: Final = maker(port.TurnRecorded)
_LOG: Final = logging.getLogger("orchestra.checkpoint")


class CheckpointManager:
    """Records, restores, forks and rolls back the runs of one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        owner: str,
        settings: CheckpointSettings | None = None,
        sinks: Iterable[port.Sink] = (),
        addresser: Addresser | None = None,
    ) -> None:
        self.settings = settings or CheckpointSettings()
        self.addresser = addresser or Addresser()
        self.archive = Archive(store, Framer(self.addresser, level=self.settings.level))
        self._store, self._clock, self._owner = store, clock, owner
        self._sinks = list(sinks)
        self._turns = TurnMaker(self.addresser, self.settings)
        self._writer = StoreWriter(store, pack=self._turns.pack)
        self._held: set[RunId] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what is queued. Claims stay until the store is closed or they are released."""
        await self._writer.close()

    async def begin(self, started: ev.RunStarted, *more: ev.Event, state: State | None = None) -> ActiveRun:
        """Start a run and record its first snapshot; raises `RunExists`, `RunOwned`. `state`: as `record`."""
        following = apply_all(begin(started), more) if state is None else state
        return await self._begin(started.run, following, (started, *more))

    async def record(
        self,
        active: ActiveRun,
        events: Sequence[ev.Event],
        *,
        state: State | None = None,
        consumed: Sequence[int] = (),
    ) -> Snapshot:
        """Record one turn, which answers the commands `consumed`; returns its snapshot once it is durable.

        `state` is what the events led to, where they are applied already. Raises `IllegalEvent` for an event
        that does not fit, `SnapshotTooLarge`, and what the store raises: `FenceLost` and `HeadMoved` when
        somebody else took over, `CommandGone` when a command was taken back or cannot be answered now,
        `StoreFull`, `StoreFailed` and others. After any of these the same turn may be recorded again.
        """
        assert events, "BUG: a turn has at least one event"
        async with active.lock:
            settled = None if active.uncertain is None else await self._reconcile(active, events)
            if settled is not None:
                return settled
            following = apply_all(active.state, events) if state is None else state
            turn = self._turns.make_turn(active, following, tuple(events), tuple(consumed))
            return await self._save(active, turn)

    async def restore(self, run: RunId, *, fallback: bool = True) -> ActiveRun:
        """Take a run over at its newest snapshot, or the newest whole one when that is damaged (`fallback`).

        Raises `UnknownRun`, `RunOwned`, `NotResumable`, and `Damaged` without `fallback`.
        """
        if not self.settings.enabled:
            reason = "a run that is not stored cannot be restored"
            raise BadSetting(setting="checkpoint.enabled", value=False, reason=reason)
        claim, head = await self._writer.call(lambda: self._take_over(run))
        async with self._holding(claim):
            await checkpoint_if_cancelled()  # who gave up while the store took its time does not get the run
            if head is None:
                head = await anyio.to_thread.run_sync(self._read_head, run)
            if isinstance(head, DamageError):
                if not fallback:
                    raise head
                return await self._fall_back(claim)
            if not head.state.is_resumable:
                raise NotResumable(run=run, status=head.state.status)
            return ActiveRun.at(claim, head)

    async def look(self, run: RunId, seq: int | None = None) -> Snapshot:
        """A snapshot, whole, without taking the run over: the head, or the one with that number."""

        def read() -> Snapshot:
            number = self.archive.run(run).head if seq is None else seq
            return self.archive.snapshot(self.archive.row(run, number))

        return await anyio.to_thread.run_sync(read)

    async def rollback_target(self, run: RunId, to: int | None) -> Snapshot:
        """The snapshot with that number, by default the last good one of the run."""
        if to is None:
            to = await anyio.to_thread.run_sync(last_good, self.archive, run)
        return await self.look(run, to)

    async def rollback(
        self,
        active: ActiveRun,
        to: int | None = None,
        *,
        reason: str,
        kept: Sequence[TaskId] = (),
        blamed: TaskId | None = None,
        confidence_factor: float = 1.0,
        before: Sequence[ev.Event] = (),
        more: Sequence[ev.Event] = (),
        consumed: Sequence[int] = (),
    ) -> Snapshot:
        """Go back to an earlier snapshot of the run, by default to its last good one.

        What was running is pending then; what was spent stays counted, and history is not touched. `kept`
        tasks keep their results, `blamed` is the one that failed. The events `before` it say why, `more` what
        follows. Raises `UnknownSnapshot`, `PrunedSnapshot`, `Damaged`, and what `record` raises.
        """
        async with active.lock:
            await self._reconcile(active, ())
            missing = [task for task in kept if task not in active.state.tasks]
            if missing:
                reason = f"there is no task {missing[0]!r} to keep"
                raise IllegalEvent(kind="rolled_back", run=active.run, reason=reason)
            target = await self.rollback_target(active.run, to)
            said: dict[str, Any] = {"reason": reason, "blamed": blamed, "kept": tuple(kept)}
            event = self._rollback_event(active, target, confidence_factor=confidence_factor, **said)
            return await self._jump_back(active, target, (*before, event, *more), kept, tuple(consumed))

    async def fork(
        self, run: RunId, seq: int, new: RunId, *, reason: str = "", more: Sequence[ev.Event] = ()
    ) -> ActiveRun:
        """Begin a new run at a snapshot of another; shares its objects, copies nothing."""
        base = await self.look(run, seq)
        event = ev.Forked(
            at=self._clock.now(), run=new, from_run=run, from_seq=seq, from_digest=base.digest, reason=reason
        )
        state, events = apply_all(base.state, (event, *more)), (event, *more)
        return await self._begin(new, state, events, base)

    async def flush(self, active: ActiveRun) -> None:
        """Save what `on_save_error: continue` kept back; raises what the store says when it still cannot."""
        async with active.lock:
            await self._save_kept_back(active)

    async def release(self, active: ActiveRun) -> None:
        """Give a run up, so that others may take it over. Idempotent."""
        await self._release(active.claim)

    async def _begin(
        self, run: RunId, state: State, events: tuple[ev.Event, ...], base: Snapshot | None = None
    ) -> ActiveRun:
        """Claim a new run and record its first snapshot."""
        claim = await self._writer.call(lambda: self._store.claim(run, self._owner, new=True))
        active = ActiveRun(claim=claim, state=state)
        async with self._holding(claim):
            turn = self._turns.make_jump(active, state, events, base)
            await self._save(active, turn, may_wait=False)
        return active

    @asynccontextmanager
    async def _holding(self, claim: Claim) -> AsyncIterator[None]:
        """A claim is held from now on; it is given back when what is done under it fails."""
        self._held.add(claim.run)
        self._writer.runs = len(self._held)
        try:
            yield
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._release(claim)
            raise

    def _take_over(self, run: RunId) -> tuple[Claim, Snapshot | DamageError | None]:
        """A claim on a run, and its newest snapshot when no other run's commits wait behind reading it."""
        claim = self._store.claim(run, self._owner)
        try:
            return claim, None if self._held else self._read_head(run)
        except BaseException:
            self._store.release(claim)
            raise

    def _read_head(self, run: RunId) -> Snapshot | DamageError:
        """The newest snapshot of a run, or what is wrong with it."""
        try:
            return self.archive.snapshot(self.archive.newest(run))
        except DamageError as damage:
            return damage

    async def _release(self, claim: Claim) -> None:
        self._held.discard(claim.run)
        self._writer.runs = len(self._held)
        await self._writer.call(lambda: self._store.release(claim))

    async def _fall_back(self, claim: Claim) -> ActiveRun:
        row = await anyio.to_thread.run_sync(self.archive.run, claim.run)
        head = row.head
        whole = await anyio.to_thread.run_sync(newest_whole, self.archive, claim.run, head)
        _LOG.warning("run %s: snapshot %d is damaged, going on from %d", claim.run, head, whole.header.seq)
        # A turn grows the generation by one at most, so none of those that are lost can have had this one.
        unused = whole.state.generation + head - whole.header.seq
        current = attrs.evolve(whole.state, generation=unused)
        active = ActiveRun(claim=claim, state=current, seq=head, digest=row.digest)
        event = self._rollback_event(active, whole, reason=f"snapshot {head} is damaged")
        await self._jump_back(active, whole, (event,))
        return active

    def _rollback_event(self, active: ActiveRun, target: Snapshot, **more: Any) -> ev.RolledBack:
        return ev.RolledBack(
            at=self._clock.now(),
            from_seq=active.seq,
            to_seq=target.header.seq,
            generation=active.state.generation + 1,
            undone=undone_tasks(active.state, target.state, more.get("kept", ())),
            **more,
        )

    async def _jump_back(
        self,
        active: ActiveRun,
        target: Snapshot,
        events: tuple[ev.Event, ...],
        kept: Sequence[TaskId] = (),
        consumed: tuple[int, ...] = (),
    ) -> Snapshot:
        state = apply_all(_state_after_rollback(target.state, active.state, kept), events)
        turn = self._turns.make_jump(active, state, events, target, consumed)
        return await self._save(active, turn)

    async def _save(self, active: ActiveRun, turn: RecordedTurn, *, may_wait: bool = True) -> Snapshot:
        started = self._clock.monotonic()
        try:
            if active.unsaved:
                await self._save_kept_back(active)
            row = await self._commit(turn)
        except OwnershipError:
            raise
        except OrchestraError as error:
            if turn.commit.consumed and self.settings.on_save_error == "continue":
                return await self._leave_unanswered(active, turn, error)
            return self._keep_or_raise(active, turn, error, may_wait)
        active.advance(turn)
        self._tell_saved(turn, row, self._clock.monotonic() - started)
        return turn.snapshot

    async def _save_kept_back(self, active: ActiveRun) -> None:
        while active.unsaved:
            await self._commit(active.unsaved[0])
            active.unsaved.pop(0)

    async def _commit(self, turn: RecordedTurn) -> Row:
        row = await self._writer.commit(turn.commit)
        if turn.seal is not None:
            turn.seal.mark()
        return row

    async def _leave_unanswered(
        self, active: ActiveRun, turn: RecordedTurn, error: OrchestraError
    ) -> Snapshot:
        """A turn that answers commands is not kept for later: whoever sent them could take them back."""
        _LOG.error("run %s: commands %s are not answered: %s", active.run, turn.commit.consumed, error)
        active.uncertain = turn
        if (settled := await self._reconcile(active, turn.events)) is not None:
            return settled
        reason = f"what it leads to cannot be saved ({error})"
        raise CommandGone(run=active.run, command=turn.commit.consumed[0], reason=reason) from error

    def _keep_or_raise(
        self, active: ActiveRun, turn: RecordedTurn, error: OrchestraError, may_wait: bool
    ) -> Snapshot:
        """Keep a turn that could not be saved for later, where that is set and there is room, or raise."""
        waiting = [*active.unsaved, turn]
        room = len(waiting) <= UNSAVED_ROWS and sum(each.commit.row.size for each in waiting) <= UNSAVED_BYTES
        keep = may_wait and room and self.settings.on_save_error == "continue"
        unsaved = len(waiting) if keep else len(active.unsaved)
        _LOG.error("run %s: snapshot %d was not saved: %s", active.run, turn.header.seq, error)
        now, seq = self._clock.now(), turn.header.seq
        self._tell(port.CheckpointFailed(run=active.run, seq=seq, at=now, error=str(error), unsaved=unsaved))
        if not keep:
            active.uncertain = turn
            raise error
        active.unsaved.append(turn)
        active.advance(turn)
        return turn.snapshot

    async def _reconcile(self, active: ActiveRun, events: Sequence[ev.Event]) -> Snapshot | None:
        """Find out what became of a turn whose commit failed: it may have happened all the same."""
        turn, active.uncertain = active.uncertain, None
        if turn is None:
            return None
        row = await self._writer.call(lambda: self._store.run(active.run))
        if row is None or row.digest != turn.commit.row.digest:
            return None
        if turn.seal is not None:
            turn.seal.mark()
        active.advance(turn)
        return turn.snapshot if turn.events == tuple(events) else None

    def _tell_saved(self, turn: RecordedTurn, row: Row, seconds: float) -> None:
        if row.size > self.settings.size_warning_bytes:
            _LOG.warning("run %s: snapshot %d adds %d bytes", row.run, row.seq, row.size)
            self._tell(port.CheckpointLarge(run=row.run, seq=row.seq, at=row.at, size=row.size))
        if self._sinks:
            self._tell(_checkpoint_saved(row, seconds=seconds))
            self._tell(_turn_recorded(run=row.run, header=turn.header, state=turn.state, events=turn.events))

    def _tell(self, notice: port.Notice) -> None:
        for sink in self._sinks:
            try:
                sink.notice(notice)
            except Exception:
                _LOG.exception("a sink failed on %s; the run goes on", notice.kind)


def undone_tasks(current: State, target: State, kept: Collection[TaskId]) -> tuple[TaskId, ...]:
    """The completed tasks whose results are lost by going back to `target`, sorted."""
    done, before = (
        {TaskId(name) for name, task in state.tasks.items() if task.status == "completed"}
        for state in (current, target)
    )
    return tuple(sorted(done - before - set(kept)))


def _state_after_rollback(target: State, current: State, kept: Sequence[TaskId]) -> State:
    """The target's state with what no rollback takes back; kept tasks keep all that belongs to them."""
    tasks, agents = target.tasks, target.agents
    for task in kept:
        tasks = tasks.set(task, current.tasks[task])
        agent = current.tasks[task].agent
        if agent in current.agents:
            agents = agents.set(agent, current.agents[agent])
    return attrs.evolve(
        target,
        tasks=tasks,
        agents=agents,
        outputs=_with_those_of(kept, target.outputs, current.outputs),
        effects=_with_those_of(kept, target.effects, current.effects),
        messages=_with_those_of(kept, target.messages, current.messages),
        tool_calls=_with_those_of(kept, target.tool_calls, current.tool_calls),
        completed_tasks=sum(task.status == "completed" for task in tasks.values()),
        open_failures=sum(is_open_failure(task) for task in tasks.values()),
        metrics=current.metrics,
        spending=current.spending,
        rollbacks=current.rollbacks,
    )


def _with_those_of(tasks: Sequence[TaskId], target: Table[Any], current: Table[Any]) -> Table[Any]:
    """What a table held, and what it holds now of some tasks."""
    for name, held in current.items() if tasks else ():
        if held.task in tasks:
            target = target.set(name, held)
    return target
