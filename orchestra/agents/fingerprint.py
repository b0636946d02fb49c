"""Digests of the files that an agent runs on."""

from collections.abc import Sequence
from pathlib import Path

from orchestra.codec.address import Addresser
from orchestra.codec.values import address_of
from orchestra.ids import Digest
from orchestra.limits import AGENT_FILE_BYTES

_VERSION = 1


def digest_files(files: Sequence[Path], *words: str) -> str:
    """A hexadecimal digest of the names and contents of files and of some words; raises `OSError`.

    The digest of one file alone is that of its content. Nothing has no digest.
    """
    if len(files) == 1 and not words:
        return _content(files[0]).hex()
    parts = [[[file.name, _content(file)] for file in files], list(words)]
    return address_of(parts, Addresser()).hex() if files or words else ""


def _content(file: Path) -> Digest:
    """The digest of a file's content; of a large one that of its size and time of change."""
    found = file.stat()
    large = found.st_size > AGENT_FILE_BYTES
    data = b"%d %d" % (found.st_size, found.st_mtime_ns) if large else file.read_bytes()
    return Addresser().address("blob", _VERSION, data)
