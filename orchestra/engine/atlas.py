"""Atlas: the loop that plays a workflow.

One turn: take everything that has arrived, turn it into events, apply them, decide what follows, apply that
too, commit all of it as one row, and only then act on it. An intent is therefore durable before it is tried,
and a result before anything that depends on it.
"""

import asyncio
from time import monotonic
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import anyio
import attrs

from orchestra.checkpoint.commit import ActiveRun
from orchestra.engine.agents import mercury
from orchestra.engine.agents.attempts import Attempt, Deadlines
from orchestra.engine.agents.reception import Reception, refuse
from orchestra.engine.board import Board
from orchestra.engine.inbox import Finished, Inbox, Ordered, Said
from orchestra.engine.names import ATLAS, PERSON, errand_depth, item_index, local_of, specialist_name
from orchestra.engine.orders import Order
from orchestra.engine.rollback import kept_results, no_way_back
from orchestra.engine.rules.kept_items import gaps
from orchestra.engine.rules.launch import retry_of
from orchestra.engine.rules.moves import NOTHING, Move, Rollback, decision, failed_end
from orchestra.engine.run_state import RunState
from orchestra.engine.stage import Stage, peak_memory_bytes
from orchestra.engine.turn import Turn, settle
from orchestra.engine.view import View
from orchestra.errors import BadOrder, CommandGone, DamageError, OrchestraError, UsageError
from orchestra.ids import Instant, RunId, TaskId
from orchestra.limits import ELAPSED_SECONDS
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.state import ENDED
from orchestra.model.workflow import Workflow
from orchestra.ports import agent as port

EndingKind: TypeAlias = Literal["completed", "failed", "cancelled", "waiting", "paused", "interrupted"]
_spent: Final = maker(ev.Spent)
_MILESTONES: frozenset[type[ev.Event]] = frozenset(
    {ev.PhaseCompleted, ev.RunEnded, ev.RunWaiting, ev.RunPaused}
)
_BEGINNINGS: Final = (ev.AgentLaunched, ev.WaitClosed)
"""Events at which the time that has passed is put on the record in any case."""


@attrs.frozen(kw_only=True)
class Ending(RunState):
    """How playing a run ended in this process."""

    run: RunId
    kind: EndingKind


