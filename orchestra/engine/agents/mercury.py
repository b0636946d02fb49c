"""Mercury: what an assignment's agent is handed, and what its reports and its end mean as events."""

from collections import Counter
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, assert_never

import attrs

from orchestra.codec.values import address_of, contribution, freeze, freeze_leniently, spell_surrogates
from orchestra.engine.agents import apollo
from orchestra.engine.agents.conversation import Scribe, calls_of, earlier_rounds, messages_of, spent_event
from orchestra.engine.inbox import Stored
from orchestra.engine.names import EVALUATION, item_index, local_of, specialist_name
from orchestra.engine.redact import Redactor
from orchestra.engine.rules.moves import decision
from orchestra.engine.stage import Stage
from orchestra.engine.view import NOTHING_NEEDED, LazyWhole, View
from orchestra.errors import AgentFailed
from orchestra.ids import AgentId, EffectKey, Instant, TaskId
from orchestra.limits import NAME_CHARS, OUTPUT_BYTES, TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.apply.work import last_confidence
from orchestra.model.frozen import converter, evolve, maker
from orchestra.model.records import AgentState, Blocker, Decision, Effect, Failure, Output, Task
from orchestra.model.value import Value
from orchestra.model.workflow import Specialist
from orchestra.ports import agent as port

Said = TypeVar("Said", port.Scored, port.Judgement)
_assignment: Final = maker(port.Assignment)
_effect: Final = converter(port.EffectBegun, Effect, "task", "intent", "intended_at")
_task_completed: Final = maker(ev.TaskCompleted)
Wait: TypeAlias = port.Asked | port.Required | port.Limited
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

    def clean(self, said: Said, *texts: str) -> Said:
        """What an evaluator said, without secrets in these of its texts and in the issues it found."""
        issues = tuple(self.redactor.value(each) for each in said.issues)
        return evolve(said, issues=issues, **{name: self.text(getattr(said, name)) for name in texts})


# What an agent is handed.


def assignment(
    stage: Stage, view: View, name: TaskId, task: Task, specialist: Specialist | None, item: Any
) -> port.Assignment:
    """What the agent of an assignment is handed; `specialist` is whom it belongs to, if not the evaluator."""
    held = view.state.agents.get(task.agent) or _NO_STATE
    local = local_of(name)
    # An agent that is launched for the first time may stand in the middle, where a rollback put it.
    begun = held.step or held.progress or held.partial or held.private is not None
    again = task.attempts > 1 or bool(begun)
    assert task.by is not None, "BUG: an assignment is done by somebody"
    agent, messages = view.index.agents[task.by], messages_of(view, name)
    earlier = earlier_rounds(view, name, task.round) if task.round > 1 else ((), ())
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
        inputs=view.inputs() | {**stage.secrets} if stage.secrets else view.lazy_mapping(view.state.inputs),
        context=LazyWhole(view.context, specialist),
        needs=view.needs(specialist) if specialist is not None and specialist.needs else NOTHING_NEEDED,
        settings=view.lazy_mapping(agent.settings),
        workspace=stage.outputs.workspace(view.state.run, name),
        project=str(stage.project),
        item=item,
        index=item_index(local),
        feedback=view.feedback(),
        private=view.open_value(held.private),
        partial=held.partial,
        progress=held.progress,
        step=held.step,
        recovered=again,
        outputs=specialist.outputs if specialist is not None and task.call is None else (),
        prices=view.index.prices,
        agents={each: view.index.agents[each].description for each in agent.calls} if agent.calls else {},
        rubric=apollo.rubric(view, task.key) if local == EVALUATION else (),
        results=view.results() if local == EVALUATION else {},
        resume=resume_text(task, held) if again else "",
        messages=messages,
        calls=calls_of(view, name, messages) if messages else (),
        earlier_messages=earlier[0],
        earlier_calls=earlier[1],
    )


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
        case port.EffectBegun() | port.EffectEnded():
            return _effect_events(desk, name, report)
        case port.Used():
            return (spent_event(report, at=desk.now, agent=task.agent, phase=task.phase),)
        case port.Posted():
            return _scribe(desk, name, task).message_events(report)
        case port.Streamed():
            return _scribe(desk, name, task).stream_events(report)
        case port.ToolReported():
            return _scribe(desk, name, task).call_events(report)
        case port.Scored():
            evaluate = desk.view.phase.evaluate if desk.view.phase is not None else None
            if evaluate is None or local_of(name) != EVALUATION:
                raise misplaced_error(task.agent, "only an evaluator scores")
            clean = desk.clean(report, "criterion", "rationale", "feedback")
            return (apollo.score_event(desk.view, evaluate, name, clean, desk.now),)
        case (
            port.Wrote() | port.Asked() | port.Required() | port.Limited() | port.Delegated() | port.Secrets()
        ):
            raise AssertionError(
                "BUG: outputs are written before they are reported, waits and errands have their own events"
            )
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


