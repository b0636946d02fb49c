"""From a checked form to the frozen workflow. Nothing can fail here: the checks have been."""

from typing import Any

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.config import models
from orchestra.ids import AgentId, PhaseId
from orchestra.model.value import Value
from orchestra.model.workflow import (
    Agent,
    Ask,
    ConfidencePolicy,
    ContextName,
    Criterion,
    Evaluate,
    Fail,
    Input,
    Phase,
    Policy,
    Proceed,
    Reaction,
    RecoveryPolicy,
    Retry,
    Spawn,
    Specialist,
    Transition,
    Workflow,
)


def compile_workflow(form: models.WorkflowForm, agents: tuple[Agent, ...]) -> Workflow:
    """The workflow of a form, with the agents that were read from it."""
    return Workflow(
        name=form.name,
        description=form.description,
        inputs=tuple(_input(name, each) for name, each in form.inputs.items()),
        context=tuple(_context(name, each) for name, each in form.context.items()),
        agents=agents,
        policy=_policy(form.policy),
        phases=tuple(_phase(name, each, form) for name, each in form.phases.items()),
    )


def transitions(form: models.PhaseForm) -> tuple[Transition, ...] | None:
    """Where a phase says that it leads."""
    if form.next is None:
        return None
    return tuple(Transition(to=PhaseId(each.to), when=each.when) for each in form.next)


def _input(name: str, form: models.InputForm) -> Input:
    given = "default" in form.model_fields_set
    return Input(
        name=name,
        type=form.type,
        required=not given if form.required is None else form.required,
        default=_frozen(form.default),
        choices=tuple(freeze(each, Addresser()) for each in form.choices),
        secret=form.secret,
        help=form.help,
    )


def _context(name: str, form: models.ContextForm) -> ContextName:
    return ContextName(name=name, reducer=form.reducer, initial=_frozen(form.initial))


def _policy(form: models.PolicyForm) -> Policy:
    return Policy(
        confidence=ConfidencePolicy(
            threshold=form.confidence.threshold,
            watch=tuple(form.confidence.watch),
            rollback_factor=form.confidence.rollback_factor,
        ),
        retry=_retry(form.retry),
        recovery=RecoveryPolicy(
            auto=form.recovery.auto,
            max_recoveries=form.recovery.max_recoveries,
            timeout_us=form.recovery.timeout,
            fallback_to_previous=form.recovery.fallback_to_previous,
            on_failure=tuple(form.recovery.on_failure),
        ),
        concurrency=form.concurrency,
        max_iterations=form.max_iterations,
        grace_us=form.grace,
    )


def _retry(form: models.RetryForm) -> Retry:
    return Retry(
        attempts=form.attempts,
        backoff_us=form.backoff,
        max_backoff_us=form.max_backoff,
        timeout_us=form.timeout,
    )


def _own_retry(form: models.RetryForm | None, policy: models.RetryForm) -> Retry | None:
    """What is said here, and the policy's for the rest."""
    if form is None:
        return None
    said = {name: getattr(form, name) for name in form.model_fields_set}
    return _retry(policy.model_copy(update=said))


def _phase(name: str, form: models.PhaseForm, whole: models.WorkflowForm) -> Phase:
    return Phase(
        id=PhaseId(name),
        description=form.description,
        specialists=tuple(
            _specialist(id_, each, whole.policy.retry) for id_, each in form.specialists.items()
        ),
        evaluate=_evaluate(form.evaluate, whole.policy.retry) if form.evaluate is not None else None,
        on_low_confidence=tuple(_reaction(each, form) for each in form.on_low_confidence),
        next=transitions(form),
        max_visits=form.max_visits,
        timeout_us=form.timeout,
        breakpoint=form.breakpoint,
    )


def _specialist(name: str, form: models.SpecialistForm, policy: models.RetryForm) -> Specialist:
    return Specialist(
        id=name,
        agent=AgentId(form.agent or name),
        task=form.task,
        needs=tuple(form.needs),
        when=form.when,
        foreach=form.foreach,
        into=form.into,
        outputs=tuple(form.outputs),
        retry=_own_retry(form.retry, policy),
        on_failure=tuple(form.on_failure),
        substitute=AgentId(form.substitute) if form.substitute is not None else None,
        threshold=form.threshold,
        breakpoint=form.breakpoint,
    )


def _evaluate(form: models.EvaluateForm, policy: models.RetryForm) -> Evaluate:
    return Evaluate(
        agent=AgentId(form.agent),
        task=form.task,
        threshold=form.threshold,
        rubric=tuple(Criterion(name=name, weight=weight) for name, weight in form.rubric.items()),
        rounds=form.revise.rounds if form.revise is not None else 0,
        retry=_own_retry(form.retry, policy),
    )


def _reaction(form: models.ReactionForm, phase: models.PhaseForm) -> Reaction:
    if form.ask is not None:
        return Ask(question=form.ask, choices=tuple(form.choices))
    if form.spawn is None:
        return Fail() if form.does == "fail" else Proceed()
    agent = AgentId(form.agent) if form.agent is not None else None
    if form.spawn in phase.specialists:
        return Spawn(specialist=form.spawn, agent=agent, max=form.max)
    return Spawn(specialist=next(iter(phase.specialists)), agent=AgentId(form.spawn), max=form.max)


def _frozen(value: Any) -> Value | None:
    return freeze(value, Addresser()) if value is not None else None
