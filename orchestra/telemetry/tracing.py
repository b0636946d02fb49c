"""Tracing: the events of a run become spans. No content, unless asked for: what was said stays out.

A *leg* is a stretch of a run from a start, fork or resume to a pause, an end or the death of the process. Its
span is called `invoke_workflow NAME`; below it are the phases, below these the evaluations and the attempts,
which are called `invoke_agent NAME`; below an attempt are its requests to a model and its tool calls. Every
leg ends its own spans, so that one leg is whole without the others; later legs are linked to the first.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from orchestra.history.archive import Archive
from orchestra.ids import Instant, RunId
from orchestra.limits import INTERRUPTED_ROWS, PAGE_ROWS
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.records import Metrics
from orchestra.model.snapshot import Header, Headline
from orchestra.model.state import ENDED
from orchestra.ports.sink import CheckpointFailed, CheckpointSaved, TurnRecorded
from orchestra.ports.store import RowQuery
from orchestra.telemetry import names, talk
from orchestra.telemetry.records import Attributes, Fixed, Span, SpanLink, span_id, trace_id

Redact = Callable[[str], str]
_Place = tuple[str, int, int, int]  # a phase, its visit and round, and the generation
_Remark = ev.ConfidenceReported | ev.DecisionMade | ev.WaitOpened | ev.WaitClosed
_span: Final = maker(Span)


def leg_id(run: RunId, seq: int) -> str:
    """The id of the span of a leg that began at a snapshot."""
    return span_id(run, "leg", "", seq)


# What spans say alike in every run of a workflow is put together once, and kept for the next run.


@lru_cache(maxsize=1024)
def _of_leg(workflow: str) -> Fixed:
    operation: Attributes = {names.OPERATION: names.INVOKE_WORKFLOW}
    return Fixed({names.WORKFLOW: workflow, names.WORKFLOW_NAME: workflow, **operation})


@lru_cache(maxsize=1024)
def _of_phase(workflow: str, phase: str, visit: int, round: int | None = None) -> Fixed:
    """Of a visit of a phase, or of a round of its evaluation."""
    told: Attributes = {names.WORKFLOW: workflow, names.PHASE_ID: phase, names.VISIT: visit}
    return Fixed(told if round is None else {**told, names.ROUND: round})


@lru_cache(maxsize=4096)
def _of_attempt(
    workflow: str, agent: str, task: str, attempt: int, role: str, model: str | None, place: _Place
) -> Fixed:
    phase, visit, round, generation = place
    told: Attributes = {
        names.WORKFLOW: workflow, names.OPERATION: names.INVOKE_AGENT, names.AGENT_NAME: agent,
        names.TASK: task, names.ATTEMPT: attempt, names.ROLE: role, names.GENERATION: generation,
        names.PHASE_ID: phase, names.VISIT: visit, names.ROUND: round,
    }  # fmt: skip
    return Fixed(told if model is None else {**told, names.MODEL: model})


class RunTrace:
    """The open spans of one run. `take_turn` and `close` return the spans that were ended."""

    def __init__(self, run: RunId, workflow: str, redact: Redact, *, content: bool = False) -> None:
        self.run, self.workflow, self._redact = run, workflow, redact
        self._content = talk.Content(redact) if content else None
        self._trace = trace_id(run)
        self.leg: Span | None = None
        self._phase: Span | None = None
        self._evaluation: Span | None = None
        self._attempts: dict[str, Span] = {}
        self._steps: dict[str, dict[str, Span]] = {}  # requests and tool calls, by assignment and name
        self._ended: list[Span] = []
        self.saved: CheckpointSaved | None = None  # the turn that it is of comes next
        self._last = Instant(0)
        self._seq = 0
        self._status = ""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is open, so that the trace need not be kept."""
        return self.leg is None and self._phase is None and not self._attempts

    def note_failed(self, notice: CheckpointFailed) -> None:
        place = self._phase or self.leg
        if place is not None:
            about: Attributes = {names.SEQ: notice.seq, names.EXCEPTION_MESSAGE: self._redact(notice.error)}
            place.add_event(names.CHECKPOINT_FAILED, notice.at, about)

    def take_turn(self, turn: TurnRecorded) -> list[Span]:
        self._seq, self._last = turn.header.seq, turn.header.at
        self._status = turn.state.status
        if self.saved is not None:
            self._tell_saved(self.saved)
        for spent in [event for event in turn.events if type(event) is ev.Spent]:
            self._spend(spent)
        for event in turn.events:
            take = _TAKERS.get(type(event))  # not there: content, and what spans do not tell
            if take is not None:
                take(self, event, turn)
        if self.saved is not None:
            self._tell_saved(self.saved)
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> list[Span]:
        """End what is open: the process goes, or the run is given up."""
        self._close(self._last, self._status or "interrupted")
        return self._ended

    def _begin(self, event: ev.RunStarted | ev.Forked | ev.RunResumed, turn: TurnRecorded) -> None:
        if self.leg is not None:
            self._end(self.leg, event.at, "resumed")
            if not (isinstance(event, ev.RunResumed) and event.live):
                self._close(event.at, "interrupted")
        links = list[SpanLink]()
        if isinstance(event, ev.Forked):
            about: Attributes = {names.LINK: "forked_from", names.SEQ: event.from_seq}
            links.append(SpanLink(trace_id(event.from_run), leg_id(event.from_run, 0), about))
        elif isinstance(event, ev.RunResumed):
            links.append(SpanLink(self._trace, leg_id(self.run, 0), {names.LINK: "resumed_from"}))
        name, identity = f"{names.INVOKE_WORKFLOW} {self.workflow}", leg_id(self.run, self._seq)
        self.leg = self._span(name, identity, event.at, None, _of_leg(self.workflow))
        self.leg.links = tuple(links)
        if isinstance(event, ev.RunResumed) and event.recovered:
            self.leg.attributes[names.RECOVERED] = True
        self._go_on(turn, event.at)

    def _go_on(self, turn: TurnRecorded, at: Instant) -> None:
        """Open the phase again that a resumed or rolled-back run stands in."""
        state, started = turn.state, any(isinstance(each, ev.PhaseStarted) for each in turn.events)
        visit = state.path[-1] if state.path and not started else None
        if self._phase is None and visit is not None and visit.completed_at is None:
            self._open_phase(visit.phase, visit.visit, at)

    def _finish(self, event: ev.RunPaused | ev.RunEnded | ev.RolledBack, turn: TurnRecorded) -> None:
        match event:
            case ev.RolledBack():
                if self.leg is not None:
                    about: Attributes = {names.SEQ: event.from_seq, names.TO_SEQ: event.to_seq}
                    self.leg.add_event(names.RUN_ROLLED_BACK, event.at, about)
                self._close_work(event.at, "rolled_back")
                self._go_on(turn, event.at)
            case ev.RunPaused():
                if not self._attempts:
                    self._close_work(event.at, "paused")
                self._end_leg(event.at, "paused", turn.state.metrics)
            case ev.RunEnded():
                if event.failure is not None and self.leg is not None:
                    self._fail(self.leg, event.failure.error, event.failure.message, event.at)
                self._close_work(event.at, event.outcome)
                self._end_leg(event.at, event.outcome, turn.state.metrics)

    def _end_leg(self, at: Instant, status: str, metrics: Metrics) -> None:
        if self.leg is not None:
            self.leg.attributes |= {names.RECOVERIES: metrics.recoveries, names.ROLLBACKS: metrics.rollbacks}
            self._end(self.leg, at, status)
            self.leg = None

    def _close_work(self, at: Instant, status: str) -> None:
        interrupted = "interrupted" if status in ("shutdown", "running", "waiting") else status
        for task in list(self._attempts):
            self._end_attempt(task, at, "cancelled" if status in ENDED else interrupted)
        self._end(self._evaluation, at, interrupted)
        self._end(self._phase, at, interrupted)
        self._phase = self._evaluation = None

    def _close(self, at: Instant, status: str) -> None:
        self._close_work(at, status)
        self._end(self.leg, at, status)
        self.leg = None

    def _at_phase(self, event: ev.PhaseStarted | ev.PhaseCompleted, turn: TurnRecorded) -> None:
        if isinstance(event, ev.PhaseCompleted):
            self._end(self._evaluation, event.at, "completed")
            self._end(self._phase, event.at, "completed")
            self._phase = self._evaluation = None
            return
        self._end(self._phase, event.at, "left")
        same = [each for each in turn.events if type(each) is ev.PhaseStarted and each.phase == event.phase]
        place = 0 if len(same) == 1 else next(at for at, each in enumerate(same) if each is event)
        visit = (turn.state.visits.get(event.phase) or 1) - (len(same) - 1 - place)
        self._open_phase(event.phase, visit, event.at, place)

    def _open_phase(self, phase: str, visit: int, at: Instant, place: int = 0) -> None:
        identity = span_id(self.run, names.PHASE, f"{phase}/{place}", self._seq)
        fixed = _of_phase(self.workflow, phase, visit)
        self._phase = self._span(f"{names.PHASE} {phase}", identity, at, self.leg, fixed)

    def _at_attempt(
        self, event: ev.TaskCompleted | ev.TaskFailed | ev.TaskRetired, turn: TurnRecorded
    ) -> None:
        span = self._attempts.get(event.task)
        if span is None:
            return
        match event:
            case ev.TaskCompleted():
                if event.confidence is not None:
                    span.attributes[names.CONFIDENCE] = event.confidence
                self._end_attempt(event.task, event.at, "completed")
            case ev.TaskFailed():
                self._fail(span, event.failure.error, event.failure.message, event.at)
                self._end_attempt(event.task, event.at, "failed")
            case ev.TaskRetired():
                self._end_attempt(event.task, event.at, event.outcome)

    def _end_attempt(self, task: str, at: Instant, status: str) -> None:
        """End an attempt, and before it what of its conversation is still open."""
        for step in self._steps.pop(task, {}).values():
            self._end(step, at, "interrupted")
        self._end(self._attempts.pop(task, None), at, status)

    def _at_message(self, event: ev.MessagePosted, turn: TurnRecorded) -> None:
        """A request to a model began, or came to an end."""
        if event.task not in self._attempts or event.generation is None:
            return
        if event.status == "streaming":
            self._ask(event, turn)
            return
        span = self._steps.get(event.task, {}).pop(event.message, None)
        if span is None:  # an answer that was there already, and is not good enough
            return
        if event.status == "complete":
            span.attributes |= talk.answer_facts(event.generation)
            if self._content is not None:
                span.attributes[names.OUTPUT_MESSAGES] = self._content.messages([(event.role, event.parts)])
            self._end(span, event.at, "completed")
        else:
            self._fail(span, talk.failure_type(event.parts), "", event.at)
            self._end(span, event.at, "failed")

    def _ask(self, event: ev.MessagePosted, turn: TurnRecorded) -> None:
        assert event.generation is not None, "BUG: only requests are begun"
        agent, task, model = event.agent or "", event.task or "", event.generation.model
        fixed = talk.about_request(self.workflow, agent, task, model)
        name = f"{names.CHAT} {talk.model_parts(model)[1]}"
        span = self._open_step(task, event.message, name, event.at, fixed)
        span.is_client = fixed.attributes[names.PROVIDER] != names.SERVICE
        span.attributes |= {names.STEP: event.step_number, **talk.request_settings(event.generation)}
        if self._content is not None:
            posted = (each for each in turn.events if type(each) is ev.MessagePosted and each.task == task)
            said = [(each.role, each.parts) for each in posted if each.role != "assistant"]
            span.attributes[names.INPUT_MESSAGES] = self._content.messages(said)

    def _at_call(self, event: ev.ToolCallChanged, turn: TurnRecorded) -> None:
        """A tool began to run, or came to an end; one that waits to be allowed does not run."""
        call, task = event.record, event.record.task or ""
        if task not in self._attempts:
            return
        if call.status == "started":
            fixed = talk.about_tool(self.workflow, call.agent or "", task, call.tool)
            span = self._open_step(task, event.call, f"{names.EXECUTE_TOOL} {call.tool}", event.at, fixed)
            identity = event.call.removeprefix(f"{task}#")
            span.attributes |= {
                names.TOOL_CALL: identity,
                names.ATTEMPT: call.attempts,
                names.RISKY: call.risky,
            }
            if self._content is not None:
                span.attributes |= self._content.arguments(call)
            return
        found = self._steps.get(task, {}).pop(event.call, None)
        if found is None:  # it was refused, or it is not known whether it ran: nothing runs now
            return
        if self._content is not None:
            found.attributes |= self._content.result(call)
        if call.status == "failed":
            self._fail(found, talk.error_type(call.error), "", event.at)
        self._end(found, event.at, "completed" if call.status == "done" else call.status)

    def _open_step(self, task: str, name: str, title: str, at: Instant, fixed: Fixed) -> Span:
        """A span of a conversation, below the attempt that holds it."""
        steps = self._steps.setdefault(task, {})
        self._end(steps.pop(name, None), at, "interrupted")
        identity = span_id(self.run, "step", name, self._seq)
        span = steps[name] = self._span(title, identity, at, self._attempts[task], fixed)
        span.attributes[names.CONVERSATION] = f"{self.run}/{task}"
        return span

    def _launch(self, event: ev.AgentLaunched, turn: TurnRecorded) -> None:
        self._end_attempt(event.task, event.at, "interrupted")
        state, apollo = turn.state, event.role == "apollo"
        task = state.tasks[event.task]
        if apollo:
            self._open_evaluation(event.at, task.phase, task.visit, task.round)
        place = (task.phase, task.visit, task.round, state.generation)
        self._attempts[event.task] = self._span(
            f"{names.INVOKE_AGENT} {event.agent}",
            span_id(self.run, "attempt", f"{event.task}/{event.attempt}", self._seq),
            event.at,
            (self._evaluation if apollo else None) or self._phase or self.leg,
            _of_attempt(
                self.workflow, event.agent, event.task, event.attempt, event.role, event.model, place
            ),
        )

    def _open_evaluation(self, at: Instant, phase: str, visit: int, round: int) -> None:
        if self._evaluation is None:
            identity = span_id(self.run, names.EVALUATION, f"{phase}/{visit}/{round}", self._seq)
            fixed, parent = _of_phase(self.workflow, phase, visit, round), self._phase or self.leg
            self._evaluation = self._span(f"{names.EVALUATION} {phase}", identity, at, parent, fixed)

    def _at_evaluation(self, event: ev.CriterionScored | ev.EvaluationCompleted, turn: TurnRecorded) -> None:
        self._open_evaluation(event.at, event.phase, event.visit, event.round)
        span = self._evaluation
        assert span is not None, "BUG: an evaluation was just opened"
        if isinstance(event, ev.CriterionScored):
            scored: Attributes = {
                names.EVALUATION_NAME: event.score.criterion,
                names.EVALUATION_SCORE: event.score.score,
            }
            span.add_event(names.EVALUATION_RESULT, event.at, scored)
            return
        verdict = event.verdict
        span.attributes |= {names.VERDICT: verdict.kind, names.SCORE: verdict.score}
        told: Attributes = {names.EVALUATION_NAME: "verdict", names.EVALUATION_SCORE: verdict.score}
        span.add_event(names.EVALUATION_RESULT, event.at, {**told, names.EVALUATION_LABEL: verdict.kind})
        self._end(span, event.at, "completed")
        self._evaluation = None

    def _spend(self, event: ev.Spent) -> None:
        """Before anything else of the turn, in which the attempt that spent it may end."""
        if not (event.tokens_in or event.tokens_out or event.api_calls or event.cost_micros):
            return  # time passed, and no more
        for span in (self._attempt_of(event.agent), self.leg):
            if span is not None:
                span.add(names.TOKENS_IN, event.tokens_in)
                span.add(names.TOKENS_OUT, event.tokens_out)
                span.add(names.API_CALLS, event.api_calls)
                span.add(names.COST, event.cost_micros)

    def _attempt_of(self, agent: str | None) -> Span | None:
        spans = reversed(self._attempts.values())
        return next((each for each in spans if each.fixed.attributes[names.AGENT_NAME] == agent), None)

    def _remark(self, event: _Remark, turn: TurnRecorded) -> None:
        place = self._phase or self.leg
        if place is None:
            return
        match event:
            case ev.ConfidenceReported():
                span = self.leg if event.agent is None else self._attempt_of(event.agent)
                if span is not None:
                    span.attributes[names.CONFIDENCE] = event.value
            case ev.DecisionMade():
                decision = event.decision
                about: Attributes = {names.DECISION: decision.kind, names.AGENT: decision.agent}
                if decision.confidence is not None:
                    about[names.CONFIDENCE] = decision.confidence
                place.add_event(names.DECISION_MADE, event.at, about)
            case ev.WaitOpened():
                place.add_event(names.WAIT_OPENED, event.at, {names.WAIT: event.waits_for})
            case ev.WaitClosed():
                wait = turn.state.waits.get(event.wait)
                place.add_event(names.WAIT_CLOSED, event.at, {names.WAIT: wait.kind} if wait else {})

    def _tell_saved(self, notice: CheckpointSaved) -> None:
        """Write the snapshot of this turn down, as soon as there is a span for it."""
        place = self._phase or self.leg
        if place is None:
            return
        self.saved = None
        if notice.marked:
            about: Attributes = {
                names.SEQ: notice.seq,
                names.SIZE: notice.size,
                names.DURATION: round(notice.seconds, 6),
                names.TRIGGERS: notice.triggers,
            }
            place.add_event(names.CHECKPOINT_SAVED, notice.at, about)

    def _span(self, name: str, identity: str, at: Instant, parent: Span | None, fixed: Fixed) -> Span:
        return _span(
            run=self.run,
            trace=self._trace,
            id=identity,
            name=name,
            start=at,
            parent=parent.id if parent is not None else None,
            seq=self._seq,
            fixed=fixed,
        )

    def _fail(self, span: Span, error: str, message: str, at: Instant) -> None:
        said = self._redact(message)
        span.attributes[names.ERROR_TYPE] = error
        span.error = f"{error}: {said}" if said else error
        span.add_event(names.EXCEPTION, at, {names.EXCEPTION_TYPE: error, names.EXCEPTION_MESSAGE: said})

    def _end(self, span: Span | None, at: Instant, status: str) -> None:
        if span is not None:
            span.status = status
            span.end = at if at > span.start else span.start
            self._ended.append(span)


