"""Burr's `SQLitePersister`, every saved step holding the whole state.

Measured: `save` is one `SQLitePersister.save` (Burr's serialisation of the whole `State`,
JSON, one committed insert) on the connection the persister opens itself, so with SQLite's
default rollback journal. The state is handed over as a `State` around lists the adapter
grows; `State.append`, which an action would use, deep-copies the lists first and is part of
running an action, not of saving, so it is not timed.
`resume` opens a second persister and loads the application's latest step; `load` asks for a
sequence id. The persister lists applications, not the steps of one, so `list` is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .base import Counts, Item, Peer, Unsupported, counts, folder_bytes, quiet

APP = "run"
ACTION = "agent"


class BurrSqlite(Peer):
    name = "Burr SQLite"
    grows = True
    durability = "rollback journal, synced (SQLite's defaults)"
    distributions = ("apache-burr",)

    def __init__(self, folder: Path) -> None:
        self.probe()
        from burr.core.persistence import SQLitePersister
        from burr.core.state import State

        self._folder = folder
        self._path = str(folder / "burr.sqlite")
        self._persister_type: Any = SQLitePersister
        self._state_type: Any = State
        self._persister: Any = self._connect()
        self._persister.initialize()
        self._tasks: list[Item] = []
        self._decisions: list[Item] = []

    @staticmethod
    def probe() -> None:
        quiet()
        import burr.core.persistence
        import burr.core.state  # noqa: F401

    def _connect(self) -> Any:
        return self._persister_type(self._path)

    def save(self, step: int, task: Item, decision: Item) -> None:
        self._tasks.append(task)
        self._decisions.append(decision)
        state = self._state_type({"tasks": self._tasks, "decisions": self._decisions})
        self._persister.save(None, APP, step, ACTION, state, "completed")

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        self._tasks.extend(tasks)
        self._decisions.extend(decisions)

    def resume(self) -> Counts:
        with self._connect() as persister:
            return counts(persister.load(None, APP)["state"])

    def load(self, step: int) -> Counts:
        return counts(self._persister.load(None, APP, step)["state"])

    def list(self) -> int:
        raise Unsupported("the persister lists applications, not the saved steps of one")

    def bytes_on_disk(self) -> int:
        return folder_bytes(self._folder)

    def close(self) -> None:
        self._persister.cleanup()
