"""The `checkpoint:` section, which a workflow file and the settings file share."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from orchestra.checkpoint.settings import OnSaveError
from orchestra.config.forms import Count, Duration, Form, Size, as_list
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
    days: Count | None = Field(
        default=30, description="Runs that ended longer ago keep only what is always kept."
    )
    per_phase: Count | None = Field(default=5, description="Marked snapshots kept for each phase.")
    per_run: Count | None = Field(default=None, description="Marked snapshots kept for each run.")
    preserve: bool = Field(default=False, description="Keep everything, for audits.")
    delete_on_completion: bool = Field(default=False, description="Delete a run when it has completed.")
    auto: bool = Field(default=False, description="Prune a run when it is over, without being asked.")


class CheckpointForm(Form):
    """How snapshots are taken and stored."""

    enabled: bool = Field(default=True, description="Off: kept in memory only, resume is refused.")
    store: str = Field(default=DEFAULT_STORE, description="Where snapshots go.")
    on: Annotated[
        list[Trigger],
        BeforeValidator(_triggers, json_schema_input_type=_Word | list[_Word]),
    ] = Field(default=[], description="Triggers whose snapshots are marked.")
    every: Duration = Field(
        default=600_000_000, description="A periodic snapshot while anything is active; 0: off."
    )
    interval: Count = Field(default=0, description="Mark every N completed assignments; 0: off.")
    memory_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.9, description="Memory in use from which a snapshot is taken."
    )
    json_files: bool = Field(default=False, description="Write marked snapshots as readable JSON files, too.")
    on_save_error: OnSaveError = Field(
        default="fail", description="What happens to the run when saving fails."
    )
    compression: bool = Field(default=True, description="Compress what is stored.")
    compression_level: Annotated[int, Field(ge=1, le=19)] = Field(
        default=3, description="1 is fast, 19 is small."
    )
    encryption: bool = Field(default=False, description="Not built yet.")
    audit: bool = Field(
        default=False, description="Note who reads or removes snapshots, in a file beside the store."
    )
    size_warning_bytes: Size = Field(
        default=SNAPSHOT_WARN_BYTES, description="A larger snapshot gives a notice."
    )
    size_limit_bytes: Size = Field(default=SNAPSHOT_BYTES, description="A larger snapshot is refused.")
    retention: RetentionForm = RetentionForm()
