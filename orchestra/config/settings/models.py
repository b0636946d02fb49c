"""The settings file `configs/orchestra.yaml` as pydantic models."""

from typing import Annotated

from pydantic import Field

from orchestra.config.forms import Form
from orchestra.config.models import RecoveryForm
from orchestra.config.settings.checkpoint_models import CheckpointForm


class PerformanceForm(Form):
    """How much is done at once, and where it goes."""

    process_concurrency: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=64, description="Assignments of all runs of one process at once."
    )
    outputs: str = Field(default="outputs", description="The folder that runs write into.", min_length=1)


class TelemetryForm(Form):
    """What is told about runs while they go on, beside their snapshots."""

    enabled: bool = Field(default=True, description="Spans and metrics of runs.")
    events: bool = Field(default=True, description="A journal of each run: events.jsonl.")


class SettingsForm(Form):
    """Settings of a project; a workflow, the environment and flags override them."""

    checkpoint: CheckpointForm = CheckpointForm()
    recovery: RecoveryForm = RecoveryForm()
    performance: PerformanceForm = PerformanceForm()
    telemetry: TelemetryForm = TelemetryForm()
