"""Instants for people, in the zone of their machine, and the instants that people type."""

import re
from datetime import datetime, timedelta
from typing import Final

from orchestra.errors import BadSetting
from orchestra.ids import Instant, instant, moment, wall_clock

_RELATIVE: Final = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_STEPS: Final = ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h"), (86400 * 60, 86400, "d"))


def _local(at: Instant) -> datetime | None:
    """An instant in the zone of this machine; None for one that no calendar has."""
    try:
        return moment(at).astimezone()
    except (OverflowError, ValueError, OSError):
        return None


def full(at: Instant) -> str:
    """Date and time with its zone, e.g. `2026-11-15 14:30:22.118 +01:00`."""
    if (when := _local(at)) is None:
        return f"{at} µs"
    offset = when.strftime("%z")
    zone = "UTC" if offset in ("+0000", "") else f"{offset[:3]}:{offset[3:5]}"
    return f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond // 1000:03} {zone}"


def short(at: Instant, *, with_date: bool) -> str:
    """The time of day, with the date when asked for."""
    when = _local(at)
    return str(at) if when is None else when.strftime("%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S")


def one_day(instants: list[Instant]) -> bool:
    """Whether all lie on one day of this machine's calendar."""
    return len({when.date() if (when := _local(at)) else None for at in instants}) <= 1


def age(at: Instant) -> str:
    """How long ago, in one figure, e.g. `3m`."""
    seconds = max(0, (wall_clock() - at) // 1_000_000)
    for below, unit, name in _STEPS:
        if seconds < below:
            return f"{seconds // unit}{name}"
    return f"{seconds // (86400 * 365)}y" if seconds >= 86400 * 730 else f"{seconds // (86400 * 30)}mo"


def parse_time(text: str, *, option: str) -> Instant:
    """An instant as people type it: ISO text, or how long ago (`90s`, `15m`, `2h`, `3d`, `1w`)."""
    if (relative := _RELATIVE.fullmatch(text.strip())) is not None:
        return Instant(wall_clock() - int(relative[1]) * _SECONDS[relative[2]] * 1_000_000)
    try:
        when = datetime.fromisoformat(text.strip())
        return instant(when if when.tzinfo is not None else when.astimezone())
    except (ValueError, OverflowError, OSError):
        reason = "write a time such as 2026-11-15T14:30 or how long ago, such as 90s, 15m, 2h, 3d or 1w"
        raise BadSetting(setting=option, value=text, reason=reason) from None


def duration(microseconds: int) -> str:
    """A length of time for people, e.g. `850 ms` or `3m 20s`."""
    if microseconds < 1_000_000:
        return f"{microseconds // 1000} ms"
    seconds = timedelta(microseconds=microseconds) // timedelta(seconds=1)
    if seconds < 60:
        return f"{microseconds / 1_000_000:.1f} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours else f"{minutes}m {seconds}s"
