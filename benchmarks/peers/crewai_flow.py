"""CrewAI's flow persistence, every saved state whole.

Measured: `save` is one `SQLiteFlowPersistence.save_state` of a plain dictionary state, the
call that `@persist` makes after a method: a file lock, a new connection, JSON of the whole
state, one committed insert, the connection closed. Closing the only connection also folds
the write-ahead log back into the database, which is part of every save.
`resume` builds a second persistence object and loads the flow's latest state. Older states
stay in the table, but the library reads only the latest and lists none, so `load` and
`list` are missing.

Importing the library creates a credentials folder and data folders under the home
directory; a temporary home takes them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .base import Counts, Item, Peer, Unsupported, counts, folder_bytes, quiet

FLOW = "run"
METHOD = "agent"
HOME_ENV = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class CrewAIFlow(Peer):
    name = "CrewAI flow SQLite"
    grows = True
    durability = "WAL, folded back and synced by every save's close"
    distributions = ("crewai",)

    def __init__(self, folder: Path) -> None:
        self.probe()
        from crewai.flow.persistence.sqlite import SQLiteFlowPersistence

        self._folder = folder
        self._path = str(folder / "flow_states.db")
        self._persistence_type: Any = SQLiteFlowPersistence
        self._persistence: Any = SQLiteFlowPersistence(self._path)
        self._tasks: list[Item] = []
        self._decisions: list[Item] = []

    @staticmethod
    def probe() -> None:
        quiet()
        with temporary_home():
            import crewai.flow.persistence.sqlite  # noqa: F401

    def save(self, step: int, task: Item, decision: Item) -> None:
        self._tasks.append(task)
        self._decisions.append(decision)
        state = {"id": FLOW, "tasks": self._tasks, "decisions": self._decisions}
        self._persistence.save_state(FLOW, METHOD, state)

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        self._tasks.extend(tasks)
        self._decisions.extend(decisions)

    def resume(self) -> Counts:
        return counts(self._persistence_type(self._path).load_state(FLOW))

    def load(self, step: int) -> Counts:
        raise Unsupported("only the latest state of a flow can be loaded")

    def list(self) -> int:
        raise Unsupported("the saved states of a flow cannot be listed")

    def bytes_on_disk(self) -> int:
        return folder_bytes(self._folder)


@contextmanager
def temporary_home() -> Iterator[None]:
    """Import-time writes go to a folder that is removed; no lock server is picked up."""
    kept = {name: os.environ.pop(name, None) for name in (*HOME_ENV, "REDIS_URL")}
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(dict.fromkeys(HOME_ENV, home))
        try:
            yield
        finally:
            for name, value in kept.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
