"""The reception turns what has arrived at a run into events of a turn, or refuses it."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias, assert_never

import attrs

from orchestra.engine import orders
from orchestra.engine.agents import mercury
from orchestra.engine.agents.attempts import Attempt
from orchestra.engine.agents.conversation import begins, call_name, withdrawals
from orchestra.engine.agents.spending import (
    Need,
    find_excess,
    need_of,
    need_of_request,
    over_budget,
    settle_excess,
)
from orchestra.engine.inbox import Arrival, Due, Finished, Ordered, Said, Stored
from orchestra.engine.names import task_id
from orchestra.engine.rules.errands import errand_events, errand_outcome, errand_refusal, find_errand
from orchestra.engine.rules.moves import Rollback
from orchestra.engine.stage import Stage
from orchestra.engine.turn import Turn
from orchestra.engine.view import View
from orchestra.errors import AgentAbandoned, AgentFailed, BadOrder, OrchestraError
from orchestra.ids import TaskId
from orchestra.model import events as ev
from orchestra.model.state import TERMINAL
from orchestra.ports import agent as port

Events = tuple[ev.Event, ...]
_Answer: TypeAlias = asyncio.Future[Any]


class Reception:
    """Turns arrivals into events of a turn; knows the attempts under way and who waits for what."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.attempts: dict[TaskId, Attempt] = {}
        self.asking: dict[str, list[tuple[Attempt, _Answer]]] = {}
        self.errands: dict[TaskId, list[_Answer]] = {}  # who waits for them
        self._held: list[Said] = []  # what must not begin before there is room in a budget

    def desk(self, turn: Turn) -> mercury.Desk:
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
        held, self._held = self._held, []
        for said in held:
            self._take(turn, said)
        wish, status = turn.rollback, turn.state.status
        if wish is not None and status in TERMINAL:  # it was cancelled in this turn: a cancel is final
            turn.rollback = None
            error = BadOrder(order="rollback", reason=f"the run is {status}")
            self.turn_down(turn, error, wish.command, wish.answer)

    def _take_results(self, turn: Turn, results: list[Finished]) -> None:
        if len(results) > 1 and self._take_together(turn, results):
            return
        for each in results:
            self._take_end(turn, each)

    def _take_together(self, turn: Turn, results: list[Finished]) -> bool:
        """Take results in that do not depend on one another; False when one of them does not fit."""
        desk = self.desk(turn)
        events: list[ev.Event] = []
        for each in results:
            ended: Attempt = each.attempt
            events.extend(mercury.completion_events(desk, ended.task, each.outcome, ended.written))  # type: ignore[arg-type]
        try:
            turn.add(*events)
        except Exception:
            return False
        for each in results:
            self._forget(each.attempt)
        return True

    def _forget(self, attempt: Attempt) -> None:
        if self.attempts.get(attempt.task) is attempt:
            del self.attempts[attempt.task]

    def _take(self, turn: Turn, arrival: Arrival) -> None:
        match arrival:
            case Said() | Stored():
                self._take_from_agent(turn, arrival)
            case Finished():
                self._take_end(turn, arrival)
            case Ordered():
                self._take_order(turn, arrival)
            case Due():
                turn.add(ev.SnapshotRequested(at=self._stage.clock.now(), why=arrival.why, note=arrival.note))  # type: ignore[arg-type]

    def _take_from_agent(self, turn: Turn, arrival: Said | Stored) -> None:
        """Take in what an agent reported or wrote, or refuse it. Nothing is taken from a retired attempt."""
        attempt: Attempt = arrival.attempt
        if attempt.retired or self.attempts.get(attempt.task) is not attempt:
            return
        try:
            if isinstance(arrival, Said):
                self._take_report(turn, attempt, arrival)
            else:
                turn.add(mercury.output_event(self.desk(turn), attempt.assignment, arrival))
                turn.answers.append((arrival.answer, arrival.where))
                attempt.written = arrival.path
        except Exception as error:  # what an agent brought may raise whatever it likes when it is looked at
            failure = mercury.unusable(attempt.assignment.agent, error)
            if arrival.answer is None:  # it does not wait to hear that this is not taken
                attempt.fail(failure)
            refuse(arrival.answer, error if isinstance(error, OrchestraError) else failure)

    def _take_report(self, turn: Turn, attempt: Attempt, said: Said) -> None:
        report, desk = said.report, self.desk(turn)
        earlier: Any = None
        if isinstance(report, port.Emitted | port.Streamed):
            said_now, attempt.unsaid = self._stage.redactor.split(attempt.unsaid + report.text)
            if not said_now:
                return
            report = attrs.evolve(report, text=said_now)
        elif isinstance(report, port.Posted | port.ToolReported):
            attempt.unsaid = ""  # the message has all of it
            earlier = report = mercury.without_secrets(desk, attempt.task, report)
            if not self._fits(turn, desk, attempt, said):
                return
            if isinstance(report, port.Posted) and any(m.status == "streaming" for m in report.messages):
                self._withdraw_questions(turn, desk, attempt.task)
        elif isinstance(report, port.Secrets):
            self._stage.redactor.add(*report.texts)
            return
        elif isinstance(report, port.EffectBegun):
            earlier = mercury.earlier_effect(desk, attempt.task, report.name)
        if isinstance(report, port.Asked | port.Required | port.Limited):
            assert said.answer is not None, "BUG: whoever waits is called"
            self._have_wait(turn, desk, attempt, report, said.answer)
            return
        if isinstance(report, port.Delegated):
            assert said.answer is not None, "BUG: whoever gives an errand waits for it"
            self._give_errand(turn, desk, attempt, report, said.answer)
            return
        events = mercury.events_of(desk, attempt.task, report)
        if not isinstance(report, port.Decided) or not self._is_repeated(desk, attempt, events):
            turn.add(*events)
        if said.answer is not None:
            turn.answers.append((said.answer, earlier))

    def _fits(self, turn: Turn, desk: mercury.Desk, attempt: Attempt, said: Said) -> bool:
        """Whether what is about to be used fits the budgets; else it waits, is refused, or is to be less."""
        report: Any = said.report
        call = report.call if isinstance(report, port.ToolReported) else None
        known = None if call is None else turn.state.tool_calls.get(call_name(attempt.task, call.call))
        need = need_of(report, call is not None and begins(call, known))
        excess = None if need is None else find_excess(turn.view, need, self._under_way(turn))
        if excess is None or said.answer is None:
            return True
        has_other = isinstance(report, port.Posted) and report.has_other
        course, events = settle_excess(turn.view, desk.now, excess, has_other=has_other)
        turn.add(*events)
        match course:
            case "go":
                return self._fits(turn, desk, attempt, said)  # another limit may be in the way
            case "hold":
                if not said.is_held:
                    attempt.block(said.answer)
                self._held.append(attrs.evolve(said, is_held=True))
            case "other":
                turn.answers.append((said.answer, attrs.evolve(report, refused=True)))
            case "stop":
                refuse(said.answer, over_budget(attempt.assignment.agent, excess))
            case _:
                assert_never(course)
        return False

    def _under_way(self, turn: Turn) -> Iterator[Need]:
        """What the requests that are under way may use."""
        for attempt in self.attempts.values():
            agent = turn.state.agents.get(attempt.assignment.agent)
            message = None if agent is None or agent.message is None else turn.state.messages[agent.message]
            if message is not None and message.generation is not None and not attempt.retired:
                yield need_of_request(message.generation)

    def _is_repeated(self, desk: mercury.Desk, attempt: Attempt, events: Events) -> bool:
        """Whether an agent that began again says a decision which an earlier attempt has on the record."""
        (event,) = events
        assert isinstance(event, ev.DecisionMade), "BUG: a decision is one event"
        if attempt.earlier is None:
            attempt.earlier = mercury.earlier_decisions(desk, attempt.task)
        made = mercury.decision_identity(event.decision)
        repeated = attempt.earlier[made] > 0
        attempt.earlier[made] -= repeated
        return repeated

    def _have_wait(
        self, turn: Turn, desk: mercury.Desk, attempt: Attempt, report: mercury.Wait, answer: _Answer
    ) -> None:
        """Have an agent wait, unless what it waits for is there."""
        opened = mercury.wait_event(desk, attempt.task, report)
        held = turn.state.waits.get(opened.wait)
        if isinstance(report, port.Required):
            found = self._stage.find_key(report.name)
            if found is not None:
                if held is not None and held.status == "open":  # nobody said that the key is there
                    turn.add(ev.WaitClosed(at=desk.now, wait=opened.wait))
                turn.answers.append((answer, found))
                return
        elif held is not None and held.status == "closed" and held.answer is not None:
            turn.answers.append((answer, desk.view.open_value(held.answer)))
            return
        if held is None or held.status != "open":  # a key that was said to be there, and is not, too
            turn.add(opened)
        attempt.block(answer)
        self.asking.setdefault(opened.wait, []).append((attempt, answer))

    def _give_errand(
        self, turn: Turn, desk: mercury.Desk, attempt: Attempt, report: port.Delegated, answer: _Answer
    ) -> None:
        """Have an agent wait for an errand, which is given unless it is on the record."""
        asked = (attempt.task, report.agent, desk.text(report.task), call_name(attempt.task, report.call))
        name, local = find_errand(turn.view, *asked)
        if name is None:
            refusal = errand_refusal(turn.view, attempt.task, report.agent, local)
            if refusal:
                turn.answers.append((answer, port.Errand(error=refusal)))
                return
            turn.add(*errand_events(turn.view, desk.now, *asked))
            name = task_id(turn.state, local)
        outcome = errand_outcome(turn.view, name)
        if outcome is not None:
            turn.answers.append((answer, outcome))
            return
        attempt.block(answer)
        self.errands.setdefault(name, []).append(answer)

    def end_errand(self, view: View, name: TaskId) -> None:
        """An errand is over: whoever waits for it is told, and its agent stops."""
        outcome = errand_outcome(view, name)
        for answer in self.errands.pop(name, ()):
            if not answer.done():
                answer.set_result(outcome)
        if name in self.attempts:
            self.attempts[name].retire()

    def _withdraw_questions(self, turn: Turn, desk: mercury.Desk, task: TaskId) -> None:
        """Take back what was asked of people and nobody waits for: the conversation has taken another way."""
        unasked = [name for name in turn.board.open_waits if name not in self.asking]
        turn.add(*withdrawals(turn.state.waits, unasked, task, desk.now))

    def take_progress(self, turn: Turn, attempt: Attempt, report: port.Saved) -> None:
        """Take in what an agent said when it was asked for its progress; what cannot be stored is left."""
        with suppress(Exception):
            if not attempt.retired:
                turn.add(*mercury.events_of(self.desk(turn), attempt.task, report))

    def _take_end(self, turn: Turn, finished: Finished) -> None:
        attempt: Attempt = finished.attempt
        # It may have failed on the way, by what was taken in only after its agent had ended.
        outcome = finished.outcome if attempt.failure is None else attempt.failure
        self._forget(attempt)
        if attempt.retired:
            return
        desk = self.desk(turn)
        if turn.state.status == "waiting":  # it gave up waiting
            turn.add(ev.RunResumed(at=desk.now, reason=f"{attempt.task} ended", live=True))
        if attempt.unsaid:
            with suppress(OrchestraError):  # nobody waits for it
                turn.add(*mercury.events_of(desk, attempt.task, port.Emitted(text=attempt.unsaid)))
        if isinstance(outcome, AgentAbandoned):
            outcome = attempt.abandonment(outcome)
        if isinstance(outcome, port.Result | port.Judgement):
            events = mercury.completion_events(desk, attempt.task, outcome, attempt.written)
        else:
            assert isinstance(outcome, AgentFailed), f"BUG: an attempt ended with {outcome!r}"
            events = (mercury.failure_event(desk, attempt.task, outcome),)
        try:
            turn.add(*events)
        except Exception as error:
            turn.add(
                mercury.failure_event(desk, attempt.task, mercury.unusable(attempt.assignment.agent, error))
            )

    def _take_order(self, turn: Turn, ordered: Ordered) -> None:
        order: orders.Order = ordered.order
        try:
            if order.kind == "rollback":
                turn.rollback = self._rollback_of(turn, ordered)
                return
            events = orders.events_of(self.desk(turn), order, live=True)
            if order.kind == "provide" and self._stage.find_key(order.target) is None:
                who = f"process {os.getpid()} plays {turn.state.run}"  # and needs what is said to be there
                hint = "set it there, or stop that process and resume"
                raise BadOrder(order="provide", reason=f"{who} and does not see {order.target}: {hint}")
            turn.add(*events)
        except OrchestraError as error:
            self.turn_down(turn, error, ordered.id, ordered.answer)
            return
        if ordered.id is not None:
            turn.consumed.append(ordered.id)
        if ordered.answer is not None:
            turn.answers.append((ordered.answer, None))

    def turn_down(
        self, turn: Turn, error: OrchestraError, command: int | None, answer: _Answer | None
    ) -> None:
        """Refuse an order to whoever waits for it here; that of a command is put on the record."""
        refuse(answer, error)
        if command is not None:
            now, note = self._stage.clock.now(), orders.refusal(command, error)
            turn.add(ev.SnapshotRequested(at=now, why="user_requested", note=note))
            turn.consumed.append(command)

    def _rollback_of(self, turn: Turn, ordered: Ordered) -> Rollback:
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


def refuse(answer: _Answer | None, error: Exception) -> None:
    """Tell whoever waits that it was not taken."""
    if answer is not None and not answer.done():
        answer.set_exception(error)
