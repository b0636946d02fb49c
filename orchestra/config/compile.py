"""From a checked form to the frozen workflow. Nothing can fail here: the checks have been."""

from typing import Any, TypeVar

import attrs

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.config import models
from orchestra.config.forms import Form
from orchestra.ids import AgentId, PhaseId
from orchestra.model import workflow as model
from orchestra.model.value import Value

T = TypeVar("T")


def compile_workflow(form: models.WorkflowForm, agents: tuple[model.Agent, ...]) -> model.Workflow:
    """The workflow of a form, with the agents that were read from it."""
    context = [
        _compiled(model.ContextName, each, name=name, initial=_frozen(each.initial))
        for name, each in form.context.items()
    ]
    return model.Workflow(
        name=form.name,
        description=form.description,
        inputs=tuple(_input(name, each) for name, each in form.inputs.items()),
        context=tuple(context),
        agents=agents,
        policy=_compiled(
            model.Policy,
            form.policy,
            confidence=_compiled(model.ConfidencePolicy, form.policy.confidence),
            retry=_compiled(model.Retry, form.policy.retry),
            recovery=_compiled(model.RecoveryPolicy, form.policy.recovery),
            limits=_limits(form.policy.limits),
        ),
        prices=tuple(_compiled(model.ModelPrice, each, model=name) for name, each in form.prices.items()),
        phases=tuple(_phase(name, each, form.policy.retry) for name, each in form.phases.items()),
    )


def transitions(form: models.PhaseForm) -> tuple[model.Transition, ...] | None:
    """Where a phase says that it leads."""
    return None if form.next is None else tuple(_compiled(model.Transition, each) for each in form.next)


def _compiled(kind: type[T], form: Form, **own: Any) -> T:
    """A value of the model: of its fields some are given, the others stand in the form."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(kind)  # type: ignore[arg-type]
    for name in [field.name for field in fields if field.name not in own]:
        value = getattr(form, name.removesuffix("_us"))  # durations of forms are in microseconds
        own[name] = tuple(value) if isinstance(value, list) else value
    return kind(**own)


def _input(name: str, form: models.InputForm) -> model.Input:
    given = "default" in form.model_fields_set
    return _compiled(
        model.Input,
        form,
        name=name,
        required=not given if form.required is None else form.required,
        default=_frozen(form.default),
        choices=tuple(freeze(each, Addresser()) for each in form.choices),
    )


def _retry(form: models.RetryForm | None, policy: models.RetryForm) -> model.Retry | None:
    """What is said here, and the policy's for the rest."""
    if form is None:
        return None
    said = {name: getattr(form, name) for name in form.model_fields_set}
    return _compiled(model.Retry, policy.model_copy(update=said))


def _phase(name: str, form: models.PhaseForm, policy: models.RetryForm) -> model.Phase:
    specialists = [
        _compiled(
            model.Specialist, each, id=id_, agent=AgentId(each.agent or id_), retry=_retry(each.retry, policy)
        )
        for id_, each in form.specialists.items()
    ]
    return _compiled(
        model.Phase,
        form,
        id=PhaseId(name),
        specialists=tuple(specialists),
        limits=_limits(form.limits),
        evaluate=_evaluate(form.evaluate, policy) if form.evaluate is not None else None,
        on_low_confidence=tuple(_reaction(each, form) for each in form.on_low_confidence),
        next=transitions(form),
    )


def _limits(form: models.LimitsForm | None) -> model.Limits | None:
    return None if form is None else _compiled(model.Limits, form)


def _evaluate(form: models.EvaluateForm, policy: models.RetryForm) -> model.Evaluate:
    return _compiled(
        model.Evaluate,
        form,
        rubric=tuple(model.Criterion(name=name, weight=weight) for name, weight in form.rubric.items()),
        rounds=form.revise.rounds if form.revise is not None else 0,
        retry=_retry(form.retry, policy),
    )


def _reaction(form: models.ReactionForm, phase: models.PhaseForm) -> model.Reaction:
    if form.ask is not None:
        return model.Ask(question=form.ask, choices=tuple(form.choices))
    if form.spawn is None:
        return model.Fail() if form.does == "fail" else model.Proceed()
    agent = AgentId(form.agent) if form.agent is not None else None
    if form.spawn in phase.specialists:
        return model.Spawn(specialist=form.spawn, agent=agent, max=form.max)
    return model.Spawn(specialist=next(iter(phase.specialists)), agent=AgentId(form.spawn), max=form.max)


def _frozen(value: Any) -> Value | None:
    return freeze(value, Addresser()) if value is not None else None