_TAKERS: Final[dict[type[ev.Event], Callable[[RunTrace, Any, TurnRecorded], None]]] = {
    **dict.fromkeys((ev.RunStarted, ev.Forked, ev.RunResumed), RunTrace._begin),
    **dict.fromkeys((ev.RunPaused, ev.RunEnded, ev.RolledBack), RunTrace._finish),
    **dict.fromkeys((ev.PhaseStarted, ev.PhaseCompleted), RunTrace._at_phase),
    ev.AgentLaunched: RunTrace._launch,
    **dict.fromkeys((ev.TaskCompleted, ev.TaskFailed, ev.TaskRetired), RunTrace._at_attempt),
    ev.MessagePosted: RunTrace._at_message,
    ev.ToolCallChanged: RunTrace._at_call,
    **dict.fromkeys((ev.CriterionScored, ev.EvaluationCompleted), RunTrace._at_evaluation),
    **dict.fromkeys((ev.ConfidenceReported, ev.DecisionMade, ev.WaitOpened, ev.WaitClosed), RunTrace._remark),
}
"""What is done about each kind of event."""


# What a process that died left open, read from the headers of the snapshots it saved. Whoever takes the run
# over tells these spans as interrupted, under the ids that spans below them refer to.


def interrupted_spans(archive: Archive, run: RunId, workflow: str, before: int) -> list[Span]:
    """The spans that were open when the process died whose last snapshot came before that number."""
    headers = list(_last_leg(archive, run, before - 1))[::-1]
    if not headers:
        return []
    name, identity = f"{names.INVOKE_WORKFLOW} {workflow}", leg_id(run, headers[0].seq)
    about: Attributes = {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW_NAME: workflow}
    spans = [_interrupted(headers[0], workflow, name, identity, about)]
    phase, attempts = _open_work(headers, workflow)
    for level in ([] if phase is None else [phase], attempts):
        parent = spans[-1].id
        for each in level:
            each.parent = parent
        spans += level
    for attempt in attempts:
        spans += _open_requests(headers, workflow, attempt)
    for each in spans:
        each.end = max(each.start, headers[-1].at)
    return spans


