"""Workflow files, read with every kind of agent there is.

It is no part of `compose` because whoever only looks at runs need not load the language of workflows.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from orchestra.agents.registry import KINDS
from orchestra.config import load
from orchestra.config.load import LoadedWorkflow
from orchestra.model.workflow import Agent


def load_workflow(path: Path | str, models: Collection[str] = ()) -> LoadedWorkflow:
    """The workflow in a file; raises `BadWorkflow` with every mistake in it.

    `models` will be asked instead of those that its agents name, which then need not be there.
    """
    return load.load_workflow(path, KINDS, models)


def workflow_schema() -> dict[str, Any]:
    """The JSON Schema of workflow files, with the keys of every kind of agent; raises `BadAgentKind`."""
    from orchestra.config.schema import schema

    return schema(KINDS.kinds)


def fingerprint(agent: Agent, folder: Path) -> str:
    """The fingerprint that an agent has now; raises `OSError` or `BadAgentKind`."""
    return KINDS.by_name(agent.kind).fingerprint(agent, folder)


def model_mistake(loaded: LoadedWorkflow, models: tuple[str, ...]) -> str:
    """Why the agents of a workflow cannot ask these models, in words; empty when they can."""
    if not models:
        return ""
    asking = False
    for agent in loaded.workflow.agents:
        kind = KINDS.by_name(agent.kind)
        other = kind.with_models(agent, models)
        asking = asking or other is not agent
        for place, reason in kind.mistakes(other, loaded.file.parent) if other is not agent else ():
            if place == ("model",):
                return reason
    return "" if asking else f"{loaded.workflow.name} has no language-model agents"