def without_secrets(desk: Desk, name: TaskId, report: port.Posted | port.ToolReported) -> Any:
    """A report of a conversation as it is stored; the agent goes on with it, as a resumed one will."""
    return _scribe(desk, name, desk.view.state.tasks[name]).clean(report)


def _scribe(desk: Desk, name: TaskId, task: Task) -> Scribe:
    return Scribe(view=desk.view, redactor=desk.redactor, now=desk.now, name=name, task=task)


def wait_event(desk: Desk, name: TaskId, report: Wait) -> ev.WaitOpened:
    """The wait a report opens; it has the same name when an interrupted agent asks the same again."""
    opened = partial(ev.WaitOpened, at=desk.now, agent=desk.view.state.tasks[name].agent, task=name)
    match report:
        case port.Asked():
            text, details = desk.text(report.question), desk.freeze_given(report.details)
            key = desk.text(report.key) if report.key else address_of(text, desk.view.addresser).hex()[:12]
            choices = tuple(desk.text(each) for each in report.choices)
            wait = f"{name}?{key}"
            return opened(wait=wait, waits_for="question", text=text, choices=choices, details=details)
        case port.Required():
            details = desk.freeze({"reason": report.reason}) if report.reason else None
            wait = f"{name}?needs:{report.name}"
            return opened(wait=wait, waits_for="dependency", text=report.name, details=details)
        case port.Limited():
            until = Instant(desk.now + int(report.seconds * 1_000_000))
            wait, text = f"{name}?limited:{desk.now}", desk.text(report.reason)
            return opened(wait=wait, waits_for="rate_limit", text=text, until=until)
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
    details = _effect(report, task=name, intent=desk.freeze_given(report.intent), intended_at=desk.now)
    return (ev.EffectIntended(at=desk.now, effect=key, details=details),)


def earlier_effect(desk: Desk, name: TaskId, effect: str) -> Mapping[str, Any] | None:
    """What is known of an effect from an earlier attempt."""
    held = desk.view.state.effects.get(effect_name(desk, name, effect))
    if held is None:
        return None
    return {"status": held.status, "outcome": desk.view.open_value(held.outcome)}


def output_event(desk: Desk, work: port.Assignment, stored: Stored) -> ev.OutputWritten:
    """An output that was written; its bytes are kept in the state unless they are too many."""
    content = stored.content
    kept = freeze(content, desk.view.addresser) if len(content) <= OUTPUT_BYTES else None
    known = kept.digest if kept is not None else None
    output = Output(
        digest=address_of(content, desk.view.addresser) if known is None else known,
        media_type=desk.text(stored.media_type),
        size=len(content),
        content=kept,
        agent=work.agent,
        task=work.task,
        at=desk.now,
    )
    return ev.OutputWritten(at=desk.now, path=stored.path, output=output)


def misplaced_error(agent: str, message: str) -> AgentFailed:
    """An agent brought or said what is not its to bring."""
    return AgentFailed.plain(agent, "WrongResult", message)


# How an attempt ends.


