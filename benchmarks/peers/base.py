"""What every peer adapter shares: the interface, the quiet settings, the byte count.

An adapter opens one fresh store at its library's default durability, saves a state that
grows by one task and one decision a step, and reads it back. Whoever runs the benchmark
puts the clock around the methods; the adapters hold no clock of their own.
"""

from __future__ import annotations

import abc
import logging
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, Any]
Counts: TypeAlias = tuple[int, int]

QUIET_ENV = {
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OTEL_SDK_DISABLED": "true",
}
QUIET_LOGGERS = ("burr", "crewai", "dbos", "langchain_core", "langgraph", "langsmith")
SQLITE_MAGIC = b"SQLite format 3\x00"


class Unsupported(Exception):
    """The peer has no such operation; the message says what it lacks."""


class Peer(abc.ABC):
    """One library's checkpoint store, driven one step at a time.

    `save` acknowledges before it returns; its `step` counts from 0 and may skip after a `seed`.
    `resume` starts from new objects and a new connection; `load` and `list` use the ones already open.
    """

    name: str
    durable: bool = True
    grows: bool = False
    """Whether a checkpoint holds the whole state, so that its size grows with every step."""
    durability: str = ""
    """What an acknowledged save survives, in a few words."""
    distributions: tuple[str, ...] = ()

    @abc.abstractmethod
    def __init__(self, folder: Path) -> None:
        """Open a fresh store inside `folder`, which exists and is empty."""

    @staticmethod
    @abc.abstractmethod
    def probe() -> None:
        """Import everything the adapter needs; raises when something is not there."""

    @abc.abstractmethod
    def save(self, step: int, task: Item, decision: Item) -> None:
        """Add one task and one decision to the state and save one checkpoint of it."""

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        """Add to the state without a checkpoint, so that a large state is there without saving every step.

        Only for peers that save the state whole: the next save holds what was added.
        """
        raise Unsupported("its checkpoints hold one step each, so none can be left out")

    @abc.abstractmethod
    def resume(self) -> Counts:
        """Load the newest checkpoint whole; how many tasks and decisions it holds."""

    @abc.abstractmethod
    def load(self, step: int) -> Counts:
        """Load the state as it was after `step` (from 0); what it holds, as `resume`."""

    @abc.abstractmethod
    def list(self) -> int:
        """List the run's checkpoints as a user would; how many there are."""

    def bytes_on_disk(self) -> int:
        """Size of the store once its write-ahead log is folded in; 0 in memory."""
        return 0

    def close(self) -> None:  # noqa: B027 - a peer that holds nothing open has nothing to close
        """Release the store; a second call does nothing."""


def quiet() -> None:
    """Switch off the libraries' telemetry, update checks and logs. Call before importing one."""
    os.environ.update(QUIET_ENV)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def counts(state: Any) -> Counts:
    """Number of tasks and of decisions in a restored state."""
    return len(state["tasks"]), len(state["decisions"])


def folder_bytes(folder: Path) -> int:
    """Bytes of every file in a store, its SQLite write-ahead logs folded back first.

    The `-shm` index of a database that is still open is left out: it goes when the
    database is closed and is no part of what was stored.
    """
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        if _is_sqlite(path):
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    left = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    return sum(path.stat().st_size for path in left)


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as handle:
        return handle.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
