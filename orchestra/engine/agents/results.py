"""How an attempt ends: what its result or its failure means as events."""

from typing import Any, Final

import attrs

from orchestra.codec.values import contribution, freeze_leniently, spell_surrogates
from orchestra.engine.agents import apollo
from orchestra.engine.agents.mercury import Desk, misplaced_error, specialist_of
from orchestra.engine.names import EVALUATION, local_of
from orchestra.errors import AgentFailed
from orchestra.ids import TaskId
from orchestra.limits import NAME_CHARS, TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.records import Failure, Task
from orchestra.model.value import Value
from orchestra.model.workflow import Specialist
from orchestra.ports import agent as port

_task_completed: Final = maker(ev.TaskCompleted)


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
        clean = attrs.evolve(
            result,
            feedback=desk.text(result.feedback),
            issues=tuple(desk.redactor.value(each) for each in result.issues),
        )
        return apollo.judgement_events(desk.view, evaluate, name, clean, desk.now)
    if not isinstance(result, port.Result):
        raise misplaced_error(task.agent, f"a specialist returns a Result, not {type(result).__name__}")
    value = desk.freeze_given(result.output)
    specialist = specialist_of(desk.view, local)
    if specialist is not None:
        if specialist.outputs:
            promised = _promised_outputs(desk, name, task, specialist)
            written = written or promised[-1]  # an earlier attempt wrote it, if this one did not
        if specialist.into is not None and result.output is not None:
            # Whoever made a result that its reducer cannot take should know; the others take everything.
            reducer = desk.view.index.reducers[specialist.into]
            if reducer in ("merge", "sum", "max"):
                contribution(reducer, result.output, desk.view.addresser, where=f"context.{specialist.into}")
    confidence = _last_confidence(desk, task) if result.confidence is None else result.confidence
    return (_task_completed(at=desk.now, task=name, result=value, confidence=confidence, output=written),)


def _last_confidence(desk: Desk, task: Task) -> float | None:
    """The confidence an agent reported last while it worked on a task."""
    held = desk.view.state.agents.get(task.agent)
    if held is None or not held.history:
        return None
    last = held.history[len(held.history) - 1]
    return last.value if task.started_at is not None and last.at >= task.started_at else None


def _promised_outputs(desk: Desk, name: TaskId, task: Task, specialist: Specialist) -> list[str]:
    """Where the outputs are that a specialist promised; raises when one of them is not."""
    places = {path: f"{name.rpartition('/')[0]}/{path}" for path in specialist.outputs}
    for path, place in places.items():
        if place not in desk.view.state.outputs:
            raise misplaced_error(task.agent, f"it promised {path!r} and did not write it")
    return list(places.values())


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
