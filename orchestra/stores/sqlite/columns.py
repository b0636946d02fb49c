"""Values as columns and back, each with its check.

Everything that no digest covers carries a CRC over its columns, because SQLite does not notice a flipped bit
in the content of a row. Reading a row whose CRC does not fit raises `Damaged`. A flipped bit may also change
a column's type or shift its borders; so types and lengths are part of what is checked.
"""

import struct
from functools import lru_cache
from typing import Any
from zlib import crc32

from orchestra.errors import BadName, Damaged
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import Annotation, Command, ObjectInfo, Row, RunRow
from orchestra.stores.sqlite.statements import Columns

SEPARATOR = "\x1f"
"""Stands before, between and after the items of a list in one text column; it cannot be part of a name."""

_ROW = struct.Struct("<13q")
_RUN = struct.Struct("<6q")
_OBJECT = struct.Struct("<3q")
_COMMAND = struct.Struct("<3q")
_ANNOTATION = struct.Struct("<2q")


@lru_cache(maxsize=4096)
def join_list(items: tuple[str, ...]) -> str:
    """A list as one text."""
    if not items:
        return ""
    text = SEPARATOR.join(items)
    if text.count(SEPARATOR) != len(items) - 1:
        raise BadName(what="part of a list", name=text, rule="printable characters")
    return f"{SEPARATOR}{text}{SEPARATOR}"


@lru_cache(maxsize=4096)
def split_list(text: str) -> tuple[str, ...]:
    """The list that `join_list` wrote."""
    return tuple(text[1:-1].split(SEPARATOR)) if text else ()


def body_crc(header: bytes, patch: bytes | None) -> int:
    """The check of a row's content."""
    start = crc32(header, len(header))
    return start ^ 1 if patch is None else crc32(patch, start)


def row_crc(columns: Columns, body: int) -> int:
    """The check of a row's first 15 columns; `body` is the check of its content."""
    (no, run_no, seq, at, status, phase, triggers, agents, marked, sealed_at, size, pruned,
     digest, parent, seal) = columns  # fmt: skip
    numbers = _ROW.pack(
        no, run_no, seq, at, marked, sealed_at, size, pruned, body, len(digest), len(seal),
        -1 if parent is None else len(parent), -1 if phase is None else len(phase),
    )  # fmt: skip
    text = f"{status}\0{phase}\0{triggers}\0{agents}".encode()
    return crc32(b"".join((numbers, digest, parent or b"", seal, text)))


def row_of(columns: Columns, run: RunId | None, *, content: bool) -> Row:
    """A row from its columns, checked. The last two columns are header and patch, or None without content."""
    (no, run_no, seq, at, status, phase, triggers, agents, marked, sealed_at, size, pruned,
     digest, parent, seal, crc, body, header, patch) = columns  # fmt: skip
    try:
        whole = crc == row_crc(columns[:15], body) and (not content or body == body_crc(header, patch))
    except (struct.error, TypeError, AttributeError):
        whole = False
    if not whole or run is None:
        name = run or f"of run number {run_no}"
        raise Damaged(what=f"snapshot {name}@{seq}", reason="its row fails its check")
    return Row(
        run=run, seq=seq, digest=digest, parent=parent, at=at, status=status, phase=phase, seal=seal,
        triggers=split_list(triggers), agents=split_list(agents), marked=marked == 1, sealed_at=sealed_at,
        size=size, header=header if content else b"", patch=patch, pruned=pruned == 1, no=no,
    )  # fmt: skip


def pruned_checks(columns: Columns) -> tuple[int, int]:
    """The two checks of a row, given with its content, once its patch is gone."""
    body = body_crc(columns[17], None)
    return row_crc((*columns[:11], 1, *columns[12:15]), body), body


def run_crc(columns: Columns) -> int:
    """The check of a run's first 12 columns."""
    (run_no, run, family, workflow, created_at, status, phase, head, digest, updated_at, fence,
     owner) = columns  # fmt: skip
    numbers = _RUN.pack(run_no, created_at, head, updated_at, fence, len(digest))
    text = f"{run}\0{family}\0{workflow}\0{status}\0{phase!r}\0{owner!r}".encode()
    return crc32(b"".join((numbers, digest, text)))


