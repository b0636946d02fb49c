"""What many answers hold, and what every question may be answered with instead."""

from typing import Any

from pydantic import ConfigDict
from typing_extensions import TypedDict

CLOSED = ConfigDict(extra="forbid")
"""Nothing else may be sent."""


class ProblemOut(TypedDict):
    """What went wrong: the name of the error, and a sentence that says what to do next."""

    error: str
    message: str


class PlaceOut(TypedDict):
    """A snapshot of a run by number."""

    run: str
    seq: int


class ReferenceOut(PlaceOut):
    """A snapshot, also as people write it."""

    reference: str


_SAID: dict[int, str] = {
    400: "It cannot be understood.",
    403: "It is not allowed: the token, the host or the origin is wrong, or the browser only reads.",
    404: "There is no such run, snapshot or place.",
    408: "It took too long.",
    409: "It cannot be done with the run as it is.",
    410: "The snapshot was pruned.",
    413: "It brings too much.",
    422: "A parameter does not fit, or what is stored is damaged.",
    431: "The address and the headers are too long.",
    503: "The store is in trouble, or too much is asked at once.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": said} for status, said in _SAID.items()
}


def sends(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """A description of answers that are not JSON, by their media types."""
    return {200: {"content": {kind: {} for kind in kinds}}}
