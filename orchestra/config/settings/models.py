"""The settings file `configs/orchestra.yaml` as models; a workflow file shares some of its sections."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from orchestra.checkpoint.settings import OnSaveError
from orchestra.config.forms import Count, Duration, Form, Size, Steps, as_list, key, short
from orchestra.limits import SNAPSHOT_BYTES, SNAPSHOT_WARN_BYTES
from orchestra.model.snapshot import TRIGGER_ALIASES, TRIGGERS, Trigger
from orchestra.ports.store import DEFAULT_STORE


def _triggers(value: Any) -> Any:
    """Triggers by our names, also where the source documents' were written."""
    return [
        TRIGGER_ALIASES.get(each.replace(" ", "_"), each) if isinstance(each, str) else each
        for each in as_list(value)
    ]


_Word = Annotated[str, Field(json_schema_extra={"enum": [*TRIGGERS, *TRIGGER_ALIASES]})]


class RetentionForm(Form):
    """What is kept of a run once it is over. Nothing: no limit."""

    nulls: ClassVar[frozenset[str]] = frozenset({"days", "per_phase", "per_run"})
    days: Count | None = key(30, "Runs that ended longer ago keep only what is always kept.")
    per_phase: Count | None = key(5, "Marked snapshots kept for each phase.")
    per_run: Count | None = key(None, "Marked snapshots kept for each run.")
    preserve: bool = key(False, "Keep everything, for audits.")
    delete_on_completion: bool = key(False, "Delete a run when it has completed.")
    auto: bool = key(False, "Prune a run when it is over, without being asked.")


class CheckpointForm(Form):
    """How snapshots are taken and stored."""

    enabled: bool = key(True, "Off: kept in memory only, resume is refused.")
    store: str = key(DEFAULT_STORE, "Where snapshots go.")
    on: Annotated[list[Trigger], short(_triggers, _Word | list[_Word])] = key(
        [], "Triggers whose snapshots are marked."
    )
    every: Duration = key(600_000_000, "A periodic snapshot while anything is active; 0: off.")
    interval: Count = key(0, "Mark every N completed assignments; 0: off.")
    memory_share: Annotated[float, Field(gt=0, le=1)] = key(
        0.9, "Memory in use from which a snapshot is taken."
    )
    json_files: bool = key(False, "Write marked snapshots as readable JSON files, too.")
    on_save_error: OnSaveError = key("fail", "What happens to the run when saving fails.")
    compression: bool = key(True, "Compress what is stored.")
    compression_level: int = key(3, "1 is fast, 19 is small.", ge=1, le=19)
    encryption: bool = key(False, "Not built yet.")
    audit: bool = key(False, "Note who reads or removes snapshots, in a file beside the store.")
    size_warning_bytes: Size = key(SNAPSHOT_WARN_BYTES, "A larger snapshot gives a notice.")
    size_limit_bytes: Size = key(SNAPSHOT_BYTES, "A larger snapshot is refused.")
    retention: RetentionForm = RetentionForm()


class RecoveryForm(Form):
    """What happens after crashes, and after failures that restarts did not help."""

    auto: bool = key(True, "`orchestra run` first resumes incomplete runs of this workflow.")
    max_recoveries: Count = key(3, "In one run; then it is parked as failed.")
    timeout: Duration = key(300_000_000, "Of one recovery.")
    fallback_to_previous: bool = key(True, "A damaged head: go on from the newest whole snapshot.")
    on_failure: Steps = key(["restart", "rollback", "fail"], "What to try, in order.")


class PerformanceForm(Form):
    """How much is done at once, and where it goes."""

    process_concurrency: Annotated[int, Field(ge=1, le=100_000)] = key(
        64, "Assignments of all runs of one process at once."
    )
    outputs: str = key("outputs", "The folder that runs write into.", min_length=1)


class TelemetryForm(Form):
    """What is told about runs while they go on, beside their snapshots."""

    enabled: bool = key(True, "Spans and metrics of runs.")
    content: bool = key(False, "Spans tell prompts, answers, arguments and results, redacted and cut.")
    events: bool = key(True, "A journal of each run: events.jsonl.")


class SettingsForm(Form):
    """Settings of a project; a workflow, the environment and flags override them."""

    checkpoint: CheckpointForm = CheckpointForm()
    recovery: RecoveryForm = RecoveryForm()
    performance: PerformanceForm = PerformanceForm()
    telemetry: TelemetryForm = TelemetryForm()
