"""The SQLite store by its URL: `sqlite:outputs/orchestra.db?synchronous=normal&mmap=64MB`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orchestra import limits
from orchestra.errors import BadSetting
from orchestra.stores.sqlite.connect import Synchronous
from orchestra.stores.sqlite.store import SqliteStore

_SIZE: Final = re.compile(r"(\d{1,12})\s*(|B|KB|MB|GB)", re.IGNORECASE)
_UNITS: Final = {"": 1, "B": 1, "KB": limits.KB, "MB": limits.MB, "GB": 1024 * limits.MB}


def open_sqlite(
    url_path: str, options: Mapping[str, str], create: bool, *, read_only: bool = False
) -> SqliteStore:
    """The store that a URL names. Raises `BadSetting` for options it does not know.

    With `mode=ro` a store that lost commits is opened all the same, to be looked at.
    """
    for name, value in options.items():
        if name not in ("synchronous", "mmap", "mode"):
            known = "known options are synchronous, mmap and mode"
            raise BadSetting(setting=f"sqlite {name}", value=value, reason=known)
    if not url_path:
        raise BadSetting(setting="sqlite path", value=url_path, reason="it names no file")
    looking = _read_only(options.get("mode", "rw"))
    return SqliteStore(
        Path(url_path),
        create=create,
        synchronous=_synchronous(options.get("synchronous", "full")),
        mmap_bytes=_size(options.get("mmap", "0")),
        read_only=read_only or looking,
        lossy=looking,
    )


def _synchronous(text: str) -> Synchronous:
    if text == "full":
        return "full"
    if text == "normal":
        return "normal"
    raise BadSetting(setting="sqlite synchronous", value=text, reason="it is full or normal")


def _read_only(text: str) -> bool:
    if text not in ("ro", "rw"):
        raise BadSetting(setting="sqlite mode", value=text, reason="it is ro (read only) or rw")
    return text == "ro"


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadSetting(setting="sqlite mmap", value=text, reason="it is a size such as 64MB")
    return int(found[1]) * _UNITS[found[2].upper()]
