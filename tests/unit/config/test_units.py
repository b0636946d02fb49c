"""Durations and sizes."""

import pytest

from orchestra.config.units import duration_us, shown_duration, size_bytes


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1s", 1_000_000),
        ("5m", 300_000_000),
        ("500ms", 500_000),
        ("7us", 7),
        ("1h30m", 5_400_000_000),
        ("1h 30m", 5_400_000_000),
        ("1.5s", 1_500_000),
        ("1d", 86_400_000_000),
        (2, 2_000_000),
        (0.25, 250_000),
        (0, 0),
    ],
)
def test_durations_are_read(text: object, us: int) -> None:
    assert duration_us(text) == us


@pytest.mark.parametrize(
    "text", ["", "5", "5x", "s", "-1s", "5 minutes", -1, True, None, [], 1e30, "9999d", "1s,"]
)
def test_other_durations_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_us(text)


def test_durations_are_shown_as_they_are_written() -> None:
    shown = [shown_duration(us) for us in (0, 7, 500_000, 90_000_000, 600_000_000, 3_600_000_000)]
    assert shown == ["0s", "7us", "500ms", "90s", "10m", "1h"]


def test_sizes_are_read() -> None:
    assert [size_bytes(each) for each in (5, "5", "2KB", "1 mb")] == [5, 5, 2048, 1024 * 1024]
    for wrong in ("", "MB", "1TB", -1, True, 1.5):
        with pytest.raises(ValueError, match="a size such as"):
            size_bytes(wrong)
