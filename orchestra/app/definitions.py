"""What a run is given beside its definition: breakpoints, other rules for recovery, and secret inputs."""

import logging
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import attrs

from orchestra.agents.registry import KINDS
from orchestra.app.workflow_files import fingerprint, load_workflow
from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import thaw
from orchestra.config.check.whole_file import check_names
from orchestra.config.inputs import accept_input
from orchestra.config.load import LoadedWorkflow
from orchestra.engine.redact import REDACTED, Redactor
from orchestra.engine.start import read_definition
from orchestra.engine.view import View
from orchestra.errors import BadInput, BadOrder, DamageError
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_known
from orchestra.ids import PhaseId, RunId
from orchestra.model.state import WorkflowRef
from orchestra.model.workflow import Agent, Input, RecoveryPolicy, Workflow

if TYPE_CHECKING:  # commands play files, and need no builder
    from orchestra.app.building.builder import WorkflowBuilder

_LOG: Final = logging.getLogger("orchestra.app.compose")
_NO_FILE: Final = Path()
_CHECKED: Final = WeakValueDictionary[int, Workflow]()
"""Workflows whose names were found in order: a program that plays one many times has it checked once."""

DEFAULTED: Final = f"{REDACTED} (its default)"
"""Stands for a secret input that was not given."""
_MARKS: Final = (REDACTED, DEFAULTED)

Definition: TypeAlias = Union["WorkflowBuilder", LoadedWorkflow, Workflow, Path, str]
"""A workflow that a program builds, or the file that holds one. A bare `Workflow` is taken as checked."""
Secrets = dict[str, Any]
"""Inputs that are handed to agents and never stored, by name."""
KEYS_VARIABLE: Final = "ORCHESTRA_KEYS"
"""Names the key file: lines of `NAME=VALUE`, for what agents `require` and the environment does not have."""


def find_key() -> dict[str, str]:
    """What the key file holds now; nothing where none is named or it cannot be read."""
    named = os.environ.get(KEYS_VARIABLE)
    try:
        lines = Path(named).read_text(encoding="utf-8").splitlines() if named else []
    except (OSError, UnicodeDecodeError) as error:
        _LOG.warning("the key file that %s names cannot be read: %s", KEYS_VARIABLE, type(error).__name__)
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}


def load_definition(workflow: Definition, models: Collection[str] = ()) -> LoadedWorkflow:
    """A workflow with the file it comes from, if there is one; raises `BadWorkflow`.

    `models` will be asked instead of those that its agents name.
    """
    if isinstance(workflow, LoadedWorkflow):
        return workflow
    if isinstance(workflow, Workflow):
        if _CHECKED.get(id(workflow)) is not workflow:
            check_names(workflow)
            _CHECKED[id(workflow)] = workflow
        return LoadedWorkflow(workflow=workflow, file=_NO_FILE, text="", settings={})
    return load_workflow(workflow, models) if isinstance(workflow, Path | str) else workflow.build()


def reload_definition(stored: LoadedWorkflow, project: Path) -> LoadedWorkflow:
    """A stored definition as it is now: its file's; without one, with the agents' files of today.

    A place in a program, `FILE.py:12`, is no file. Raises `BadWorkflow` or `BadAgentKind`.
    """
    file = project / stored.file
    if stored.file.name and file.is_file():
        return attrs.evolve(load_workflow(file), file=stored.file)
    agents = tuple(_with_fingerprint(agent, file.parent) for agent in stored.workflow.agents)
    return attrs.evolve(stored, workflow=attrs.evolve(stored.workflow, agents=agents))


def _with_fingerprint(agent: Agent, folder: Path) -> Agent:
    """An agent with the fingerprint it has now; one that had none, or whose files cannot be read, stays."""
    if agent.source:
        with suppress(OSError):
            return attrs.evolve(agent, source=fingerprint(agent, folder))
    return agent


def with_choices(held: WorkflowRef, break_at: Collection[str], models: Collection[str]) -> WorkflowRef:
    """A workflow as a run keeps it that waits before more phases, or asks other models, than it says."""
    phases = tuple(PhaseId(each) for each in sorted(set(break_at)))
    return attrs.evolve(held, break_at=phases, models=tuple(models)) if phases or models else held


def with_overrides(
    workflow: Workflow, break_at: Collection[str], models: Collection[str], recovery: RecoveryPolicy | None
) -> Workflow:
    """The workflow with breakpoints before some phases, other models and other rules for recovery."""
    if models:
        agents = [KINDS.by_name(each.kind).with_models(each, tuple(models)) for each in workflow.agents]
        workflow = attrs.evolve(workflow, agents=tuple(agents))
    if break_at:
        phases = [
            attrs.evolve(each, breakpoint=each.breakpoint or each.id in break_at) for each in workflow.phases
        ]
        workflow = attrs.evolve(workflow, phases=tuple(phases))
    if recovery is None or recovery == workflow.policy.recovery:
        return workflow
    return attrs.evolve(workflow, policy=attrs.evolve(workflow.policy, recovery=recovery))


