"""orchestra runs teams of agents and never loses their work.

The names below are the public ones. They are loaded when first used, so that importing the package costs
nothing.
"""

from importlib import import_module
from typing import Any

from orchestra.version import VERSION

_HOMES = {
    "Agent": "orchestra.model.workflow",
    "Archive": "orchestra.history.archive",
    "ActiveRun": "orchestra.checkpoint.active",
    "CheckpointManager": "orchestra.checkpoint.manager",
    "CheckpointSettings": "orchestra.checkpoint.settings",
    "BlockingContext": "orchestra.agents.context",
    "Confidence": "orchestra.model.records",
    "Context": "orchestra.agents.context",
    "ContextName": "orchestra.model.workflow",
    "Criterion": "orchestra.model.workflow",
    "Decision": "orchestra.model.records",
    "Ending": "orchestra.engine.atlas",
    "Evaluate": "orchestra.model.workflow",
    "Input": "orchestra.model.workflow",
    "Judgement": "orchestra.ports.agent",
    "Orchestra": "orchestra.app.orchestra",
    "OrchestraError": "orchestra.errors",
    "Phase": "orchestra.model.workflow",
    "Policy": "orchestra.model.workflow",
    "Result": "orchestra.ports.agent",
    "RetentionSettings": "orchestra.checkpoint.settings",
    "Snapshot": "orchestra.model.snapshot",
    "Specialist": "orchestra.model.workflow",
    "State": "orchestra.model.state",
    "Store": "orchestra.ports.store",
    "Transition": "orchestra.model.workflow",
    "Verdict": "orchestra.model.records",
    "Workflow": "orchestra.model.workflow",
    "freeze": "orchestra.codec.values",
    "load_workflow": "orchestra.app.workflow_files",
    "open_manager": "orchestra.app.compose",
    "open_store": "orchestra.stores.registry",
    "thaw": "orchestra.codec.values",
}

__version__ = VERSION
__all__ = [*sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'orchestra' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
