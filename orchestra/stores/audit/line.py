"""A line of the audit: what it says, its bytes and its digest.

The rule: a line is compact ASCII JSON that ends with its digest. The digest is the address, of kind `audit`
and version 1, over the 32 bytes of the digest before it (zeros before the first) and the line's bytes without
the digest. So every byte of a line counts, and its place in the file.
"""

import json
from typing import Any, Final, Literal, TypeAlias

import attrs

from orchestra.codec.address import Addresser
from orchestra.ids import DIGEST_BYTES, Digest, RunId

Act: TypeAlias = Literal["read", "pruned", "deleted", "swept"]
NOTHING: Final = Digest(bytes(DIGEST_BYTES))
"""What the first line follows."""
_MARK: Final = b',"digest":"'
_TAIL: Final = len(_MARK) + 2 * DIGEST_BYTES + len(b'"}')
_ADDRESSER: Final = Addresser()


@attrs.frozen(kw_only=True)
class Note:
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
class Line(Note):
    """A line as it stands in the file."""

    no: int
    digest: str


@attrs.frozen
class Sealed:
    """The bytes of a line without its digest, and the digest it carries."""

    content: bytes
    digest: Digest

    def follows(self, before: Digest) -> bool:
        """Whether it is what was written after the line of that digest."""
        return digest_of(before, self.content) == self.digest


def digest_of(before: Digest, content: bytes) -> Digest:
    """The digest of a line that follows another."""
    return _ADDRESSER.address("audit", 1, before + content)


def sealed(note: Note, no: int, before: Digest) -> tuple[bytes, Digest]:
    """The bytes of a line, and its digest."""
    content = json.dumps({"no": no} | attrs.asdict(note), separators=(",", ":")).encode("ascii")
    digest = digest_of(before, content)
    return content[:-1] + _MARK + digest.hex().encode("ascii") + b'"}\n', digest


def unsealed(raw: bytes) -> Sealed | None:
    """The parts of a line's bytes; None when they are no line."""
    whole = raw.removesuffix(b"\n")
    content, tail = whole[:-_TAIL], whole[-_TAIL:]
    if whole == raw or not content or not tail.startswith(_MARK) or not tail.endswith(b'"}'):
        return None
    try:
        return Sealed(content + b"}", Digest(bytes.fromhex(tail[len(_MARK) : -2].decode("ascii"))))
    except ValueError:
        return None


def read_line(raw: bytes) -> Line | None:
    """What a line says; None when it cannot be understood."""
    try:
        data: Any = json.loads(raw)
        line = Line(**{name: data[name] for name in _KINDS})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    fits = all(type(getattr(line, name)) in kinds for name, kinds in _KINDS.items())
    return line if fits else None


_MAYBE: Final = (int, type(None))
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "no": (int,),
    "at": (str,),
    "user": (str,),
    "uid": (int,),
    "pid": (int,),
    "what": (str,),
    "act": (str,),
    "run": (str, type(None)),
    "first": _MAYBE,
    "last": _MAYBE,
    "count": (int,),
    "content": (bool,),
    "objects": (int,),
    "digest": (str,),
}
