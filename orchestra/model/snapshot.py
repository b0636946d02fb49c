"""Snapshots: a state, the events that led to it, its parent and its triggers.

A `Header` is the part of a snapshot that is always kept: it names the parent, the patch that leads here
and the seal that the patches build on, and its digest is the snapshot's identity.
"""

from typing import Literal, TypeAlias, get_args

import attrs

from orchestra.ids import Digest, Instant, RunId
from orchestra.model.state import State

Trigger: TypeAlias = Literal[
    "run_started", "phase_start", "agent_launched", "milestone", "specialist_finished",
    "evaluation_completed", "decision", "confidence_threshold_crossed", "phase_completed",
    "error_encountered", "recovered", "rolled_back", "forked", "periodic", "interval", "memory_pressure_high",
    "rate_limited", "dependency_request", "user_question", "paused", "user_requested", "debug_breakpoint",
    "before_risky_operation", "shutdown", "completed", "failed", "cancelled",
]  # fmt: skip
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)

TRIGGER_ALIASES: dict[str, Trigger] = {
    "launched": "agent_launched",
    "step": "milestone",
    "after_node": "specialist_finished",
    "workflow_adjustment": "decision",
    "phase_completion": "phase_completed",
    "layer": "phase_completed",
    "error": "error_encountered",
    "rate_limit": "rate_limited",
    "manual_pause": "paused",
}
"""What the source documents call some triggers."""


@attrs.frozen(kw_only=True)
class Headline:
    """One event in a line: what kind, who, what, and its figures."""

    kind: str
    who: str | None = None
    what: str = ""
    figures: tuple[tuple[str, int | float], ...] = ()


@attrs.frozen(kw_only=True)
class Counts:
    """How much there is, and where the last decision came from: what a glance needs beside the header."""

    tasks: int
    decisions: int
    ago: int | None = None  # how many snapshots ago the last decision came; None: there is none, or not noted


@attrs.frozen(kw_only=True)
class Header:
    """What is always kept of a snapshot. Its digest is the snapshot's identity."""

    run: RunId
    seq: int
    parent: Digest | None
    at: Instant
    triggers: tuple[Trigger, ...]
    marked: bool  # chosen by `checkpoint.on`, `every` or `interval`: shown first, kept by retention
    events: tuple[Headline, ...]
    status: str
    phase: str | None
    ordinal: int
    generation: int = 0
    confidence: float | None = None
    open_failure: bool = False
    counts: Counts | None = None  # None in a header that was written before anything was counted
    patch: Digest
    seal: Digest  # root of the newest seal
    sealed_at: int  # the sequence number of that seal; equal to `seq` when this snapshot is sealed itself


@attrs.frozen(kw_only=True)
class Snapshot:
    """A state with its header and its identity."""

    digest: Digest
    header: Header
    state: State
    format: int  # the version of the stored form

    @property
    def reference(self) -> str:
        """How a person writes it, e.g. `code-review_20261115_143022_k7@12`."""
        return f"{self.header.run}@{self.header.seq}"
