"""orchestra runs teams of agents and never loses their work.

The names below are the public ones. They are loaded when first used, so that importing the package costs
nothing.
"""

from importlib import import_module
from typing import Any

from orchestra.version import VERSION

_HOMES = {
    "Archive": "orchestra.checkpoint.archive",
    "ActiveRun": "orchestra.checkpoint.active",
    "CheckpointManager": "orchestra.checkpoint.manager",
    "CheckpointSettings": "orchestra.checkpoint.settings",
    "Confidence": "orchestra.model.parts",
    "Decision": "orchestra.model.parts",
    "OrchestraError": "orchestra.errors",
    "RetentionSettings": "orchestra.checkpoint.settings",
    "Snapshot": "orchestra.model.snapshot",
    "State": "orchestra.model.state",
    "Store": "orchestra.ports.store",
    "Verdict": "orchestra.model.parts",
    "freeze": "orchestra.codec.values",
    "open_manager": "orchestra.app",
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
