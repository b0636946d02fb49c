"""The two files of an audit: `…audit.jsonl` holds the lines, `…audit.head` their number and the last digest.

Whoever appends holds the kernel's lock on the first. The head is written after the lines: where a process
died in between it is behind, which is no damage. Lines go on from what the head says, so that taking away the
newest ones leaves a break that stays.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import attrs

from orchestra.ids import Digest
from orchestra.limits import AUDIT_LINE_BYTES, AUDIT_LOCK_SECONDS
from orchestra.stores.audit.line import (
    NOTHING,
    AuditFailed,
    AuditLine,
    AuditNote,
    open_line,
    read_line,
    seal_line,
)

_HEAD: Final = re.compile(rb"(\d{12}) ([0-9a-f]{64})\n")
_WAIT_SECONDS: Final = 0.005


class _Files(NamedTuple):
    """The two files, opened and locked."""

    log: int
    head: int


@attrs.frozen
class _End:
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
        with self._open_locked() as files:
            if not os.fstat(files.log).st_size and not os.fstat(files.head).st_size:
                _write_head(files.head, _End(0, NOTHING))

    def append(self, notes: Sequence[AuditNote]) -> None:
        """Add lines, all or none; raises `AuditFailed`."""
        with self._open_locked() as files:
            size = os.fstat(files.log).st_size
            end = self._end(files, size)
            text = b"\n" if _is_torn(files.log, size) else b""
            for note in notes:
                line, digest = seal_line(note, end.lines + 1, end.digest)
                text, end = text + line, _End(end.lines + 1, digest)
            try:
                _write(files.log, text)
                _write_head(files.head, end)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(files.log, size)
                raise

    def lines(self) -> Iterator[AuditLine | None]:
        """What the lines say, oldest first; None for one that cannot be understood."""
        for raw in self._raw(self._size()):
            yield read_line(raw)

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

    # --- the end, where the next line goes

    def _end(self, files: _Files, size: int) -> _End:
        known = _parse_head(os.pread(files.head, 128, 0))
        if known is not None and _last_digest(files.log, size) == known.digest:
            return known
        found = self._examine(size, known)
        if found.broken is None:  # the head is behind
            return _End(found.lines, found.digest)
        return known or _End(sum(1 for _ in self._raw(size)), NOTHING)

    def _examine(self, size: int, known: _End | None) -> ChainReport:
        """The chain in the first bytes of the file, and whether it leads to what the head says."""
        before, number, meant = NOTHING, 0, NOTHING
        for number, raw in enumerate(self._raw(size), 1):
            reason = _fault(raw, number, before)
            if reason:
                return ChainReport(lines=number - 1, broken=number, reason=reason, digest=before)
            line = open_line(raw)
            assert line is not None, "BUG: a line that was proved can be read"
            before = line.digest
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

    def _size(self) -> int:
        size = 0
        with self._map_errors():
            size = os.stat(self.file).st_size
        return size

    def _read_head(self) -> _End | None:
        try:
            with open(self.head, "rb") as head:
                return _parse_head(head.read(128))
        except FileNotFoundError:
            return None

    # --- opening

    @contextmanager
    def _open_locked(self) -> Iterator[_Files]:
        """Both files for appending, locked; raises `AuditFailed`."""
        opened: list[int] = []
        try:
            opened.append(_open(self.file, os.O_APPEND, self._like))
            _lock(opened[0], fcntl.LOCK_EX)
            opened.append(_open(self.head, 0, self._like))
            yield _Files(*opened)
        except OSError as error:
            raise AuditFailed(file=self.file, reason=error.strerror or str(error)) from error
        finally:
            for each in reversed(opened):
                os.close(each)  # and with it the lock

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


def _fault(raw: bytes, number: int, before: Digest) -> str:
    """What is wrong with a line; nothing when it is what was written there."""
    line, said = open_line(raw), read_line(raw)
    if not raw.endswith(b"\n"):
        return "it is cut off"
    if line is None or said is None:
        return "it cannot be read"
    if said.no != number:
        return f"it was written as line {said.no:,}: lines were removed or moved"
    return "" if line.follows(before) else "it, or the line before it, was changed"


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


def _write(file: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        view = view[os.write(file, view) :]


def _write_head(file: int, end: _End) -> None:
    os.pwrite(file, f"{end.lines:012} {end.digest.hex()}\n".encode("ascii"), 0)


def _parse_head(head: bytes) -> _End | None:
    match = _HEAD.fullmatch(head)
    return None if match is None else _End(int(match[1]), Digest(bytes.fromhex(match[2].decode("ascii"))))


def _is_torn(log: int, size: int) -> bool:
    return size > 0 and os.pread(log, 1, size - 1) != b"\n"


def _last_digest(log: int, size: int) -> Digest | None:
    if not size:
        return NOTHING
    text = os.pread(log, AUDIT_LINE_BYTES, max(0, size - AUDIT_LINE_BYTES))
    line = open_line(text[text.rfind(b"\n", 0, -1) + 1 :])
    return None if line is None else line.digest
