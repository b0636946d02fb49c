"""Opening the store that a command works on. Reading never makes one."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from orchestra.errors import LostCommits, StoreMissing, UnknownRun
from orchestra.ports.store import DEFAULT_STORE, STORE_VARIABLE, RunQuery, Store
from orchestra.stores.registry import open_store

if TYPE_CHECKING:
    from orchestra.codec.frame import Framer
    from orchestra.history.archive import Archive
    from orchestra.ids import RunId

SETTING_VARIABLE: Final = "ORCHESTRA_CHECKPOINT_STORE"
SETTINGS_FILE: Final = "configs/orchestra.yaml"
AUDIT_VARIABLE: Final = "ORCHESTRA_CHECKPOINT_AUDIT"
# As in the settings, which cost too much to load for a look; a test keeps them equal.
OUTPUTS_VARIABLE: Final = "ORCHESTRA_PERFORMANCE_OUTPUTS"
DEFAULT_OUTPUTS: Final = "outputs"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")  # as in shlex, which costs too much to load

_COMMAND: Final = re.compile(
    r"`(orchestra (?:audit|chat|export|fork|log|outputs|prune|questions|resume|run|runs|show|snapshots|status"
    r"|store [a-z-]+|verify|watch)(?: [^`]*)?)`"
)
"""A command in a sentence that has the option `--store`."""


def store_url(given: str | None) -> str:
    """Which store: the one given, else the environment's, else the project's, else the default."""
    if (named := given or _environment_url()) or not _is_mentioned(b"store"):
        return named or DEFAULT_STORE
    from orchestra.config.settings.resolve import read_settings

    return read_settings().get("checkpoint.store") or DEFAULT_STORE


def _environment_url() -> str | None:
    return os.environ.get(SETTING_VARIABLE) or os.environ.get(STORE_VARIABLE)


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


def outputs_folder() -> str:
    """The folder that runs write into, as the settings say."""
    if not os.path.exists(SETTINGS_FILE) and OUTPUTS_VARIABLE not in os.environ:  # noqa: PTH110 - as above
        return DEFAULT_OUTPUTS
    from orchestra.cli.play.settings import settings_in_force

    return settings_in_force().engine.outputs


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

    return Framer(addresser_for(store, address_key(os.environ.get(KEY_VARIABLE)), create=create))


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


def run_of_task(opened: "Archive", task: str | None) -> "RunId":
    """The run that is meant: by its id, as the newest of a workflow, or the newest of all."""
    from orchestra.history.references import resolve_run

    if task is None:
        newest = opened.store.runs(RunQuery(limit=1))
        if not newest:
            raise UnknownRun(run="the newest", store=opened.store.place, hint=" It is empty.")
        return newest[0].run
    of_workflow = opened.store.runs(RunQuery(workflow=task, limit=1))
    return of_workflow[0].run if of_workflow else resolve_run(opened, task)


def option(given: str | None) -> str:
    """The option to repeat in a hint so that the next command looks at the same store, if it can be."""
    return f" --store {quote(given)}" if given and given != "memory:" else ""


def with_store(text: str, given: str | None) -> str:
    """A sentence whose `commands` look at the same store; what is written down elsewhere knows of none."""
    at = option(given)
    return _COMMAND.sub(lambda found: f"`{found[1]}{at}`", text) if at else text


def quote(word: str) -> str:
    """A word of a hint as a shell takes it."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"
