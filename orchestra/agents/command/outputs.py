"""Outputs on their way from a program: as text, as base64, or as a file that lies in its workspace."""

import base64
import binascii
import os
import stat
from pathlib import Path
from typing import Any

from anyio import to_thread

from orchestra.limits import MB, VALUE_BYTES


async def content_of(fields: dict[str, Any], workspace: str) -> dict[str, Any]:
    """The fields of `wrote` with the content in them as bytes or text; raises `ValueError`.

    Without content the output is the file of that path in the workspace, or the one that `file` names.
    """
    rest = {name: value for name, value in fields.items() if name not in ("content_base64", "file")}
    given = [name for name in ("content", "content_base64", "file") if name in fields]
    if len(given) > 1:
        raise ValueError(f"wrote has one of {' and '.join(given)}, not both")
    match given:
        case ["content"]:
            return rest
        case ["content_base64"]:
            return {**rest, "content": _decoded(fields["content_base64"])}
        case _:
            name = fields.get("file", fields.get("path"))
            return {**rest, "content": await to_thread.run_sync(_read, name, workspace)}


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError(f"content_base64 of wrote is no base64 ({error})") from None


def _read(name: Any, workspace: str) -> bytes:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError("wrote needs 'path'")
    root = Path(workspace).resolve()
    place = (root / name).resolve()
    if not place.is_relative_to(root):
        raise ValueError(f"{name!r} is not in the workspace {workspace}")
    try:
        with open(_opened(place, name), "rb") as file:
            content = file.read(VALUE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name!r} in the workspace cannot be read: {error.strerror}") from None
    if len(content) > VALUE_BYTES:
        size = place.stat().st_size
        raise ValueError(f"{name!r} takes {size} bytes and the limit is {VALUE_BYTES // MB} MB")
    return content


def _opened(place: Path, name: str) -> int:
    """A regular file, open; to open a pipe would mean to wait for whoever writes to it, perhaps for ever."""
    opened = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ValueError(f"{name!r} in the workspace is no regular file")
    return opened
