"""The shapes of answers about states: what stands at a path, what differs, who set it, where it holds."""

from typing import Any, Literal

from pydantic import with_config
from typing_extensions import TypedDict

from orchestra.web.shapes.common import CLOSED, ReferenceOut
from orchestra.web.shapes.snapshots import EventOut


@with_config(CLOSED)
class StateOut(TypedDict):
    """What stands at a path of a state."""

    reference: str
    path: list[str | int]
    text: str
    kind: str
    count: int | None
    value: Any
    whole: bool


class ChangeOut(TypedDict):
    """One difference."""

    path: list[str | int]
    text: str
    kind: Literal["added", "removed", "changed"]
    before: Any
    after: Any


class CountsOut(TypedDict):
    """How many differences of each kind are listed."""

    added: int
    removed: int
    changed: int


DiffOut = TypedDict(
    "DiffOut",
    {
        "from": ReferenceOut | None,
        "to": ReferenceOut,
        "changes": list[ChangeOut],
        "counts": CountsOut,
        "truncated": bool,
    },
)


@with_config(CLOSED)
class BlameOut(ReferenceOut):
    """Who last set a value."""

    at: int
    who: str | None
    event: EventOut | None
    exact: bool
    before: Any
    after: Any
    was_there: bool
    text: str


class SeqsOut(TypedDict):
    """Snapshots by number."""

    seqs: list[int]


class MatchesOut(SeqsOut):
    """Snapshots where a condition holds."""

    truncated: bool


class FirstOut(TypedDict):
    """The first snapshot where a condition holds, if there is one."""

    seq: int | None
    reference: str | None
