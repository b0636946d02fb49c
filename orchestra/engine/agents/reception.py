"""The reception: what has arrived, taken into a turn as events, or refused to whoever brought it."""

import asyncio
import os
from contextlib import suppress
from typing import Any

from orchestra.engine import orders
from orchestra.engine.agents import mercury
from orchestra.engine.agents.attempts import Attempt
from orchestra.engine.agents.results import completion_events, failure_event, unusable
from orchestra.engine.inbox import Arrival, Due, Finished, Ordered, Said, Stored
from orchestra.engine.rules.moves import Rollback
from orchestra.engine.stage import Stage
from orchestra.engine.turn import Turn
from orchestra.errors import AgentAbandoned, AgentFailed, BadOrder, OrchestraError
from orchestra.ids import TaskId
from orchestra.model import events as ev
from orchestra.model.state import TERMINAL
from orchestra.ports import agent as port


class Reception:
    """Takes arrivals in."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.attempts: dict[TaskId, Attempt] = {}
        self.asking: dict[str, list[tuple[Attempt, asyncio.Future[Any]]]] = {}

    def desk(self, turn: Turn) -> mercury.Desk:
        """What is needed to understand reports."""
        return mercury.Desk(view=turn.view, redactor=self._stage.redactor, now=self._stage.clock.now())

    def take_all(self, turn: Turn, arrivals: list[Arrival]) -> None:
        """Take arrivals in, in their order; results that come one after the other in one go."""
        results: list[Finished] = []
        for arrival in arrivals:
            if isinstance(arrival, Finished) and _is_plain(turn, arrival):
                results.append(arrival)
                continue
            self._take_results(turn, results)
            results = []
            self._take(turn, arrival)
        self._take_results(turn, results)
        self._stay(turn)

    def _take_results(self, turn: Turn, results: list[Finished]) -> None:
        if len(results) > 1 and self._all_taken(turn, results):
            return
        for each in results:
            self._finished(turn, each)

    def _all_taken(self, turn: Turn, results: list[Finished]) -> bool:
        """Take results in that do not depend on one another; False when one of them does not fit."""
        desk, attempts = self.desk(turn), self.attempts
        events: list[ev.Event] = []
        for each in results:
            ended: Attempt = each.attempt
            events.extend(completion_events(desk, ended.task, each.outcome, ended.written))  # type: ignore[arg-type]
        try:
            turn.add(*events)
        except Exception:
            return False
        for each in results:
            attempt: Attempt = each.attempt
            if attempts.get(attempt.task) is attempt:
                del attempts[attempt.task]
        return True

    def _take(self, turn: Turn, arrival: Arrival) -> None:
        """Take one arrival in."""
        match arrival:
            case Said():
                self._said(turn, arrival)
            case Stored():
                self._stored(turn, arrival)
            case Finished():
                self._finished(turn, arrival)
            case Ordered():
                self._ordered(turn, arrival)
            case Due():
                turn.add(ev.SnapshotRequested(at=self._stage.clock.now(), why=arrival.why, note=arrival.note))  # type: ignore[arg-type]

    def _stored(self, turn: Turn, stored: Stored) -> None:
        desk, work = self.desk(turn), stored.attempt.assignment
        try:
            event = mercury.output_event(desk, work, stored.path, stored.content, stored.media_type)
        except Exception as error:
            self._refuse(stored.attempt, stored.answer, error)
            return
        if self.offer(turn, (event,), stored.answer, stored.where, stored.attempt):
            stored.attempt.written = stored.path

    def _said(self, turn: Turn, said: Said) -> None:
        attempt: Attempt = said.attempt
        report, desk = said.report, self.desk(turn)
        if attempt.retired or self.attempts.get(attempt.task) is not attempt:
            return
        earlier: Any = None
        if isinstance(report, port.Emitted):
            said_now, attempt.unsaid = self._stage.redactor.split(attempt.unsaid + report.text)
            if not said_now:
                return
            report = port.Emitted(text=said_now)
        if isinstance(report, port.EffectBegun):
            earlier = mercury.earlier_effect(desk, attempt.task, report.name)
        try:
            events = mercury.events_of(desk, attempt.task, report)
            found = self._stage.provided(report.name) if isinstance(report, port.Required) else None
        except Exception as error:  # what an agent brought may raise whatever it likes when it is looked at
            self._refuse(attempt, said.answer, error)
            return
        if isinstance(report, port.Asked | port.Required | port.Limited):
            self._asked(turn, desk, attempt, said, events, found)
        elif isinstance(report, port.Decided) and self._is_repeated(desk, attempt, events):
            self.offer(turn, (), said.answer, None, attempt)
        else:
            self.offer(turn, events, said.answer, earlier, attempt)

    def _is_repeated(self, desk: mercury.Desk, attempt: Attempt, events: tuple[ev.Event, ...]) -> bool:
        """Whether an agent that began again says a decision which an earlier attempt has on the record."""
        (event,) = events
        assert isinstance(event, ev.DecisionMade), "BUG: a decision is one event"
        if attempt.earlier is None:
            attempt.earlier = mercury.earlier_decisions(desk, attempt.task)
        made = mercury.decision_identity(event.decision)
        repeated = attempt.earlier[made] > 0
        attempt.earlier[made] -= repeated
        return repeated

    def _asked(
        self,
        turn: Turn,
        desk: mercury.Desk,
        attempt: Attempt,
        said: Said,
        events: tuple[ev.Event, ...],
        found: str | None,
    ) -> None:
        """Have an agent wait, unless what it waits for is there; `found` is the key that it wants."""
        report = said.report
        assert isinstance(report, port.Asked | port.Required | port.Limited), "BUG: only these wait"
        assert said.answer is not None, "BUG: whoever waits is called"
        if isinstance(report, port.Required) and found is not None:
            self._arrived(turn, desk, attempt, report)
            turn.answers.append((said.answer, found))
            return
        name = mercury.wait_name(desk, attempt.task, report)
        held = turn.state.waits.get(name)
        if held is not None and held.status == "closed" and not isinstance(report, port.Required):
            turn.answers.append((said.answer, desk.view.opened_value(held.answer)))
            return
        try:
            turn.add(*events)
        except Exception as error:
            self._refuse(attempt, said.answer, error)
            return
        attempt.block(said.answer)
        self.asking.setdefault(name, []).append((attempt, said.answer))

    def _arrived(self, turn: Turn, desk: mercury.Desk, attempt: Attempt, report: port.Required) -> None:
        """A key that was waited for is there, without anybody having said so."""
        name = mercury.wait_name(desk, attempt.task, report)
        held = turn.state.waits.get(name)
        if held is not None and held.status == "open":
            turn.add(ev.WaitClosed(at=desk.now, wait=name))

    def offer(
        self,
        turn: Turn,
        events: tuple[ev.Event, ...],
        answer: "asyncio.Future[Any] | None",
        value: Any,
        attempt: Attempt,
    ) -> bool:
        """Take events in whole, or refuse them to whoever reported them; whether they were taken."""
        if attempt.retired or self.attempts.get(attempt.task) is not attempt:
            return False
        try:
            turn.add(*events)
        except Exception as error:
            self._refuse(attempt, answer, error)
            return False
        if answer is not None:
            turn.answers.append((answer, value))
        return True

    def saved(self, turn: Turn, attempt: Attempt, report: port.Saved) -> None:
        """Take in what an agent said when it was asked for its progress; what cannot be stored is left."""
        if attempt.retired:
            return
        with suppress(Exception):
            turn.add(*mercury.events_of(self.desk(turn), attempt.task, report))

    def _refuse(self, attempt: Attempt, answer: "asyncio.Future[Any] | None", error: Exception) -> None:
        """Tell an agent that what it reported is not taken; if it does not wait to hear it, it has failed."""
        agent = attempt.assignment.agent
        if answer is None:
            attempt.fail(unusable(agent, error))
        else:
            refuse(answer, error if isinstance(error, OrchestraError) else unusable(agent, error))

    def _finished(self, turn: Turn, finished: Finished) -> None:
        attempt: Attempt = finished.attempt
        # It may have failed on the way, by what was taken in only after its agent had ended.
        outcome = finished.outcome if attempt.failure is None else attempt.failure
        if self.attempts.get(attempt.task) is attempt:
            del self.attempts[attempt.task]
        if attempt.retired:
            return
        desk = self.desk(turn)
        if turn.state.status == "waiting":  # it gave up waiting
            turn.add(ev.RunResumed(at=desk.now, reason=f"{attempt.task} ended", live=True))
        if attempt.unsaid:
            last = port.Emitted(text=attempt.unsaid)
            self._take_all(turn, mercury.events_of(desk, attempt.task, last))
        if isinstance(outcome, port.Result | port.Judgement):
            events = completion_events(desk, attempt.task, outcome, attempt.written)
        elif isinstance(outcome, AgentAbandoned):
            turn.add(failure_event(desk, attempt.task, attempt.abandoned(outcome)))
            return
        else:
            assert isinstance(outcome, AgentFailed), f"BUG: an attempt ended with {outcome!r}"
            events = (failure_event(desk, attempt.task, outcome),)
        try:
            turn.add(*events)
        except Exception as error:
            turn.add(failure_event(desk, attempt.task, unusable(attempt.assignment.agent, error)))

    def _take_all(self, turn: Turn, events: tuple[ev.Event, ...]) -> None:
        """Take events in that nobody waits for, if they fit."""
        with suppress(OrchestraError):
            turn.add(*events)

    def _ordered(self, turn: Turn, ordered: Ordered) -> None:
        order: orders.Order = ordered.order
        try:
            if order.kind == "rollback":
                turn.rollback = self._wish(turn, ordered)
                return
            events = orders.events_of(self.desk(turn), order, live=True)
            if order.kind == "provide":
                self._check_seen(turn, order.target)
            turn.add(*events)
        except OrchestraError as error:
            self.turn_down(turn, error, ordered.id, ordered.answer)
            return
        if ordered.id is not None:
            turn.consumed.append(ordered.id)
        if ordered.answer is not None:
            turn.answers.append((ordered.answer, None))

    def _check_seen(self, turn: Turn, name: str) -> None:
        """Raise `BadOrder` when this process, which needs it, does not see what is said to be there."""
        if self._stage.provided(name) is None:
            run, cure = turn.state.run, "set it there, or stop that process and resume"
            reason = f"process {os.getpid()} plays {run} and does not see {name}: {cure}"
            raise BadOrder(order="provide", reason=reason)

    def turn_down(
        self, turn: Turn, error: OrchestraError, command: int | None, answer: "asyncio.Future[Any] | None"
    ) -> None:
        """Refuse an order to whoever waits for it here; that of a command is put on the record."""
        refuse(answer, error)
        if command is not None:
            now, note = self._stage.clock.now(), orders.refusal(command, error)
            turn.add(ev.SnapshotRequested(at=now, why="user_requested", note=note))
            turn.consumed.append(command)

    def _stay(self, turn: Turn) -> None:
        """A run that was cancelled in the turn in which it should go back stays so: a cancel is final."""
        wish, status = turn.rollback, turn.state.status
        if wish is not None and status in TERMINAL:
            turn.rollback = None
            error = BadOrder(order="rollback", reason=f"the run is {status}")
            self.turn_down(turn, error, wish.command, wish.answer)

    def _wish(self, turn: Turn, ordered: Ordered) -> Rollback:
        """The rollback a person wants; raises `BadOrder`."""
        order: orders.Order = ordered.order
        orders.check_open(turn.state, order)
        if turn.rollback is not None:
            raise BadOrder(order="rollback", reason="the run is going back already")
        to = orders.snapshot_number(order)
        reason = self._stage.redactor.text(order.reason) or f"it was {orders.ASKED_FOR}"
        return Rollback(task=TaskId(""), reason=reason, to=to, command=ordered.id, answer=ordered.answer)


def _is_plain(turn: Turn, finished: Finished) -> bool:
    """Whether an attempt brought the result of a specialist, and nothing else is to be said about it."""
    attempt: Attempt = finished.attempt
    return (
        type(finished.outcome) is port.Result
        and not attempt.retired
        and not attempt.unsaid
        and attempt.failure is None
        and turn.state.status == "running"
    )


def refuse(answer: "asyncio.Future[Any] | None", error: Exception) -> None:
    """Tell whoever waits that it was not taken."""
    if answer is not None and not answer.done():
        answer.set_exception(error)
