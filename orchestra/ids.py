"""Identifiers and instants: each its own type, so that none can be taken for another.

An `Instant` is whole microseconds since 1970 in UTC. A `Digest` is the 32 bytes of a BLAKE3 hash. Run ids
become file names and parts of URLs, so their alphabet is checked here.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import NewType
from uuid import UUID

from orchestra.errors import BadName
from orchestra.limits import NAME_CHARS, RUN_ID_CHARS

RunId = NewType("RunId", str)
AgentId = NewType("AgentId", str)
PhaseId = NewType("PhaseId", str)
TaskId = NewType("TaskId", str)
EffectKey = NewType("EffectKey", str)
Digest = NewType("Digest", bytes)
Seq = NewType("Seq", int)
Fence = NewType("Fence", int)
Instant = NewType("Instant", int)

DIGEST_BYTES = 32

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SLUG = re.compile(r"[^a-z0-9]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def run_id(text: str) -> RunId:
    """`text` as a run id; raises `BadName` when it could not be a file name."""
    if len(text) > RUN_ID_CHARS or not _RUN_ID.fullmatch(text) or ".." in text:
        raise BadName(what="run id", name=text, rule="letters, digits, dot, dash and underscore, at most 128")
    return RunId(text)


def name(text: str, *, what: str) -> str:
    """`text` when it can be a name inside a run: not empty, printable, not too long."""
    if not text or len(text) > NAME_CHARS or not text.isprintable():
        raise BadName(what=what, name=text, rule=f"1 to {NAME_CHARS} printable characters")
    return text


def new_run_id(workflow: str, at: Instant, entropy: bytes) -> RunId:
    """A readable, sortable id such as `code-review_20261115_143022_k7`."""
    slug = _SLUG.sub("-", workflow.lower()).strip("-")[:64] or "run"
    stamp = moment(at).strftime("%Y%m%d_%H%M%S")
    tail = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in entropy)
    return run_id(f"{slug}_{stamp}_{tail}")


def wall_clock() -> Instant:
    """The time of this machine, in UTC."""
    return Instant(time.time_ns() // 1000)


def instant(value: datetime) -> Instant:
    """The instant of an aware datetime."""
    assert value.tzinfo is not None, "BUG: a datetime without a zone has no instant"
    return Instant((value - _EPOCH) // timedelta(microseconds=1))


def moment(at: Instant) -> datetime:
    """An instant as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def iso(at: Instant) -> str:
    """An instant as ISO text, e.g. `2026-11-15T14:30:22.118000Z`."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def uuid_of(digest: Digest) -> UUID:
    """The UUID derived from a digest: its first 16 bytes, marked as version 8."""
    return UUID(bytes=_as_v8(digest[:16]))


def matches_uuid(digest: Digest, wanted: UUID) -> bool:
    """Whether `wanted` is the UUID derived from `digest`."""
    return _as_v8(digest[:16]) == wanted.bytes


def _as_v8(head: bytes) -> bytes:
    raw = bytearray(head)
    raw[6] = (raw[6] & 0x0F) | 0x80
    raw[8] = (raw[8] & 0x3F) | 0x80
    return bytes(raw)