def _last_leg(archive: Archive, run: RunId, last: int) -> Iterator[Header]:
    """The headers of the last leg, newest first, back to the one it began with."""
    for top in range(last, max(last - INTERRUPTED_ROWS, -1), -PAGE_ROWS):
        low = max(top - PAGE_ROWS + 1, 0)
        for row in archive.store.rows(RowQuery(run=run, first=low, last=top, newest_first=True)):
            header = archive.header(row)
            yield header
            if any(line.kind in ("run_started", "forked", "run_resumed") for line in header.events):
                return


def _open_work(headers: list[Header], workflow: str) -> tuple[Span | None, list[Span]]:
    """The phase that was open in the end, and the attempts."""
    phase = _phase_at(headers[0], workflow)
    attempts: dict[str, Span] = {}
    for header in headers:
        starts = Counter[str]()  # of phases in this turn
        for line in header.events:
            match line.kind:
                case "phase_started":
                    phase = _interrupted_phase(header, workflow, line.what, starts[line.what])
                    starts[line.what] += 1
                case "phase_completed" | "rolled_back":
                    phase = None if line.kind == "phase_completed" else _phase_at(header, workflow)
                    attempts.clear()
                case "agent_launched":
                    attempts[line.what] = _interrupted_attempt(header, workflow, line)
                case "task_completed" | "task_failed" | "task_retired":
                    attempts.pop(line.what.partition(": ")[0], None)
                case _:
                    pass
    return phase, list(attempts.values())


