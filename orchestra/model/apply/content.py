"""What events about judgements, messages, context and outputs do to a state. See `apply`."""

from collections.abc import Callable
from typing import Any, Final

from orchestra.model import events as ev
from orchestra.model.apply.checks import illegal
from orchestra.model.draft import Draft
from orchestra.model.frozen import evolve
from orchestra.model.records import Evaluation, Iteration, Message, Part
from orchestra.model.reducers import ReducerMismatch, combine
from orchestra.model.state import State


def _score(draft: Draft, event: ev.CriterionScored) -> None:
    held = _evaluation(draft, event)
    others = tuple(score for score in held.scores if score.criterion != event.score.criterion)
    scored = evolve(
        held,
        scores=(*others, event.score),
        issues=(*held.issues, *event.issues),
        feedback=held.feedback + event.feedback,
    )
    draft.change(evaluations=draft.evaluations.set(event.evaluation, scored))


def _evaluation(state: State, event: ev.CriterionScored | ev.EvaluationCompleted) -> Evaluation:
    """The evaluation an event is about; scores about something else than what is judged now are dropped."""
    held = state.evaluations.get(event.evaluation)
    if held is not None and held.round == event.round and held.judged == event.judged:
        return held
    return Evaluation(
        agent=event.agent,
        phase=event.phase,
        visit=event.visit,
        round=event.round,
        judged=event.judged,
        iterations=held.iterations if held else (),
    )


def _conclude(draft: Draft, event: ev.EvaluationCompleted) -> None:
    held = _evaluation(draft, event)
    iteration = Iteration(round=held.round, verdict=event.verdict, at=event.at)
    judged = evolve(
        held,
        verdict=event.verdict,
        scores=event.scores or held.scores,
        issues=(*held.issues, *event.issues),
        iterations=(*held.iterations, iteration),
    )
    draft.change(evaluations=draft.evaluations.set(event.evaluation, judged))


def _contribute(draft: Draft, event: ev.ContextContributed) -> None:
    try:
        joined = combine(draft.context.get(event.name), event.contribution)
    except ReducerMismatch as mismatch:
        raise illegal(event, draft.run, f"{event.name!r}: {mismatch}") from None
    draft.change(context=draft.context.set(event.name, joined))


def _post(draft: Draft, event: ev.MessagePosted) -> None:
    held = draft.messages.get(event.message)
    message = Message(
        role=event.role,
        agent=event.agent,
        parts=event.parts,
        status=event.status,
        step_number=event.step_number,
        model=event.model,
        max_steps=event.max_steps,
        created_at=held.created_at if held else event.at,
        updated_at=event.at,
        completed_at=None if event.status == "streaming" else event.at,
    )
    draft.change(messages=draft.messages.set(event.message, message))


def _stream(draft: Draft, event: ev.MessageStreamed) -> None:
    held = draft.messages.get(event.message)
    if held is None or held.status != "streaming":
        raise illegal(event, draft.run, f"message {event.message!r} is not streaming")
    grown = evolve(
        held,
        parts=(*_add_text(held.parts, event.text), *event.parts),
        status=event.status,
        updated_at=event.at,
        completed_at=None if event.status == "streaming" else event.at,
    )
    draft.change(messages=draft.messages.set(event.message, grown))


def _add_text(parts: tuple[Part, ...], text: str) -> tuple[Part, ...]:
    if not text:
        return parts
    if parts and parts[-1].kind == "text":
        return (*parts[:-1], evolve(parts[-1], text=parts[-1].text + text))
    return (*parts, Part(kind="text", text=text))


HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    ev.CriterionScored: _score,
    ev.EvaluationCompleted: _conclude,
    ev.MessagePosted: _post,
    ev.MessageStreamed: _stream,
    ev.ContextContributed: _contribute,
    ev.OutputWritten: lambda draft, event: draft.change(outputs=draft.outputs.set(event.path, event.output)),
}
"""What events about judgements, messages, context and outputs do to a draft."""
