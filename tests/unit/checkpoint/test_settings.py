"""Settings that cannot be honoured are refused when they are made."""

from typing import Any

import pytest

from orchestra.checkpoint.settings import (
    MARKED_TRIGGERS,
    QUIET_TRIGGERS,
    CheckpointSettings,
    RetentionSettings,
)
from orchestra.errors import BadSetting
from orchestra.limits import SNAPSHOT_BYTES
from orchestra.model.snapshot import TRIGGER_ALIASES, TRIGGERS


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("encryption", True),
        ("compression_level", 0),
        ("compression_level", 20),
        ("size_limit_bytes", 0),
        ("size_limit_bytes", SNAPSHOT_BYTES + 1),
        ("interval", -1),
    ],
)
def test_what_cannot_be_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(BadSetting, match=f"checkpoint.{setting}") as caught:
        CheckpointSettings(**{setting: value})
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("setting", ["days", "per_phase", "per_run"])
def test_retention_counts_from_nothing(setting: str) -> None:
    none: dict[str, Any] = {setting: 0}
    fewer: dict[str, Any] = {setting: -1}
    RetentionSettings(**none)
    with pytest.raises(BadSetting, match=f"retention.{setting}"):
        RetentionSettings(**fewer)


def test_compression_can_be_off() -> None:
    assert CheckpointSettings().level == 3
    assert CheckpointSettings(compression_level=9).level == 9
    assert CheckpointSettings(compression=False, compression_level=9).level == 0


def test_every_trigger_is_marked_or_quiet() -> None:
    assert set(TRIGGERS) == MARKED_TRIGGERS | QUIET_TRIGGERS
    assert not MARKED_TRIGGERS & QUIET_TRIGGERS
    assert CheckpointSettings().on == MARKED_TRIGGERS


def test_aliases_lead_to_triggers_and_hide_none() -> None:
    assert set(TRIGGER_ALIASES.values()) <= set(TRIGGERS)
    assert not set(TRIGGER_ALIASES) & set(TRIGGERS)
