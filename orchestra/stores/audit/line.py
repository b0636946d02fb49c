"""A line of the audit: what it says, its bytes and its digest."""

import json
from typing import Any, Final, Literal, TypeAlias

import attrs

from orchestra.codec.address import Addresser
from orchestra.errors import StoreError
from orchestra.ids import DIGEST_BYTES, Digest, RunId


class AuditFailed(StoreError):
    """What is read or removed cannot be noted."""

    template = (
        "The audit file {file} cannot be used: {reason}. A store that is audited is not read without a "
        "trace: free space on that disk, or let this user write to the file and its folder, and try again."
    )


Act: TypeAlias = Literal["read", "pruned", "deleted", "swept"]
NOTHING: Final = Digest(bytes(DIGEST_BYTES))
"""What the first line follows."""
_MARK: Final = b',"digest":"'
_TAIL: Final = len(_MARK) + 2 * DIGEST_BYTES + len(b'"}')
_ADDRESSER: Final = Addresser()


@attrs.frozen(kw_only=True)
class AuditNote:
    """What a line says."""

    at: str  # when it began, in UTC
    user: str  # login name of who did it
    uid: int
    pid: int
    what: str  # the command, the question to the browser, or the program
    act: Act
    run: RunId | None  # nothing for objects that belong to no run
    first: int | None  # lowest and highest number of the snapshots, and how many they are
    last: int | None
    count: int
    content: bool  # what is in them was read; else only the columns that lists show
    objects: int  # how many objects were read or removed beside the rows


@attrs.frozen(kw_only=True)
class AuditLine(AuditNote):
    """A line as it stands in the file."""

    no: int
    digest: str


@attrs.frozen
class SealedLine:
    """The bytes of a line without its digest, and the digest it carries."""

    content: bytes
    digest: Digest

    def follows(self, before: Digest) -> bool:
        """Whether it is what was written after the line of that digest."""
        return digest_of(before, self.content) == self.digest


def digest_of(before: Digest, content: bytes) -> Digest:
    """The digest of a line that follows another."""
    return _ADDRESSER.address("audit", 1, before + content)


def seal_line(note: AuditNote, no: int, before: Digest) -> tuple[bytes, Digest]:
    """The bytes of a line, and its digest."""
    content = json.dumps({"no": no} | attrs.asdict(note), separators=(",", ":")).encode("ascii")
    digest = digest_of(before, content)
    return content[:-1] + _MARK + digest.hex().encode("ascii") + b'"}\n', digest


def open_line(raw: bytes) -> SealedLine | None:
    """The parts of a line's bytes; None when they are no line."""
    whole = raw.removesuffix(b"\n")
    content, tail = whole[:-_TAIL], whole[-_TAIL:]
    if whole == raw or not content or not tail.startswith(_MARK) or not tail.endswith(b'"}'):
        return None
    try:
        return SealedLine(content + b"}", Digest(bytes.fromhex(tail[len(_MARK) : -2].decode("ascii"))))
    except ValueError:
        return None


def read_line(raw: bytes) -> AuditLine | None:
    """What a line says; None when it cannot be understood."""
    try:
        data: Any = json.loads(raw)
        line = AuditLine(**{name: data[name] for name in _KINDS})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    fits = all(type(getattr(line, name)) in kinds for name, kinds in _KINDS.items())
    return line if fits else None


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("no", "uid", "pid", "count", "objects"), (int,)),
    **dict.fromkeys(("at", "user", "what", "act", "digest"), (str,)),
    **dict.fromkeys(("first", "last"), (int, type(None))),
    "run": (str, type(None)),
    "content": (bool,),
}
