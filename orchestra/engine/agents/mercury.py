"""Mercury: what an assignment's agent is handed, and what its reports mean as events."""

from collections import Counter
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, Final, assert_never

import attrs

from orchestra.codec.values import address_of, freeze
from orchestra.engine.agents import apollo
from orchestra.engine.names import EVALUATION, local_of, specialist_name
from orchestra.engine.redact import Redactor
from orchestra.engine.rules.moves import decision
from orchestra.engine.view import NOTHING_NEEDED, LazyWhole, View
from orchestra.errors import AgentFailed
from orchestra.ids import AgentId, EffectKey, Instant, TaskId
from orchestra.limits import OUTPUT_BYTES, TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.records import AgentState, Blocker, Decision, Effect, Output, Task
from orchestra.model.workflow import Specialist
from orchestra.ports import agent as port

_assignment: Final = maker(port.Assignment)
_NO_STATE = AgentState(role="mercury")
CUT: Final = f"\n[cut here: of what an agent streams {TEXT_CHARS:,} characters are kept]"
"""The end of a streamed text that went on."""


@attrs.frozen(kw_only=True)
class Desk:
    """What it takes to turn reports and orders into events: the run as it is, and what must be left out."""

    view: View
    redactor: Redactor
    now: Instant

    def freeze(self, value: Any) -> Any:
        """A value without secrets, as immutable bytes; raises `UnstorableValue` or `ValueTooLarge`."""
        return freeze(self.redactor.value(value), self.view.addresser)

    def freeze_given(self, value: Any) -> Any:
        """As `freeze`; None when nothing was given."""
        return None if value is None else self.freeze(value)

    def text(self, text: str) -> str:
        """A text without secrets."""
        return self.redactor.text(text)


# What an agent is handed.


def assignment(
    view: View,
    name: TaskId,
    task: Task,
    specialist: Specialist | None,
    *,
    item: Any,
    index: int | None,
    workspace: str,
    project: str,
    secrets: Mapping[str, Any],
) -> port.Assignment:
    """What the agent of an assignment is handed; `specialist` is whom it belongs to, if not the evaluator."""
    held = view.state.agents.get(task.agent) or _NO_STATE
    local = local_of(name)
    # An agent that is launched for the first time may stand in the middle, where a rollback put it.
    begun = held.step or held.progress or held.partial or held.private is not None
    again = task.attempts > 1 or bool(begun)
    assert task.by is not None, "BUG: an assignment is done by somebody"
    return _assignment(
        run=view.state.run,
        phase=task.phase,
        visit=task.visit,
        round=task.round,
        task=name,
        name=local,
        agent=task.agent,
        role=held.role,
        attempt=task.attempts,
        effect_key=task.effect_key or EffectKey(name),
        description=task.description,
        inputs={**view.inputs(), **secrets} if secrets else view.lazy_mapping(view.state.inputs),
        context=LazyWhole(view.context, specialist),
        needs=view.needs(specialist) if specialist is not None and specialist.needs else NOTHING_NEEDED,
        settings=view.lazy_mapping(view.index.agents[task.by].settings),
        workspace=workspace,
        project=project,
        item=item,
        index=index,
        feedback=view.feedback(),
        private=view.open_value(held.private),
        partial=held.partial,
        progress=held.progress,
        step=held.step,
        recovered=again,
        outputs=specialist.outputs if specialist is not None else (),
        rubric=apollo.rubric(view, task.key) if local == EVALUATION else (),
        results=view.results() if local == EVALUATION else {},
        resume=resume_text(task, held) if again else "",
    )


def specialist_of(view: View, local: str) -> Specialist | None:
    """The specialist an assignment belongs to; None for the evaluation."""
    return view.specialist(specialist_name(local))


def resume_text(task: Task, held: AgentState) -> str:
    """Where an interrupted agent stood, in words that a language model can use as they are."""
    failure = task.failure
    reason = "" if failure is None else f"\nReason: {failure.error}: {failure.message}"
    following = f"Continue with: {held.step}" if held.step else "Continue with the next step."
    return f"""\
# Resuming from Checkpoint

## Previous State
- Phase: {task.phase}
- Step: {held.step or "none"}
- Progress: {held.progress:.0%}
- Tokens Used: {held.tokens}

Checkpoint Type: {"milestone" if failure is None else "error"}{reason}

## Instructions
Resume from where you left off. Do not repeat completed work.
{following}""".strip()