def check_run(columns: Columns) -> Columns:
    """The columns of a run; raises `Damaged` when their check fails."""
    if not _fits(columns[12], run_crc, (columns[:12],)):
        raise Damaged(what=f"run {columns[1]}", reason="its entry fails its check")
    return columns


def run_of(columns: Columns, *, owned: bool) -> RunRow:
    """A run from its checked columns."""
    (_, run, family, workflow, created_at, status, phase, head, digest, updated_at, fence,
     owner) = columns[:12]  # fmt: skip
    return RunRow(
        run=run, family=family, workflow=workflow, created_at=created_at, status=status, phase=phase,
        head=head, digest=digest, updated_at=updated_at, fence=fence, owner=owner, owned=owned,
    )  # fmt: skip


def object_crc(digest: bytes, at: int, size: int, body: int) -> int:
    """The check of what is kept about an object; `body` is the check of its bytes."""
    return crc32(digest, crc32(_OBJECT.pack(at, size, body)))


def object_fits(digest: bytes, at: int, size: int, body: int, crc: int) -> bool:
    """Whether the facts of an object are as they were written."""
    return _fits(crc, object_crc, (digest, at, size, body))


def object_of(columns: Columns) -> bytes:
    """The bytes of an object from (digest, at, body check, check, body)."""
    digest, at, body, crc, data = columns
    if not (
        isinstance(data, bytes) and object_fits(digest, at, len(data), body, crc) and crc32(data) == body
    ):
        raise Damaged(what=f"object {_short(digest)}", reason="its bytes fail their check")
    return bytes(data)


def info_of(columns: Columns) -> ObjectInfo:
    """An object without its bytes from (no, digest, at, size, body check, check)."""
    _, digest, at, size, body, crc = columns
    if not object_fits(digest, at, size, body, crc):
        raise Damaged(what=f"object {_short(digest)}", reason="its entry fails its check")
    return ObjectInfo(digest=Digest(digest), size=size, at=Instant(at))


def _short(digest: object) -> str:
    return digest.hex()[:16] if isinstance(digest, bytes) else repr(digest)


def command_crc(id: int, run_no: int, at: int, body: bytes) -> int:
    """The check of a command."""
    return crc32(body, crc32(_COMMAND.pack(id, run_no, at)))


def command_of(columns: Columns, run: RunId) -> Command:
    """A command from its columns, checked."""
    id, _, at, body, crc = columns
    if not _fits(crc, command_crc, columns[:4]):
        raise Damaged(what=f"command {id} of run {run}", reason="it fails its check")
    return Command(id=id, run=run, at=Instant(at), body=body)


def annotation_crc(run_no: int, seq: int, kind: str, body: bytes) -> int:
    """The check of an annotation."""
    return crc32(body, crc32(kind.encode(), crc32(_ANNOTATION.pack(run_no, seq))))


def annotation_of(columns: Columns, run: RunId) -> Annotation:
    """An annotation from its columns, checked."""
    _, seq, kind, body, crc = columns
    if not _fits(crc, annotation_crc, columns[:4]) or kind not in ("pin", "note"):
        raise Damaged(what=f"annotation of {run}@{seq}", reason="it fails its check")
    return Annotation(run=run, seq=seq, kind=kind, body=body)


def fact_crc(name: str, value: bytes | int) -> int:
    """The check of a fact about the store or of a counter."""
    data = value if isinstance(value, bytes) else b"%d" % value
    return crc32(data, crc32(name.encode()))


def fact_of(name: str, columns: Columns) -> Any:
    """A fact or counter from (value, check)."""
    value, crc = columns
    if not _fits(crc, fact_crc, (name, value)):
        raise Damaged(what=f"entry {name!r} of the store", reason="it fails its check")
    return value


def _fits(crc: object, check: Any, columns: Columns) -> bool:
    try:
        return bool(crc == check(*columns))
    except (struct.error, TypeError, AttributeError):
        return False