class Atlas:
    """Plays one run."""

    def __init__(self, stage: Stage, workflow: Workflow, active: ActiveRun, *, wait: bool = False) -> None:
        self._stage, self.workflow, self.active, self._wait = stage, workflow, active, wait
        self.inbox = Inbox(active.state.confidence.thresholds)
        self._board = Board()
        self._reception = Reception(stage)
        self._seen = View(workflow, active.state, stage.open, stage.manager.addresser)
        self._draining = False
        self._deadlines = Deadlines()
        self._under_way: set[Attempt] = set()  # also those that were retired and have not ended yet
        self._measured = monotonic()
        self._periodic = self._next_periodic()
        self.delivered: set[int] = set()  # commands of the store that were handed in here
        self._ordering: dict[asyncio.Future[Any], Order] = {}  # what somebody in this process waits for
        self._board.since = stage.clock.now()
        self._over = False

    async def play(self) -> Ending:
        """Go on until the run ends, or cannot go on without somebody; raises what the store raises."""
        try:
            self._board.refresh(self._view())
            for name in tuple(self._board.running):  # what was decided when the run began
                self._launch(name)
            return await self._turns()
        finally:
            self._over = True
            self._retire_all()
            for answer, order in self._ordering.items():
                refuse(answer, _too_late(order))
            if self._under_way:
                with anyio.CancelScope(shield=True):  # runners bound how long this can take
                    while self._under_way:
                        await self.inbox.wait()
                        self.inbox.take()
            self._deadlines.close()
            self.inbox.close()

    async def do_order(self, order: Order) -> None:
        """Do what somebody in this process wants; raises `BadOrder` when that cannot be."""
        if self._over:
            raise _too_late(order)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._ordering[answer] = order  # also when the store fails in the turn that takes it in
        self.inbox.post(Ordered(None, order, answer))
        try:
            await answer
        finally:
            del self._ordering[answer]

    def drain(self) -> None:
        """Stop in order: nothing new begins, what is under way is stopped, and the run stays resumable."""
        self._draining = True
        self._retire_all()
        self.inbox.wake()

    async def _turns(self) -> Ending:
        while True:
            turn = Turn(self._view(), self._board)
            arrived = self.inbox.take_turn() if self.delivered else self.inbox.take()
            self._reception.take_all(turn, arrived)
            if monotonic() >= self._periodic and self._reception.attempts and not turn.consumed:
                self._save_all(turn)
            move = NOTHING if self._draining else settle(turn, self._now)
            ending = self._ending(turn, move)
            if not await self._commit(turn, last=ending is not None):
                continue
            if turn.rollback is not None:
                await self._roll_back(turn, turn.rollback)
                continue
            if ending is not None:
                opener, state = self._stage.manager.archive.value, self.active.state
                run, workflow = self.active.run, self.workflow
                return Ending(run=run, kind=ending, state=state, opener=opener, workflow=workflow)
            due = [self._periodic - monotonic()] if self._reception.attempts else []
            wake = [(move.wake - self._now()) / 1_000_000] if move.wake is not None else []
            await self.inbox.wait(min((*due, *wake), default=None))

    def _next_periodic(self) -> float:
        every = self._stage.every_us
        return monotonic() + every / 1_000_000 if every else float("inf")

    def _save_all(self, turn: Turn) -> None:
        """A periodic snapshot: agents that want to be asked say how far they are."""
        self._periodic = self._next_periodic()
        for attempt in self._reception.attempts.values():
            saved = attempt.progress() if attempt.progress is not None else None
            if saved is not None:
                self._reception.take_progress(turn, attempt, saved)
        turn.add(ev.SnapshotRequested(at=self._now(), why="periodic"))

    def _ending(self, turn: Turn, move: Move) -> EndingKind | None:
        """Whether this is the last turn here; puts on the record why."""
        status = turn.state.status
        if turn.rollback is not None:
            return None
        if status in ENDED:
            return status  # type: ignore[return-value]
        if self._draining:
            if self._reception.attempts:
                return None
            turn.add(ev.RunEnded(at=self._now(), outcome="shutdown", reason="the process was asked to stop"))
            return "interrupted"
        if self._is_busy() or self.inbox or turn.answers or move.wake is not None:
            return None
        if any(isinstance(event, _BEGINNINGS) or self._ends_errand(event) for event in turn.events):
            return None
        return self._standstill(turn, status)

    def _is_busy(self) -> bool:
        """Whether an agent is at work and not waiting for anybody."""
        return any(not attempt.blocked for attempt in self._reception.attempts.values())

    def _standstill(self, turn: Turn, status: str) -> EndingKind | None:
        if status == "paused":
            return None if self._wait else "paused"
        if status == "running":
            waits = [turn.state.waits[name].text for name in self._board.open_waits]
            if not waits:
                turn.add(failed_end(self._now(), "nothing can go on, and nothing is waited for"))
                return "failed"
            turn.add(ev.RunWaiting(at=self._now(), reason="; ".join(waits)[:500]))
        return None if self._wait else "waiting"

    async def _commit(self, turn: Turn, *, last: bool = False) -> bool:
        """Make the turn durable, then tell everybody and start what was decided; False: it never was."""
        if turn.events and not await self._record(turn, last):
            return False
        for future, value in turn.answers:
            if not future.done():
                future.set_result(value)
        if turn.answers and not self._is_busy():
            self.inbox.wake()  # whoever got one answer stands in another wait: the run waits, too
        for event in turn.events:
            if type(event) is ev.AgentLaunched:
                self._launch(event.task)
            elif type(event) is ev.WaitClosed:
                self._answer(event)
            elif self._ends_errand(event):
                self._reception.end_errand(self._view(), event.task)
        return True

    def _ends_errand(self, event: ev.Event) -> TypeGuard[ev.TaskCompleted | ev.TaskRetired]:
        if not isinstance(event, (ev.TaskCompleted, ev.TaskRetired)) or ":" not in event.task:
            return False
        return errand_depth(local_of(event.task)) > 0

    async def _record(self, turn: Turn, last: bool) -> bool:
        measured = self._measured
        is_time = monotonic() - measured >= ELAPSED_SECONDS  # a run that is killed now should not lose it
        if last or is_time or not _MILESTONES.isdisjoint(map(type, turn.events)):
            turn.add(self._elapsed())
        try:
            state = turn.state.freeze()
            await self._stage.manager.record(self.active, turn.events, state=state, consumed=turn.consumed)
        except CommandGone:
            self._never_was(turn.consumed, measured)
            return False
        return True

    def _never_was(self, commands: list[int], measured: float) -> None:
        """Forget a turn whose command was taken back. One that could not be saved is delivered again."""
        self.delivered.difference_update(commands)
        self._measured = measured
        self._board.renew()

    def _launch(self, name: TaskId) -> None:
        task = self.active.state.tasks[name]
        if task.status != "running" or self.active.state.status in ENDED or self._draining:
            return
        assert task.by is not None, "BUG: an assignment is done by somebody"
        view, local = self._view(), local_of(name)
        specialist, index = view.specialist(specialist_name(local)), item_index(local)
        item = None if index is None else self._board.groups[specialist_name(local)].items[index]
        assignment = mercury.assignment(self._stage, view, name, task, specialist, item)
        limit = retry_of(view, specialist).timeout_us
        timeout = None if limit is None else limit / 1_000_000
        attempt = Attempt(self._stage, self.inbox, assignment, timeout, self._under_way, self._deadlines)
        self._reception.attempts[name] = attempt
        attempt.begin(view.index.agents[task.by])

    def _answer(self, event: ev.WaitClosed) -> None:
        """Whoever asked gets the answer; who needs a key that is not there after all goes on waiting."""
        for attempt, future in self._reception.asking.pop(event.wait, ()):
            if future.done():
                continue
            wait = self.active.state.waits[event.wait]
            if wait.kind != "dependency":
                future.set_result(None if wait.answer is None else self._stage.open(wait.answer))
            elif (found := self._stage.find_key(wait.text)) is not None:
                future.set_result(found)
            else:
                self.inbox.post(Said(attempt, port.Required(name=wait.text), future))

    async def _roll_back(self, turn: Turn, order: Rollback) -> None:
        """Go back to an earlier snapshot, keeping what need not be done again."""
        manager = self._stage.manager
        try:
            target = await manager.rollback_target(self.active.run, order.to)
        except (UsageError, DamageError) as error:
            await self._not_back(order, error)
            return
        view, measured = self._view(), self._measured
        to, blamed = target.header.seq, order.task or None
        kept = kept_results(view, target.state, blamed)
        details, by = {"kept": list(kept)}, PERSON if blamed is None else ATLAS
        what, why, others = f"Roll back to snapshot {to}", order.reason, order.alternatives
        chosen = decision(view, self._now(), "failure_handling", what, why, others, details=details, by=by)
        more: tuple[ev.Event, ...] = (*gaps(view, target.state, kept, self._now()), self._elapsed())
        if self.active.state.status == "paused":  # it stays so
            more = (*more, ev.RunPaused(at=self._now(), reason="rolled back while it was paused"))
        consumed = [] if order.command is None else [order.command]
        try:
            await manager.rollback(
                self.active,
                to,
                reason=order.reason,
                kept=kept,
                blamed=blamed,
                confidence_factor=self.workflow.policy.confidence.rollback_factor,
                before=(chosen,),
                more=more,
                consumed=consumed,
            )
        except CommandGone:
            self._never_was(consumed, measured)
            return
        if order.answer is not None and not order.answer.done():
            order.answer.set_result(None)
        self._board.renew()
        await self._stop_attempts()  # which may take long; nothing they still bring is taken in
        self._reception.asking.clear()
        self._reception.errands.clear()
        self.inbox.wake()

    async def _not_back(self, order: Rollback, error: OrchestraError) -> None:
        """There is nowhere to go back to: who wanted it hears of it, and a run that must fails."""
        turn, now = Turn(self._view(), self._board), self._now()
        if order.command is None and order.answer is None:
            reason = f"{order.reason}; it cannot go back: {no_way_back(error).reason}"
            turn.add(failed_end(now, reason, error="NoWayBack"))
        self._reception.turn_down(turn, no_way_back(error), order.command, order.answer)
        await self._commit(turn)
        self.inbox.wake()

    async def _stop_attempts(self) -> None:
        """Stop what is under way; runners give each a grace time and then give it up."""
        self._retire_all()
        later: list[Ordered] = []
        while self._reception.attempts:
            await self.inbox.wait()
            for arrival in self.inbox.take():
                if isinstance(arrival, Finished):
                    self._reception.attempts.pop(arrival.attempt.task, None)
                elif isinstance(arrival, Ordered):
                    later.append(arrival)
        for each in later:
            self.inbox.post(each)

    def _retire_all(self) -> None:
        for attempt in self._reception.attempts.values():
            attempt.retire()

    def _now(self) -> Instant:
        return self._stage.clock.now()

    def _view(self) -> View:
        """The run as it was committed."""
        if self._seen.state is not self.active.state:
            self._seen = self._seen.of(self.active.state)
        return self._seen

    def _elapsed(self) -> ev.Spent:
        since, self._measured = self._measured, monotonic()
        passed = int((self._measured - since) * 1_000_000)
        phase = self._view().phase
        is_limited = phase is not None and phase.limits is not None and phase.limits.seconds is not None
        return _spent(
            at=self._now(),
            elapsed_us=passed,
            memory_peak_bytes=peak_memory_bytes(),
            phase=phase.id if phase is not None and is_limited else None,
        )


def _too_late(order: Order) -> BadOrder:
    return BadOrder(order=order.kind, reason="the run is not played here any more")
