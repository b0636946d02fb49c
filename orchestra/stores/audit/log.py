"""The two files of an audit: `…audit.jsonl` holds the lines, `…audit.head` their number and the last digest.

Whoever appends holds the kernel's lock on the first. The head is written after the lines: where a process
died in between it is behind, which is no damage. Lines go on from what the head says, so that taking away the
newest ones leaves a break that stays.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import attrs

from orchestra.codec.address import Addresser
from orchestra.errors import StoreError
from orchestra.ids import DIGEST_BYTES, Digest, RunId
from orchestra.limits import AUDIT_LINE_BYTES, AUDIT_LOCK_SECONDS
from orchestra.stores.files.disk import write_all

_HEAD: Final = re.compile(rb"(\d{12}) ([0-9a-f]{64})\n")
_WAIT_SECONDS: Final = 0.005


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


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("no", "uid", "pid", "count", "objects"), (int,)),
    **dict.fromkeys(("at", "user", "what", "act", "digest"), (str,)),
    **dict.fromkeys(("first", "last"), (int, type(None))),
    "run": (str, type(None)),
    "content": (bool,),
}


def seal_line(note: AuditNote, no: int, before: Digest) -> tuple[bytes, Digest]:
    """The bytes of a line that follows the one of that digest, and its own digest."""
    content = json.dumps({"no": no} | attrs.asdict(note), separators=(",", ":")).encode("ascii")
    digest = _ADDRESSER.address("audit", 1, before + content)
    return content[:-1] + _MARK + digest.hex().encode("ascii") + b'"}\n', digest


def _open_line(raw: bytes) -> tuple[bytes, Digest] | None:
    """The bytes of a line without its digest, and the digest it carries; None when they are no line."""
    whole = raw.removesuffix(b"\n")
    content, tail = whole[:-_TAIL], whole[-_TAIL:]
    if whole == raw or not content or not tail.startswith(_MARK) or not tail.endswith(b'"}'):
        return None
    try:
        return content + b"}", Digest(bytes.fromhex(tail[len(_MARK) : -2].decode("ascii")))
    except ValueError:
        return None


def _read_line(raw: bytes) -> AuditLine | None:
    """What a line says; None when it cannot be understood."""
    try:
        data: Any = json.loads(raw)
        line = AuditLine(**{name: data[name] for name in _KINDS})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    fits = all(type(getattr(line, name)) in kinds for name, kinds in _KINDS.items())
    return line if fits else None


def _prove(raw: bytes, number: int, before: Digest) -> Digest | str:
    """The digest of a line that is what was written there, or what is wrong with it."""
    line, said = _open_line(raw), _read_line(raw)
    if not raw.endswith(b"\n"):
        return "it is cut off"
    if line is None or said is None:
        return "it cannot be read"
    if said.no != number:
        return f"it was written as line {said.no:,}: lines were removed or moved"
    if _ADDRESSER.address("audit", 1, before + line[0]) != line[1]:
        return "it, or the line before it, was changed"
    return line[1]


class _End(NamedTuple):
    """How many lines there are, and the digest of the last."""

    lines: int
    digest: Digest


@attrs.frozen(kw_only=True)
class ChainReport:
    """What a check of the chain found."""

    lines: int  # how many are whole
    broken: int | None = None  # number of the first line that is not
    reason: str = ""
    digest: Digest = NOTHING  # of the last whole line


class AuditLog:
    """The audit beside a store."""

    def __init__(self, file: str, *, like: str | None = None) -> None:
        """Files are made with the permissions of another, by default those of the folder."""
        self.file = file
        self.head = head_of(file)
        self._like = like if like is not None else os.path.dirname(file) or "."

    def make(self) -> None:
        """See that both files can be written, and make them if need be; raises `AuditFailed`."""
        with self._open_locked() as (log, head):
            if not os.fstat(log).st_size and not os.fstat(head).st_size:
                _write_head(head, _End(0, NOTHING))

    def append(self, notes: Sequence[AuditNote]) -> None:
        """Add lines, all or none; raises `AuditFailed`."""
        with self._open_locked() as (log, head):
            size = os.fstat(log).st_size
            end = self._end(log, head, size)
            is_torn = size > 0 and os.pread(log, 1, size - 1) != b"\n"
            text = b"\n" if is_torn else b""
            for note in notes:
                line, digest = seal_line(note, end.lines + 1, end.digest)
                text, end = text + line, _End(end.lines + 1, digest)
            try:
                write_all(log, text)
                _write_head(head, end)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(log, size)
                raise

    def lines(self) -> Iterator[AuditLine | None]:
        """What the lines say, oldest first; None for one that cannot be understood."""
        size = 0
        with self._map_errors():
            size = os.stat(self.file).st_size
        yield from map(_read_line, self._raw(size))

    def check(self) -> ChainReport:
        """Prove the chain; raises `AuditFailed` when the files cannot be read."""
        size, known = 0, None
        with self._map_errors():
            known = self._read_head()
            with open(self.file, "rb") as log:
                _lock(log.fileno(), fcntl.LOCK_SH)  # for a moment: nobody is between lines and head
                size, known = os.fstat(log.fileno()).st_size, self._read_head()
        return self._examine(size, known)

    @property
    def is_there(self) -> bool:
        return os.path.lexists(self.file) or os.path.lexists(self.head)

    def _end(self, log: int, head: int, size: int) -> _End:
        known = _parse_head(os.pread(head, 128, 0))
        if known is not None and _last_digest(log, size) == known.digest:
            return known
        found = self._examine(size, known)
        if found.broken is None:  # the head is behind
            return _End(found.lines, found.digest)
        return known or _End(sum(1 for _ in self._raw(size)), NOTHING)

    def _examine(self, size: int, known: _End | None) -> ChainReport:
        """The chain in the first bytes of the file, and whether it leads to what the head says."""
        before, number, meant = NOTHING, 0, NOTHING
        for number, raw in enumerate(self._raw(size), 1):
            proved = _prove(raw, number, before)
            if isinstance(proved, str):
                return ChainReport(lines=number - 1, broken=number, reason=proved, digest=before)
            before = proved
            meant = before if known is not None and number == known.lines else meant
        broken, reason = self._end_fault(number, meant, known)
        return ChainReport(lines=number, broken=broken, reason=reason, digest=before)

    def _end_fault(self, number: int, meant: Digest, known: _End | None) -> tuple[int | None, str]:
        """The first line that is wrong about the end of the chain, and why; None when the head agrees."""
        name = os.path.basename(self.head)
        if known is None and number:
            return number, f"nobody knows whether others followed it: {name} is gone or cannot be read"
        if known is not None and known.lines > number:
            return number + 1, f"it is missing: {known.lines:,} lines were written, and {number:,} are left"
        if known is not None and meant != known.digest:
            return known.lines or 1, f"its digest is not the one in {name}"
        return None, ""

    def _raw(self, size: int) -> Iterator[bytes]:
        if not size:
            return
        with self._map_errors(), open(self.file, "rb") as log:
            while log.tell() < size and (raw := log.readline(AUDIT_LINE_BYTES)):
                yield raw

    def _read_head(self) -> _End | None:
        try:
            with open(self.head, "rb") as head:
                return _parse_head(head.read(128))
        except FileNotFoundError:
            return None

    @contextmanager
    def _open_locked(self) -> Iterator[tuple[int, int]]:
        """Both files for appending, locked until they are closed; raises `AuditFailed`."""
        with ExitStack() as opened:
            try:
                log = _open(self.file, os.O_APPEND, self._like)
                opened.callback(os.close, log)
                _lock(log, fcntl.LOCK_EX)
                head = _open(self.head, 0, self._like)
                opened.callback(os.close, head)
                yield log, head
            except OSError as error:
                raise AuditFailed(file=self.file, reason=error.strerror or str(error)) from error

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        """Raise `AuditFailed` for what the system says; end quietly where a file is not there."""
        try:
            yield
        except FileNotFoundError:
            pass
        except OSError as error:
            raise AuditFailed(file=self.file, reason=error.strerror or str(error)) from error


def head_of(file: str) -> str:
    """Where the head of an audit file is."""
    return file.removesuffix(".jsonl") + ".head"


def _open(path: str, flags: int, like: str) -> int:
    flags |= os.O_RDWR | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        mode = os.stat(like).st_mode & 0o666
        made = os.open(path, flags | os.O_CREAT, mode)
        with suppress(OSError):
            os.fchmod(made, mode)  # whoever shares the store shares its audit, whatever the umask says
        return made


def _lock(file: int, kind: int) -> None:
    until = time.monotonic() + AUDIT_LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(
                    0, f"another process kept it locked for {AUDIT_LOCK_SECONDS:g} s; see what it does"
                ) from None
            time.sleep(_WAIT_SECONDS)


def _write_head(file: int, end: _End) -> None:
    os.pwrite(file, f"{end.lines:012} {end.digest.hex()}\n".encode("ascii"), 0)


def _parse_head(head: bytes) -> _End | None:
    match = _HEAD.fullmatch(head)
    return None if match is None else _End(int(match[1]), Digest(bytes.fromhex(match[2].decode("ascii"))))


def _last_digest(log: int, size: int) -> Digest | None:
    if not size:
        return NOTHING
    text = os.pread(log, AUDIT_LINE_BYTES, max(0, size - AUDIT_LINE_BYTES))
    line = _open_line(text[text.rfind(b"\n", 0, -1) + 1 :])
    return line[1] if line else None