async def restore_run(manager: CheckpointManager, run: RunId, rules: RecoveryPolicy | None) -> ActiveRun:
    """A run, taken over within the time that recovery may take; raises `BadOrder` when it takes longer.

    Without `rules` those of its workflow hold.
    """
    if rules is None:
        rules = await anyio.to_thread.run_sync(_own_rules, manager.archive, run)
    seconds = rules.timeout_us / 1_000_000
    try:
        with anyio.fail_after(seconds):
            return await manager.restore(run, fallback=rules.fallback_to_previous)
    except TimeoutError:
        reason = f"taking {run} over took longer than {seconds:g} s (recovery.timeout)"
        raise BadOrder(order="resume", reason=reason) from None


def _own_rules(archive: Archive, run: RunId) -> RecoveryPolicy:
    """What the workflow of a run says about recovery, as far as that can be read."""
    try:
        held = last_known(archive, run).state.workflow.definition
    except DamageError:
        held = None
    if held is None:
        return RecoveryPolicy()
    return read_definition(archive.loader.value(held)).policy.recovery


def extract_secrets(workflow: Workflow, inputs: dict[str, Any], redactor: Redactor) -> Secrets:
    """The secret inputs, which leave a mark where they were; one that is its default leaves another."""
    hidden: Secrets = {}
    for declared in workflow.inputs:
        held = inputs.get(declared.name)
        if declared.secret and held is not None:
            hidden[declared.name] = held
            inputs[declared.name] = DEFAULTED if held == _default(declared) else REDACTED
            redactor.add_value(held)
    return hidden


def _default(declared: Input) -> Any:
    return None if declared.default is None else thaw(declared.default)


def value_for(workflow: Workflow, path: str, value: Any, base: Path) -> Any:
    """A value that is set by hand, as it would be taken when a run starts; raises `BadInput` or `BadOrder`.

    What is at that path is looked at where it is set; here is only made sure of what inputs declare.
    """
    section, _, name = path.partition(".")
    declared = next((each for each in workflow.inputs if section == "inputs" and each.name == name), None)
    if declared is None:
        return value
    if declared.secret:
        reason = f"{path!r} is secret and never stored; hand it to the new run when that is resumed"
        raise BadOrder(order="set", reason=reason)
    return accept_input(workflow, name, value, base=base)


def restore_secrets(view: View, given: Mapping[str, Any], redactor: Redactor, base: Path) -> Secrets:
    """The secret inputs of a run that is taken up again: as given, else from the environment.

    Raises `BadInput` for one that is nowhere, because to go on without it would fail later and less clearly,
    and for one that is given and was not taken out.
    """
    workflow, hidden, found = view.workflow, _hidden(view), dict[str, Any]()
    for name in given:
        if name not in [each.name for each in hidden]:
            reason = "only secret inputs are given again; the others are stored with the run"
            advice = "Leave it out; `orchestra fork --set` begins a run with another value."
            raise BadInput(input=name, workflow=workflow.name, reason=reason, advice=advice)
    for declared in hidden:
        found[declared.name] = _once_more(view, declared, given, base)
        redactor.add_value(found[declared.name])
    return found


def learn_secrets(view: View, redactor: Redactor, base: Path) -> None:
    """Let a redactor know what can be known of a run's secrets without playing it.

    Those are secret inputs that the environment holds or that were left at their defaults, and the key file.
    """
    redactor.add(*find_key().values())
    for declared in _hidden(view):
        with suppress(BadInput):
            redactor.add_value(_once_more(view, declared, {}, base))


def _hidden(view: View) -> list[Input]:
    stored = view.inputs()
    return [each for each in view.workflow.inputs if each.secret and stored.get(each.name) in _MARKS]


def _once_more(view: View, declared: Input, given: Mapping[str, Any], base: Path) -> Any:
    workflow, mark = view.workflow, view.inputs()[declared.name]
    variable = f"ORCHESTRA_INPUT_{declared.name.upper().replace('-', '_')}"
    held = given.get(declared.name, os.environ.get(variable))
    if held is not None:
        return accept_input(workflow, declared.name, held, base=base)
    if mark == DEFAULTED and declared.default is not None:
        return _default(declared)
    reason = f"it is secret, so it was not stored, and {variable} is not set"
    advice = f"Set that, or go on with `orchestra resume {view.state.run} --input {declared.name}=VALUE`."
    raise BadInput(input=declared.name, workflow=workflow.name, reason=reason, advice=advice)
