"""What a run is given beside its definition: breakpoints, other rules for recovery, and secret inputs."""

import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import attrs

from orchestra.checkpoint.active import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.config.agents import renewed
from orchestra.config.load import LoadedWorkflow, load_workflow
from orchestra.engine.redact import REDACTED, Redactor
from orchestra.errors import BadInput, BadOrder
from orchestra.ids import PhaseId, RunId
from orchestra.model.state import WorkflowRef
from orchestra.model.workflow import RecoveryPolicy, Workflow

_LOG: Final = logging.getLogger("orchestra.app")
_NO_FILE: Final = Path()

Definition = Workflow | LoadedWorkflow | Path | str
"""A workflow, or the file that holds one."""
KEYS_VARIABLE: Final = "ORCHESTRA_KEYS"
"""Names the key file: lines of `NAME=VALUE`, for what agents `require` and the environment does not have."""


def keys() -> dict[str, str]:
    """What the key file holds now; nothing where none is named or it cannot be read."""
    named = os.environ.get(KEYS_VARIABLE)
    try:
        lines = Path(named).read_text(encoding="utf-8").splitlines() if named else []
    except (OSError, UnicodeDecodeError) as error:
        _LOG.warning("the key file that %s names cannot be read: %s", KEYS_VARIABLE, type(error).__name__)
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}


def loaded_of(workflow: Definition) -> LoadedWorkflow:
    """A workflow with the file it comes from, if there is one; raises `BadWorkflow`."""
    if isinstance(workflow, Workflow):
        return LoadedWorkflow(workflow=workflow, file=_NO_FILE, text="", settings={})
    return workflow if isinstance(workflow, LoadedWorkflow) else load_workflow(Path(workflow))


def as_files_say(stored: LoadedWorkflow, project: Path) -> LoadedWorkflow:
    """A stored definition as it is now: its file's; where that is gone, with the agents' files of today.

    Raises `BadWorkflow`.
    """
    file = project / stored.file
    if stored.file.name and file.is_file():
        return attrs.evolve(load_workflow(file), file=stored.file)
    agents = renewed(stored.workflow.agents, file.parent)
    return attrs.evolve(stored, workflow=attrs.evolve(stored.workflow, agents=agents))


def stopping_at(held: WorkflowRef, break_at: Collection[str]) -> WorkflowRef:
    """A workflow as a run keeps it that waits before some phases more than the definition says."""
    phases = tuple(PhaseId(each) for each in sorted(set(break_at)))
    return attrs.evolve(held, break_at=phases) if phases else held


def played_as(workflow: Workflow, break_at: Collection[str], recovery: RecoveryPolicy | None) -> Workflow:
    """The workflow with breakpoints before some phases and other rules for recovery."""
    if break_at:
        phases = [
            attrs.evolve(each, breakpoint=each.breakpoint or each.id in break_at) for each in workflow.phases
        ]
        workflow = attrs.evolve(workflow, phases=tuple(phases))
    if recovery is None or recovery == workflow.policy.recovery:
        return workflow
    return attrs.evolve(workflow, policy=attrs.evolve(workflow.policy, recovery=recovery))


async def restored(manager: CheckpointManager, run: RunId, rules: RecoveryPolicy) -> ActiveRun:
    """A run, taken over within the time that recovery may take; raises `BadOrder` when it takes longer."""
    seconds = rules.timeout_us / 1_000_000
    try:
        with anyio.fail_after(seconds):
            return await manager.restore(run, fallback=rules.fallback_to_previous)
    except TimeoutError:
        reason = f"taking {run} over took longer than {seconds:g} s (recovery.timeout)"
        raise BadOrder(order="resume", reason=reason) from None


def taken_out(workflow: Workflow, inputs: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The secret inputs, which leave a mark where they were."""
    hidden: dict[str, Any] = {}
    for declared in workflow.inputs:
        held = inputs.get(declared.name)
        if declared.secret and held is not None:
            hidden[declared.name] = held
            inputs[declared.name] = REDACTED
            if isinstance(held, str):
                redactor.add(held)
    return hidden


def secrets_again(workflow: Workflow, given: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The secret inputs of a run that is taken up again: as given, else from the environment.

    Raises `BadInput` for one that is nowhere: to go on without it would fail later, and less clearly.
    """
    found: dict[str, Any] = {}
    for declared in workflow.inputs:
        if not declared.secret or (not declared.required and declared.default is not None):
            continue
        variable = f"ORCHESTRA_INPUT_{declared.name.upper().replace('-', '_')}"
        held = given.get(declared.name) or os.environ.get(variable)
        if held is None:
            reason = f"it is secret, so it was not stored, and {variable} is not set"
            raise BadInput(input=declared.name, workflow=workflow.name, reason=reason)
        redactor.add(str(held))
        found[declared.name] = held
    return found
