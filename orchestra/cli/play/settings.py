"""Settings for a command that plays runs: where they come from, and the store that follows from them."""

import os
from collections.abc import Mapping
from typing import Any

import attrs

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.config.settings.resolve import (
    ResolvedSetting,
    checkpoint_settings,
    engine_settings,
    read_settings,
    recovery_policy,
    resolve,
)
from orchestra.engine.settings import EngineSettings
from orchestra.model.workflow import RecoveryPolicy


@attrs.frozen
class PlaySettings:
    """The settings in force for a run."""

    checkpoint: CheckpointSettings
    engine: EngineSettings
    recovery: RecoveryPolicy

    @property
    def url(self) -> str:
        """Where its snapshots go."""
        return self.checkpoint.store if self.checkpoint.enabled else "memory:"


def resolve_settings(
    store: str | None, workflow: Mapping[str, Any] | None = None, name: str = "the workflow"
) -> tuple[ResolvedSetting, ...]:
    """Every setting with its value and where it came from; raises `BadSetting` and `BadWorkflow`."""
    flags = {"checkpoint.store": store} if store else {}
    file, environment = read_settings(), dict(os.environ)
    return resolve(file=file, workflow=workflow, environment=environment, flags=flags, workflow_name=name)


def settings_in_force(store: str | None = None, workflow: Mapping[str, Any] | None = None) -> PlaySettings:
    """The settings in force; raises `BadSetting` and `BadWorkflow`."""
    found = resolve_settings(store, workflow)
    return PlaySettings(checkpoint_settings(found), engine_settings(found), recovery_policy(found))
