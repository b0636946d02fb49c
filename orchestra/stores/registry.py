"""Stores by URL: `memory:`, `sqlite:PATH`, `files:PATH`, and whatever other packages announce.

Another package adds a scheme by an entry point in the group `orchestra.stores`: its name is the scheme, its
value a callable that takes the whole URL and `create`, and gives back a `Store`. Entry points are looked
through only when the scheme is not ours, because that costs more than opening a store.

An audit begins with whoever opens a store `audited`. From then on a file lies beside the store, and whoever
opens it finds that: no process, and no setting, can leave the audit out.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from orchestra.errors import BadSetting, NotAStore, StoreError, StoreFailed, UnknownStore
from orchestra.ports.store import Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "orchestra.stores"

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_HAS_PASSWORD = re.compile(r"(//[^/@:]*):[^/@]*@")
_AUDITS: Mapping[str, str] = {"sqlite": "-audit.jsonl", "files": "/audit.jsonl"}
"""Where the audit of a store is, after its path."""


class StoreNotMade(StoreError):
    """A store cannot be made at the place."""

    exit_code = 2
    template = (
        "No store can be made at {place}: {reason}. Nothing was started; "
        "name another place with --store or ORCHESTRA_STORE."
    )


def open_store(url: str, *, create: bool = False, read_only: bool = False, audited: bool = False) -> Store:
    """The store that answers to `url`, opened; with `create` it is made if nothing is there.

    Raises `UnknownStore`, `BadSetting` for options, `StoreNotMade`, and what opening that store raises. With
    `read_only` nothing is made, and every call that would change the store raises `StoreReadOnly`. An SQLite
    database is then opened for reading: nothing but the index of its log may be written, where a process died
    over it.

    With `audited`, or where an audit was begun before, what is read or removed is noted beside the store;
    raises `AuditFailed` when that cannot be.
    """
    scheme, rest = _split(url)
    opener = _OURS.get(scheme)
    if opener is not None:
        path, options = _options(url, rest)
        try:
            store = opener(path, options, create=create and not read_only, read_only=read_only)
        except (NotAStore, StoreFailed) as error:
            if not create or read_only or os.path.lexists(path):
                raise
            raise StoreNotMade(place=path, reason=_obstacle(path) or error.data["reason"]) from error
    else:
        store = _open_theirs(url, scheme, create=create and not read_only)
    if read_only:
        from orchestra.stores.wrappers import ReadOnlyStore

        store = ReadOnlyStore(store)
    return add_audit(store) if audited or _is_audited(store) else store


def _obstacle(path: str) -> str:
    """What keeps the folder of a path from being made; empty when it is there."""
    folder = nearest = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        return f"{nearest} is not a folder"
    return "" if nearest == folder else f"the folder {folder} cannot be made"


def known_schemes() -> list[str]:
    """Every scheme that somebody answers to, ours first."""
    return [*_OURS, *sorted({point.name for point in _announced()} - _OURS.keys())]


def audit_file(url: str) -> str | None:
    """Where the audit of a store is, if there is one; None for a kind of store that has none."""
    scheme, rest = _split(url)
    return _audit_of(scheme, _options(url, rest)[0])


def add_audit(store: Store) -> Store:
    """A store of which every reading and removal is noted; raises `AuditFailed`, and closes it then.

    One that is audited already, and one that is gone with the process, stays as it is. Raises `BadSetting`
    for one that has no place for the file.
    """
    from orchestra.stores.audit.log import AuditLog
    from orchestra.stores.audit.store import AuditedStore, AuditLedger

    if isinstance(store, AuditedStore) or not store.properties.durable:
        return store
    try:
        file = _audit_of(store.properties.scheme, store.place)
        if file is None:
            reason = f"a store of the kind {store.properties.scheme}: has no place for it"
            raise BadSetting(setting="checkpoint.audit", value=True, reason=reason)
        log = AuditLog(file, like=os.path.realpath(store.place))
        log.make()
    except BaseException:
        store.close()
        raise
    return AuditedStore(store, AuditLedger(log))


def _is_audited(store: Store) -> bool:
    file = _audit_of(store.properties.scheme, store.place)
    return file is not None and (os.path.lexists(file) or os.path.lexists(f"{file[:-6]}.head"))


def _audit_of(scheme: str, path: str) -> str | None:
    suffix = _AUDITS.get(scheme)
    return None if suffix is None else os.path.realpath(path) + suffix


def _split(url: str) -> tuple[str, str]:
    match = _URL.fullmatch(url)
    if match is not None:
        return match["scheme"].lower(), match["rest"]
    if url.endswith(".db"):
        return "sqlite", url
    raise _unknown(url)


def _options(url: str, rest: str) -> tuple[str, dict[str, str]]:
    path, asked, query = rest.partition("?")
    options: dict[str, str] = {}
    for pair in query.split("&") if asked else ():
        name, given, value = pair.partition("=")
        if not name or not given:
            raise BadSetting(setting="store", value=url, reason="options are written ?name=value&name=value")
        if name in options:
            raise BadSetting(setting="store", value=url, reason=f"the option {name} is given twice")
        options[name] = value
    return path, options


def _unknown(url: str) -> UnknownStore:
    shown = _HAS_PASSWORD.sub(r"\1:…@", url)
    return UnknownStore(url=shown, known=", ".join(f"{scheme}:" for scheme in known_schemes()))


def _memory(path: str, options: Mapping[str, str], *, create: bool, read_only: bool) -> Store:
    from orchestra.stores.memory import MemoryStore

    if path:
        raise BadSetting(setting="store", value=f"memory:{path}", reason="a store in memory has no path")
    _no_options("memory", options)
    return MemoryStore()


def _sqlite(path: str, options: Mapping[str, str], *, create: bool, read_only: bool) -> Store:
    from orchestra.stores.sqlite import open_sqlite

    return open_sqlite(_path("sqlite", path), options, create, read_only=read_only)


def _files(path: str, options: Mapping[str, str], *, create: bool, read_only: bool) -> Store:
    from orchestra.stores.files.store import FilesStore

    _no_options("files", options)
    return FilesStore(_path("files", path), create=create)


_OURS: Mapping[str, Callable[..., Store]] = {"memory": _memory, "sqlite": _sqlite, "files": _files}


def _path(scheme: str, path: str) -> str:
    if not path or "\0" in path:
        raise BadSetting(setting="store", value=f"{scheme}:{path}", reason="a path has to follow the colon")
    return path


def _no_options(scheme: str, options: Mapping[str, str]) -> None:
    for name in options:
        raise BadSetting(setting=f"{scheme}:?{name}", value=options[name], reason="there is no such option")


def _announced() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # loads a good part of the standard library

    return entry_points(group=GROUP)


def _open_theirs(url: str, scheme: str, *, create: bool) -> Store:
    point = next((point for point in _announced() if point.name == scheme), None)
    if point is None:
        raise _unknown(url)
    try:
        opener: Callable[..., object] = point.load()
    except Exception as error:  # somebody else's module can fail in any way
        reason = f"it cannot be loaded ({type(error).__name__}: {error})"
        raise BadSetting(setting=f"store {scheme}:", value=point.value, reason=reason) from error
    store = opener(url, create=create)
    if not isinstance(store, Store):
        raise BadSetting(setting=f"store {scheme}:", value=point.value, reason="what it opens is not a Store")
    return store
