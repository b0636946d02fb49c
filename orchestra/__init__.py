"""orchestra runs teams of agents and never loses their work.

What a program needs is here; the rest is in `orchestra.workflow` (building workflows), `orchestra.recording`
(the snapshot store by itself) and `orchestra.testing`. Names are loaded when they are first used, so that
importing the package costs nothing; a type checker sees them as they are.
"""

from typing import TYPE_CHECKING

from orchestra.version import VERSION

if TYPE_CHECKING:
    from orchestra.agents.context import BlockingContext, Context
    from orchestra.app.building.builder import workflow
    from orchestra.app.building.elements import agent, agent_command, agent_file
    from orchestra.app.orchestra import Orchestra
    from orchestra.app.workflow_files import load_workflow
    from orchestra.checkpoint.settings import CheckpointSettings
    from orchestra.engine.atlas import Ending
    from orchestra.engine.run_state import RunState
    from orchestra.engine.settings import EngineSettings
    from orchestra.errors import BadInput, BadWorkflow, OrchestraError, UsageError
    from orchestra.model.records import Decision
    from orchestra.ports.agent import Judgement, Result
else:
    _NAMES = {
        "agents.context": {"BlockingContext", "Context"},
        "app.building.builder": {"workflow"},
        "app.building.elements": {"agent", "agent_command", "agent_file"},
        "app.orchestra": {"Orchestra"},
        "checkpoint.settings": {"CheckpointSettings"},
        "app.workflow_files": {"load_workflow"},
        "engine.atlas": {"Ending"},
        "engine.run_state": {"RunState"},
        "engine.settings": {"EngineSettings"},
        "errors": {"BadInput", "BadWorkflow", "OrchestraError", "UsageError"},
        "model.records": {"Decision"},
        "ports.agent": {"Judgement", "Result"},
    }

    def __getattr__(name):
        from importlib import import_module

        for home, names in _NAMES.items():
            if name in names:
                return getattr(import_module(f"orchestra.{home}"), name)
        raise AttributeError(f"module 'orchestra' has no attribute {name!r}")

    def __dir__():
        return [*__all__, "__version__"]


__version__ = VERSION
__all__ = [
    "BadInput",
    "BadWorkflow",
    "BlockingContext",
    "CheckpointSettings",
    "Context",
    "Decision",
    "Ending",
    "EngineSettings",
    "Judgement",
    "Orchestra",
    "OrchestraError",
    "Result",
    "RunState",
    "UsageError",
    "agent",
    "agent_command",
    "agent_file",
    "load_workflow",
    "workflow",
]
