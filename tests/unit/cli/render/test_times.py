"""Instants for people, and what people type."""

import pytest
import time_machine

from orchestra.cli.render.times import age, duration, full, one_day, parse_time, short
from orchestra.errors import BadSetting
from orchestra.ids import Instant

NOON = Instant(1_794_744_000_000_000)  # 2026-11-15 12:00:00 UTC
HOUR = 3_600_000_000


def test_full_and_short() -> None:
    assert full(NOON) == "2026-11-15 12:00:00.000 UTC"
    assert short(NOON, with_date=False) == "12:00:00"
    assert short(NOON, with_date=True) == "2026-11-15 12:00:00"


def test_an_instant_that_no_calendar_has_is_still_shown() -> None:
    assert full(Instant(10**20)) == f"{10**20} µs"
    assert short(Instant(10**20), with_date=True) == str(10**20)


@time_machine.travel("2026-11-15T15:00:00+00:00", tick=False)
@pytest.mark.parametrize(
    ("ago_us", "shown"),
    [
        (5_000_000, "5s"),
        (HOUR // 2, "30m"),
        (3 * HOUR, "3h"),
        (72 * HOUR, "3d"),
        (24 * 100 * HOUR, "3mo"),
        (-HOUR, "0s"),
    ],
)
def test_age(ago_us: int, shown: str) -> None:
    assert age(Instant(NOON + 3 * HOUR - ago_us)) == shown


def test_one_day() -> None:
    assert one_day([NOON, Instant(NOON + HOUR)])
    assert not one_day([NOON, Instant(NOON + 24 * HOUR)])
    assert one_day([])


@time_machine.travel("2026-11-15T15:00:00+00:00", tick=False)
@pytest.mark.parametrize(
    "text", ["3h", "180m", "10800s", "2026-11-15T12:00:00Z", "2026-11-15 12:00", "2026-11-15T13:00:00+01:00"]
)
def test_times_as_people_type_them(text: str) -> None:
    assert parse_time(text, option="--since") == NOON


@pytest.mark.parametrize("text", ["yesterday", "", "3 hours", "99999-01-01", "-3h", "3y"])
def test_times_that_cannot_be_read(text: str) -> None:
    with pytest.raises(BadSetting, match="--since cannot be"):
        parse_time(text, option="--since")


@pytest.mark.parametrize(
    ("us", "shown"), [(5000, "5 ms"), (1_500_000, "1.5 s"), (200_000_000, "3m 20s"), (2 * HOUR, "2h 0m")]
)
def test_duration(us: int, shown: str) -> None:
    assert duration(us) == shown
