"""Sinks are told about snapshots as they are saved. A sink that fails never fails a run."""

from typing import Literal, Protocol, TypeAlias

import attrs

from orchestra.ids import Digest, Instant, RunId
from orchestra.model.events import Event
from orchestra.model.snapshot import Header
from orchestra.model.state import State


@attrs.frozen(kw_only=True)
class CheckpointSaved:
    """A snapshot is durable."""

    run: RunId
    seq: int
    digest: Digest
    at: Instant
    size: int
    seconds: float  # from the call to the acknowledgement
    triggers: tuple[str, ...]
    marked: bool
    kind: Literal["checkpoint_saved"] = "checkpoint_saved"


@attrs.frozen(kw_only=True)
class CheckpointFailed:
    """A snapshot could not be saved."""

    run: RunId
    seq: int
    at: Instant
    error: str
    unsaved: int  # how many snapshots are waiting to be saved
    kind: Literal["checkpoint_failed"] = "checkpoint_failed"


@attrs.frozen(kw_only=True)
class CheckpointLarge:
    """A snapshot is larger than is good."""

    run: RunId
    seq: int
    at: Instant
    size: int
    kind: Literal["checkpoint_large"] = "checkpoint_large"


@attrs.frozen(kw_only=True)
class TurnRecorded:
    """A turn is durable: what happened in it, and the state it led to."""

    run: RunId
    header: Header
    state: State
    events: tuple[Event, ...]
    kind: Literal["turn_recorded"] = "turn_recorded"


Notice: TypeAlias = CheckpointSaved | CheckpointFailed | CheckpointLarge | TurnRecorded


class Sink(Protocol):
    """Told about every notice, in order, on the loop's thread."""

    def notice(self, notice: Notice, /) -> None:
        """Handle one notice."""