def _open_requests(headers: list[Header], workflow: str, attempt: Span) -> Iterator[Span]:
    """The requests of an attempt without an answer; a line of one has `assistant STATUS MODEL NAME`."""
    open_requests: dict[str, Span] = {}
    task = str(attempt.attributes[names.TASK])
    for header in headers:
        for line in header.events if header.seq > attempt.seq else ():
            if line.kind != "message_posted" or line.what.count(" ") != 3:
                continue
            _, status, model, name = line.what.split(" ")
            if name.rpartition("#")[0] != task:
                continue
            open_requests.pop(name, None)
            if status == "streaming":
                about = dict(talk.about_request(workflow, line.who or "", task, model).attributes)
                title = f"{names.CHAT} {talk.model_parts(model)[1]}"
                identity = span_id(header.run, "step", name, header.seq)
                span = open_requests[name] = _interrupted(header, workflow, title, identity, about)
                span.parent = attempt.id
    yield from open_requests.values()


def _phase_at(header: Header, workflow: str) -> Span | None:
    """The phase that a run taken up again stands in, when it did not just start it."""
    if header.phase is None or any(line.kind == "phase_started" for line in header.events):
        return None
    return _interrupted_phase(header, workflow, header.phase, 0)


def _interrupted_phase(header: Header, workflow: str, phase: str, place: int) -> Span:
    identity = span_id(header.run, names.PHASE, f"{phase}/{place}", header.seq)
    return _interrupted(header, workflow, f"{names.PHASE} {phase}", identity, {names.PHASE_ID: phase})


def _interrupted_attempt(header: Header, workflow: str, line: Headline) -> Span:
    agent, attempt = line.who or "", int(dict(line.figures).get("attempt", 1))
    identity = span_id(header.run, "attempt", f"{line.what}/{attempt}", header.seq)
    about: Attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT_NAME: agent}
    about |= {names.TASK: line.what, names.ATTEMPT: attempt}
    return _interrupted(header, workflow, f"{names.INVOKE_AGENT} {agent}", identity, about)


def _interrupted(header: Header, workflow: str, name: str, identity: str, about: Attributes) -> Span:
    return Span(
        run=header.run,
        trace=trace_id(header.run),
        id=identity,
        name=name,
        start=header.at,
        seq=header.seq,
        status="interrupted",
        attributes={names.WORKFLOW: workflow, **about},
        error="interrupted: its process ended before it was done",
    )
