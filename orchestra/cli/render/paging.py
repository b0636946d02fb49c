"""How much of a list is shown."""

import sys
from typing import Final

from orchestra.errors import BadSetting

PAGE: Final = 50
"""How many entries a list shows unless it is told otherwise."""


def parse_limit(limit: int) -> int | None:
    """A limit as typed, as the number to keep to; None is all."""
    if limit < 0:
        raise BadSetting(setting="--limit", value=limit, reason="it counts entries; 0 is all")
    return limit or None


def tell_page(shown: int, more: bool) -> None:
    """Say beside JSON that it is one page, when nobody asked for that many."""
    if more and shown == PAGE:
        sys.stderr.write(f"these are the newest {shown}; --limit 0 gives all\n")


def words(given: list[str]) -> list[str]:
    """The values of an option that may be repeated, or given once with commas."""
    return [word.strip() for each in given for word in each.split(",") if word.strip()]