# What its reports mean.


def events_of(desk: Desk, name: TaskId, report: port.Report) -> tuple[ev.Event, ...]:
    """A report as events; raises an `OrchestraError` that goes back to the agent."""
    task = desk.view.state.tasks[name]
    match report:
        case port.Saved():
            return (_milestone(desk, task, report),)
        case port.Emitted():
            return _text_events(desk, task.agent, desk.text(report.text))
        case port.Decided():
            return (_decision(desk, task, report),)
        case port.Confident():
            return (ev.ConfidenceReported(at=desk.now, agent=task.agent, value=report.value),)
        case port.Asked() | port.Required() | port.Limited():
            return _wait_events(desk, name, task, report)
        case port.EffectBegun() | port.EffectEnded():
            return _effect_events(desk, name, report)
        case port.Used():
            return (_spent(desk, task.agent, report),)
        case port.Scored():
            evaluate = desk.view.phase.evaluate if desk.view.phase is not None else None
            if evaluate is None or local_of(name) != EVALUATION:
                raise misplaced_error(task.agent, "only an evaluator scores")
            return (apollo.score_event(desk.view, evaluate, name, _clean(desk, report), desk.now),)
        case port.Wrote():
            raise AssertionError("BUG: outputs are written before they are reported")
        case _:
            assert_never(report)


def _text_events(desk: Desk, agent: AgentId, text: str) -> tuple[ev.Event, ...]:
    """Streamed text, as much of it as a state keeps. Where that is not all, its end and a decision say so."""
    held = desk.view.state.agents.get(agent)
    size = 0 if held is None else len(held.partial)
    room = TEXT_CHARS - len(CUT) - size
    if len(text) <= room:
        return (ev.TextEmitted(at=desk.now, agent=agent, text=text),)
    if size >= TEXT_CHARS:
        return ()  # it has been said
    kept = (text[: max(room, 0)] + CUT)[: TEXT_CHARS - size]
    what = f"Keep no more of what {agent} streams"
    why = f"a text inside a state has at most {TEXT_CHARS:,} characters"
    others = ("write an output", "return it as the result", "save it in steps")
    chosen = decision(desk.view, desk.now, "text_cut", what, why, others)
    return ev.TextEmitted(at=desk.now, agent=agent, text=kept), chosen


def _clean(desk: Desk, report: port.Scored) -> port.Scored:
    return attrs.evolve(
        report,
        criterion=desk.text(report.criterion),
        rationale=desk.text(report.rationale),
        feedback=desk.text(report.feedback),
        issues=tuple(desk.redactor.value(each) for each in report.issues),
    )


def _milestone(desk: Desk, task: Task, report: port.Saved) -> ev.MilestoneReached:
    blockers = None
    if report.blockers is not None:
        blockers = tuple(
            Blocker(by=desk.text(str(each["by"])), reason=desk.text(str(each["reason"])), at=desk.now)
            for each in report.blockers
        )
    return ev.MilestoneReached(
        at=desk.now,
        agent=task.agent,
        progress=report.progress,
        step=None if report.step is None else desk.text(report.step),
        step_number=report.step_number,
        private=desk.freeze_given(report.private),
        blockers=blockers,
    )


def _decision(desk: Desk, task: Task, report: port.Decided) -> ev.DecisionMade:
    made = Decision(
        at=desk.now,
        agent=task.agent,
        kind=desk.text(report.decision),
        description=desk.text(report.description),
        rationale=desk.text(report.rationale),
        confidence=report.confidence,
        alternatives=tuple(desk.text(each) for each in report.alternatives),
        details=desk.freeze_given(report.details),
        effect_key=task.effect_key,
    )
    return ev.DecisionMade(at=desk.now, decision=made)


def earlier_decisions(desk: Desk, name: TaskId) -> Counter[Hashable]:
    """What earlier attempts at an assignment decided, and how often.

    An agent that begins again decides again what it decided before, which is recorded once. What one attempt
    decides twice counts twice; what a further attempt decides otherwise, or for another reason, is new.
    """
    task = desk.view.state.tasks[name]
    agent = desk.view.state.agents.get(task.agent)
    if agent is None or agent.last_decision is None:
        return Counter()
    made = (each for each in desk.view.state.decisions if each.effect_key == task.effect_key)
    return Counter(decision_identity(each) for each in made)


