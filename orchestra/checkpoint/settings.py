"""Settings of the snapshot engine. `docs/reference/settings.md` describes each."""

from typing import Literal, TypeAlias

import attrs

from orchestra.errors import BadSetting
from orchestra.limits import MB, SNAPSHOT_BYTES, SNAPSHOT_WARN_BYTES
from orchestra.model.snapshot import TRIGGERS, Trigger
from orchestra.ports.store import DEFAULT_STORE

OnSaveError: TypeAlias = Literal["fail", "continue"]

QUIET_TRIGGERS: frozenset[Trigger] = frozenset({"agent_launched", "milestone"})
"""Stored like every turn, but not marked unless asked for."""
MARKED_TRIGGERS: frozenset[Trigger] = frozenset(TRIGGERS) - QUIET_TRIGGERS


@attrs.frozen(kw_only=True)
class RetentionSettings:
    """What is kept of a run once it is over; while a run is active everything is kept."""

    days: int | None = 30  # runs that ended longer ago are pruned to what is always kept
    per_phase: int | None = 5  # marked snapshots kept for each phase
    per_run: int | None = None  # marked snapshots kept for each run
    preserve: bool = False  # keep everything, for audits
    delete_on_completion: bool = False  # delete a run when it has completed
    auto: bool = False  # prune a run by these rules when it is over, without being asked

    def __attrs_post_init__(self) -> None:
        for name in ("days", "per_phase", "per_run"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise BadSetting(setting=f"retention.{name}", value=value, reason="it cannot be negative")


@attrs.frozen(kw_only=True)
class CheckpointSettings:
    """How snapshots are taken and stored."""

    enabled: bool = True  # off: kept in memory only, resume is refused
    store: str = DEFAULT_STORE
    on: frozenset[Trigger] = MARKED_TRIGGERS  # triggers whose snapshots are marked
    interval: int = 0  # mark every N completed assignments; 0 is off
    on_save_error: OnSaveError = "fail"
    compression: bool = True
    compression_level: int = 3  # 1 to 19
    encryption: bool = False
    audit: bool = False  # note who reads or removes snapshots, in a file beside the store
    size_warning_bytes: int = SNAPSHOT_WARN_BYTES
    size_limit_bytes: int = SNAPSHOT_BYTES
    retention: RetentionSettings = RetentionSettings()

    def __attrs_post_init__(self) -> None:
        no_encryption = "stores cannot be encrypted yet; leave it off, or keep the store on an encrypted disk"
        limits = f"it must be between 1 byte and {SNAPSHOT_BYTES // MB} MB"
        for name, fits, reason in (
            ("encryption", not self.encryption, no_encryption),
            ("compression_level", 1 <= self.compression_level <= 19, "levels are 1 to 19"),
            ("size_limit_bytes", 0 < self.size_limit_bytes <= SNAPSHOT_BYTES, limits),
            ("interval", self.interval >= 0, "it counts assignments"),
        ):
            if not fits:
                raise BadSetting(setting=f"checkpoint.{name}", value=getattr(self, name), reason=reason)

    @property
    def level(self) -> int:
        """The compression level in force; 0 is off."""
        return self.compression_level if self.compression else 0
