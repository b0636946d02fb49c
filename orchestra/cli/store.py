"""Opening the store that a command works on. Reading never makes one."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from orchestra.errors import LostCommits, StoreMissing
from orchestra.ports.store import DEFAULT_STORE, STORE_VARIABLE, Store
from orchestra.stores.registry import open_store

if TYPE_CHECKING:
    from orchestra.codec.frame import Framer
    from orchestra.history.archive import Archive
    from orchestra.ids import RunId

SETTING_VARIABLE: Final = "ORCHESTRA_CHECKPOINT_STORE"
SETTINGS_FILE: Final = "configs/orchestra.yaml"
AUDIT_VARIABLE: Final = "ORCHESTRA_CHECKPOINT_AUDIT"
_PLAIN: Final = re.compile(
    r"[A-Za-z0-9_@%+=:,./-]+"
)  # as in shlex, which costs more to load than it is worth

_COMMAND: Final = re.compile(
    r"`(orchestra (?:audit|export|fork|log|outputs|prune|questions|resume|run|runs|show|snapshots|status"
    r"|store [a-z-]+|verify|watch)(?: [^`]*)?)`"
)
"""A command in a sentence that has the option `--store`."""


def store_url(given: str | None) -> str:
    """Which store: the one given, else the environment's, else the project's, else the default."""
    return given or _environment_url() or _project_url() or DEFAULT_STORE


def _environment_url() -> str | None:
    """The store that the environment names."""
    return os.environ.get(SETTING_VARIABLE) or os.environ.get(STORE_VARIABLE)


def _project_url() -> str | None:
    """The store that the settings file names; it is only read when it may name one."""
    if not _is_mentioned(b"store"):
        return None
    from orchestra.config.settings.resolve import read_settings

    return read_settings().get("checkpoint.store")


def _is_mentioned(word: bytes) -> bool:
    """Whether the settings file has a word in it; what reads it properly costs more than most commands."""
    try:
        with open(SETTINGS_FILE, "rb") as file:  # noqa: PTH123 - pathlib costs more than the rest of this
            return word in file.read()
    except OSError:
        return False


def is_audited() -> bool:
    """Whether settings ask for an audit; raises `BadSetting` and `BadWorkflow`."""
    if AUDIT_VARIABLE not in os.environ and not _is_mentioned(b"audit"):
        return False
    from orchestra.cli.play.settings import settings_in_force

    return settings_in_force().checkpoint.audit


def open_for_reading(given: str | None, *, begin_audit: bool = True) -> Store:
    """The store, opened for reading; raises `StoreMissing` when there is none.

    With `begin_audit` an audit is begun where settings ask for one; one that was begun goes on in any case.
    """
    return open_store(store_url(given), read_only=True, audited=begin_audit and is_audited())


def open_if_any(given: str | None) -> Store | None:
    """The store, opened for reading, or None when nobody named one and the default was never made."""
    try:
        return open_for_reading(given)
    except StoreMissing:
        if store_url(given) != DEFAULT_STORE or given or _environment_url():
            raise
        return None


def open_for_examination(given: str | None) -> Store:
    """The store, opened for reading even if it lost commits, so that its damage can be looked at."""
    try:
        return open_for_reading(given)
    except LostCommits:
        url = store_url(given)
        if url.partition(":")[0].lower() not in ("sqlite", url.lower()):
            raise
        return open_store(f"{url}{'&' if '?' in url else '?'}mode=ro", audited=is_audited())


def open_for_writing(given: str | None, *, create: bool = False) -> Store:
    """The store, opened for changes; only with `create` is it made."""
    return open_store(store_url(given), create=create, audited=is_audited())


def archive_over(store: Store, *, create: bool = False) -> "Archive":
    """An archive over an opened store; raises `BadSetting` when an address key is missing or wrong."""
    from orchestra.history.archive import Archive

    return Archive(store, framer_over(store, create=create))


def framer_over(store: Store, *, create: bool = False) -> "Framer":
    """What reads the bytes of a store; raises `BadSetting` when an address key is missing or wrong."""
    from orchestra.codec.frame import Framer
    from orchestra.history.addressing import KEY_VARIABLE, address_key, addresser_for

    key = address_key(os.environ.get(KEY_VARIABLE))
    return Framer(addresser_for(store, key, create=create))


def environment_framer() -> "Framer":
    """What reads bytes outside a store: with the address key of the environment, if there is one."""
    from orchestra.codec.address import Addresser
    from orchestra.codec.frame import Framer
    from orchestra.history.addressing import KEY_VARIABLE, address_key

    return Framer(Addresser(address_key(os.environ.get(KEY_VARIABLE))))


@contextmanager
def archive(given: str | None) -> Iterator["Archive"]:
    """An archive over the store, opened for reading."""
    with open_for_reading(given) as store:
        yield archive_over(store)


def find_run(text: str, given: str | None) -> "RunId":
    """The run that an id, or any beginning of it, names."""
    from orchestra.history.references import resolve_run

    with archive(given) as opened:
        return resolve_run(opened, text)


def option(given: str | None) -> str:
    """The option to repeat in a hint so that the next command looks at the same store, if it can be."""
    return f" --store {quote(given)}" if given and given != "memory:" else ""


def with_store(text: str, given: str | None) -> str:
    """A sentence whose `commands` look at the same store; what is written down elsewhere knows of none."""
    at = option(given)
    return _COMMAND.sub(lambda found: f"`{found[1]}{at}`", text) if at else text


def quote(word: str) -> str:
    """A word of a hint as a shell takes it."""
    if _PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