def completion_events(
    desk: Desk, name: TaskId, result: port.Result | port.Judgement, written: str | None
) -> tuple[ev.Event, ...]:
    """The end of an attempt that brought a result, and wrote `written` last; one of no use is a failure."""
    try:
        return _completion(desk, name, result, written)
    except AgentFailed as error:
        return (failure_event(desk, name, error),)
    except Exception as error:  # what was returned may raise whatever it likes when it is looked at
        return (failure_event(desk, name, unusable(name, error)),)


def unusable(agent: str, error: Exception) -> AgentFailed:
    """The failure of an agent that brought what cannot be taken."""
    try:
        words = str(error)
    except Exception:
        words = ""
    return AgentFailed.plain(agent, type(error).__name__, words)


def _completion(
    desk: Desk, name: TaskId, result: port.Result | port.Judgement, written: str | None
) -> tuple[ev.Event, ...]:
    task = desk.view.state.tasks[name]
    evaluate = desk.view.phase.evaluate if desk.view.phase is not None else None
    local = local_of(name)
    if local == EVALUATION and evaluate is not None:
        if not isinstance(result, port.Judgement):
            wrong = f"an evaluator returns a Judgement, not {type(result).__name__}"
            raise misplaced_error(task.agent, wrong)
        return apollo.judgement_events(desk.view, evaluate, name, desk.clean(result, "feedback"), desk.now)
    if not isinstance(result, port.Result):
        raise misplaced_error(task.agent, f"a specialist returns a Result, not {type(result).__name__}")
    value = desk.freeze_given(result.output)
    specialist = desk.view.specialist(specialist_name(local)) if task.call is None else None
    if specialist is not None:
        if specialist.outputs:
            places = [f"{name.rpartition('/')[0]}/{path}" for path in specialist.outputs]
            for path, place in zip(specialist.outputs, places, strict=True):
                if place not in desk.view.state.outputs:
                    raise misplaced_error(task.agent, f"it promised {path!r} and did not write it")
            written = written or places[-1]  # an earlier attempt wrote it, if this one did not
        if specialist.into is not None and result.output is not None:
            # Whoever made a result that its reducer cannot take should know; the others take everything.
            reducer = desk.view.index.reducers[specialist.into]
            if reducer in ("merge", "sum", "max"):
                contribution(reducer, result.output, desk.view.addresser, where=f"context.{specialist.into}")
    confidence, held = result.confidence, desk.view.state.agents.get(task.agent)
    if confidence is None and held is not None:
        confidence = last_confidence(held, task)
    return (_task_completed(at=desk.now, task=name, result=value, confidence=confidence, output=written),)


def failure_event(desk: Desk, name: TaskId, error: AgentFailed) -> ev.TaskFailed:
    """An attempt that failed, with all that is known."""
    data, details = error.data, error.data.get("details")
    message = _words(desk, data.get("message"))[: TEXT_CHARS // 2]
    failure = Failure(
        error=_words(desk, data.get("error"))[:NAME_CHARS] or "Failed",
        message=message,
        at=desk.now,
        stack=_words(desk, data.get("stack"))[: TEXT_CHARS - len(message)],
        recoverable=bool(data.get("recoverable", True)),
        details=None if details is None else _details(desk, details),
    )
    return ev.TaskFailed(at=desk.now, task=name, failure=failure)


def _words(desk: Desk, said: object) -> str:
    """What a failure says, without secrets; lone surrogates are spelled out, or they would cost all of it."""
    return spell_surrogates(desk.text(str(said or "")))


def _details(desk: Desk, details: Any) -> Value:
    """What a failure brought beside its words, or what is wrong with that: its words are not lost for it."""
    try:
        freeze_leniently(details, desk.view.addresser)  # refuses too much before secrets are looked for in it
        return freeze_leniently(desk.redactor.value(details), desk.view.addresser)
    except Exception as error:
        wrong = unusable("", error).data
        return freeze_leniently({"$unstorable": f"{wrong['error']}: {wrong['message']}"}, desk.view.addresser)
