"""Spans as plain records, before anybody has decided where they go; and how they get their ids.

A run's trace id is derived from the run's id, and a span's from the run, what it is and the number of the
snapshot it began at. So a resumed run joins the trace it left, and what an interrupted process could not
finish can be told later under the ids its children already refer to.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

import attrs

from orchestra.ids import Instant, RunId
from orchestra.limits import SPAN_EVENTS
from orchestra.model.frozen import maker
from orchestra.telemetry import names

Attribute: TypeAlias = str | int | float | bool | tuple[str, ...]
Attributes: TypeAlias = dict[str, Attribute]


def trace_id(run: RunId) -> str:
    """The trace of a run: 32 hexadecimal digits."""
    return blake2b(run.encode(), digest_size=16, person=b"orchestra.trace").hexdigest()


def span_id(run: RunId, kind: str, key: str, seq: int) -> str:
    """The id of a span: 16 hexadecimal digits."""
    return f"{_number(run) ^ _number(f'{kind}/{seq}/{key}'):016x}"


@lru_cache(maxsize=4096)
def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=b"orchestra.span").digest(), "big")


@attrs.frozen
class SpanEvent:
    """Something that happened inside a span."""

    name: str
    at: Instant
    attributes: Attributes


_span_event: Final = maker(SpanEvent)


@attrs.frozen
class SpanLink:
    """Another span that this one has to do with."""

    trace: str
    id: str
    attributes: Attributes


@attrs.define(eq=False)
class Fixed:
    """Attributes that spans of many runs have in common. They are not changed."""

    attributes: Attributes
    text: str = ""  # as it is written, once that was made


_NONE: Final = Fixed({})


@attrs.define(kw_only=True)
class Span:
    """A stretch of work; it changes until it is ended."""

    run: RunId
    trace: str
    id: str
    name: str
    seq: int  # the number of the snapshot it began at
    start: Instant
    parent: str | None = None
    end: Instant = Instant(0)
    status: str = ""  # how it ended
    fixed: Fixed = _NONE
    attributes: Attributes = attrs.field(factory=dict)  # beside the fixed ones
    events: list[SpanEvent] = attrs.field(factory=list)
    dropped: int = 0  # events past the limit
    links: tuple[SpanLink, ...] = ()
    error: str | None = None
    is_client: bool = False  # whether somebody else was asked, over there

    @property
    def about(self) -> Attributes:
        own: Attributes = {names.RUN: self.run, names.SEQ: self.seq, names.STATUS: self.status}
        return {**own, **self.fixed.attributes, **self.attributes}

    def add_event(self, name: str, at: Instant, attributes: Attributes) -> None:
        if len(self.events) >= SPAN_EVENTS:
            self.dropped += 1
        else:
            self.events.append(_span_event(name, at, attributes))

    def add(self, name: str, amount: int) -> None:
        """Add to an attribute that counts."""
        if amount:
            held = self.attributes.get(name, 0)
            assert isinstance(held, int), f"BUG: {name} does not count"
            self.attributes[name] = held + amount
