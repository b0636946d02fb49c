"""What can be asked: the parameters of the routes, with their bounds."""

import json
from typing import Annotated

from fastapi import Path, Query

from orchestra import limits
from orchestra.history.paths import Path as StatePath
from orchestra.web.errors import BadRequest

RUN_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
AT_PATTERN = r"^(head|last-good|phase:[^/\x00]+|-?[0-9]{1,12})$"
AT_NUMBER = 10**12 - 1
AT_WORDS = "A snapshot: its number, head, last-good or phase:NAME."
NUMBER = 1 << 53
_STEPS = 200
_CHARS = limits.NAME_CHARS

RunName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=limits.RUN_ID_CHARS,
        pattern=RUN_PATTERN,
        description="A run's id, or any beginning of it that fits no other.",
    ),
]
At = Annotated[str, Path(min_length=1, max_length=_CHARS, pattern=AT_PATTERN, description=AT_WORDS)]
_AT_QUERY = Query(alias="at", min_length=1, max_length=_CHARS, pattern=AT_PATTERN, description=AT_WORDS)
AtQuery = Annotated[str, _AT_QUERY]
AtOptional = Annotated[str | None, _AT_QUERY]
Reference = Annotated[
    str, Query(min_length=1, max_length=_CHARS, description="RUN, RUN@12, a digest or a UUID.")
]
PathText = Annotated[
    str,
    Query(
        alias="path",
        max_length=limits.WEB_PATH_CHARS,
        description='A place in a state: a JSON array of names and positions, e.g. ["tasks","a/b","result"].',
    ),
]
Version = Annotated[
    str | None,
    Query(
        alias="v",
        pattern=r"^[0-9a-f]{12,64}$",
        max_length=64,
        description="The beginning of the snapshot's digest; the answer may then be kept for good.",
    ),
]
Expression = Annotated[
    str, Query(alias="expr", min_length=1, max_length=limits.EXPRESSION_CHARS, description="A condition.")
]
Limit = Annotated[int, Query(ge=1, le=limits.WEB_DIFF_CHANGES_MAX)]
Seq = Annotated[int | None, Query(ge=0, le=NUMBER)]
Micros = Annotated[int | None, Query(ge=0, le=NUMBER, description="Microseconds since 1970.")]
Word = Annotated[str | None, Query(max_length=_CHARS)]


def steps_of(text: str) -> StatePath:
    """The steps of a path; raises `BadRequest`."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest(reason='a path is a JSON array such as ["tasks","a"]') from None
    steps = plain if isinstance(plain, list) else [None]
    fits = (isinstance(each, str) or (type(each) is int and abs(each) < NUMBER) for each in steps)
    if len(steps) > _STEPS or not all(fits):
        raise BadRequest(reason="a path is a JSON array of names and positions")
    return tuple(plain)


def comma_list(text: str | None) -> tuple[str, ...]:
    """Words that are separated by commas."""
    return tuple(word for word in (text or "").split(",") if word)
