"""Building workflows in Python: the words of workflow files as functions and typed options.

`orchestra.workflow` is also the function that begins a workflow: this module can be called as it is.
"""

import sys
from types import ModuleType

from orchestra.app.building.builder import WorkflowBuilder, workflow
from orchestra.app.building.elements import (
    AgentClass,
    AgentCode,
    AgentRef,
    BudgetOptions,
    ConfidenceOptions,
    PhasePart,
    RecoveryOptions,
    RetryOptions,
    SourceLine,
    SpecialistSpec,
    agent,
    agent_command,
    agent_entry,
    agent_file,
    ask,
    evaluation,
    spawn,
    to,
)
from orchestra.app.definitions import Definition
from orchestra.app.workflow_files import load_workflow
from orchestra.config.load import LoadedWorkflow
from orchestra.model.workflow import RecoveryPolicy, Workflow

__all__ = [
    "AgentClass",
    "AgentCode",
    "AgentRef",
    "BudgetOptions",
    "ConfidenceOptions",
    "Definition",
    "LoadedWorkflow",
    "PhasePart",
    "RecoveryOptions",
    "RecoveryPolicy",
    "RetryOptions",
    "SourceLine",
    "SpecialistSpec",
    "Workflow",
    "WorkflowBuilder",
    "agent",
    "agent_command",
    "agent_entry",
    "agent_file",
    "ask",
    "evaluation",
    "load_workflow",
    "spawn",
    "to",
    "workflow",
]


class _CallableModule(ModuleType):
    """Importing this module puts it where the package has the function of the same name."""

    __call__ = staticmethod(workflow)


sys.modules[__name__].__class__ = _CallableModule