def decision_identity(made: Decision) -> Hashable:
    """What tells two decisions at one assignment apart."""
    return made.kind, made.description, made.rationale, made.details


def _spent(desk: Desk, agent: AgentId, report: port.Used) -> ev.Spent:
    return ev.Spent(
        at=desk.now,
        agent=agent,
        api_calls=report.api_calls,
        tokens_in=report.tokens_in,
        tokens_out=report.tokens_out,
        cost_micros=report.cost_micros,
    )


def wait_name(desk: Desk, name: TaskId, report: port.Asked | port.Required | port.Limited) -> str:
    """The wait a report opens: equal when an interrupted agent asks the same again."""
    match report:
        case port.Asked():
            asked = address_of(desk.text(report.question), desk.view.addresser).hex()[:12]
            return f"{name}?{desk.text(report.key) if report.key else asked}"
        case port.Required():
            return f"{name}?needs:{report.name}"
        case port.Limited():
            return f"{name}?limited:{desk.now}"
        case _:
            assert_never(report)


def _wait_events(
    desk: Desk, name: TaskId, task: Task, report: port.Asked | port.Required | port.Limited
) -> tuple[ev.Event, ...]:
    """The wait is opened; nothing when it was opened before and is open or answered."""
    wait = wait_name(desk, name, report)
    held = desk.view.state.waits.get(wait)
    if held is not None and (held.status == "open" or not isinstance(report, port.Required)):
        return ()  # a key that was said to be there and is not is asked for again
    opened = partial(ev.WaitOpened, at=desk.now, wait=wait, agent=task.agent, task=name)
    match report:
        case port.Asked():
            text, details = desk.text(report.question), desk.freeze_given(report.details)
            choices = tuple(desk.text(each) for each in report.choices)
            return (opened(waits_for="question", text=text, choices=choices, details=details),)
        case port.Required():
            details = desk.freeze({"reason": report.reason}) if report.reason else None
            return (opened(waits_for="dependency", text=report.name, details=details),)
        case port.Limited():
            until = Instant(desk.now + int(report.seconds * 1_000_000))
            return (opened(waits_for="rate_limit", text=desk.text(report.reason), until=until),)
        case _:
            assert_never(report)


def effect_name(desk: Desk, name: TaskId, effect: str) -> str:
    """The effect of an assignment in this generation."""
    return f"{desk.view.state.tasks[name].effect_key or name}#{effect}"


def _effect_events(
    desk: Desk, name: TaskId, report: port.EffectBegun | port.EffectEnded
) -> tuple[ev.Event, ...]:
    desk.redactor.check_name(report.name, what="effect")
    key = effect_name(desk, name, report.name)
    if isinstance(report, port.EffectEnded):
        outcome = desk.freeze_given(report.outcome)
        return (ev.EffectSettled(at=desk.now, effect=key, status=report.status, outcome=outcome),)
    held = desk.view.state.effects.get(key)
    if held is not None and held.status not in ("failed", "undone"):
        return ()  # one that failed is intended anew, as it is tried anew
    details = Effect(
        name=report.name,
        task=name,
        risky=report.risky,
        intent=desk.freeze_given(report.intent),
        intended_at=desk.now,
    )
    return (ev.EffectIntended(at=desk.now, effect=key, details=details),)


def earlier_effect(desk: Desk, name: TaskId, effect: str) -> Mapping[str, Any] | None:
    """What is known of an effect from an earlier attempt."""
    held = desk.view.state.effects.get(effect_name(desk, name, effect))
    if held is None:
        return None
    return {"status": held.status, "outcome": desk.view.open_value(held.outcome)}


def output_event(
    desk: Desk, work: port.Assignment, path: str, content: bytes, media_type: str
) -> ev.OutputWritten:
    """An output that was written; its bytes are kept in the state unless they are too many."""
    kept = freeze(content, desk.view.addresser) if len(content) <= OUTPUT_BYTES else None
    known = kept.digest if kept is not None else None
    output = Output(
        digest=address_of(content, desk.view.addresser) if known is None else known,
        media_type=desk.text(media_type),
        size=len(content),
        content=kept,
        agent=work.agent,
        task=work.task,
        at=desk.now,
    )
    return ev.OutputWritten(at=desk.now, path=path, output=output)


def misplaced_error(agent: str, message: str) -> AgentFailed:
    """An agent brought or said what is not its to bring."""
    return AgentFailed.plain(agent, "WrongResult", message)
