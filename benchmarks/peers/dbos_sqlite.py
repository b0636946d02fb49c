"""DBOS on SQLite: a workflow whose every step returns one task and one decision.

DBOS stores no state: it records each step's output, and a workflow rebuilds its state by
replaying them. One step is one checkpoint and holds the new task and decision only.

Measured: `save` hands the two to a workflow running in DBOS's own thread and waits until
its step has returned: the look-up whether the step already ran, the recording of its output
(pickled, one committed transaction on SQLite's default rollback journal), plus passing the
item between two threads, some tens of microseconds.
`resume` opens a new client, reads all recorded steps and folds them into the state. That is
the least DBOS can do; a real recovery runs the workflow function again and looks the steps
up one by one, which takes longer. `load` reads the first steps only; `list` is
`DBOS.list_workflow_steps`, outputs included, as it comes.

DBOS has one instance to a process, so only one of these may be open at a time. Its
polling threads run throughout, as they do in any application.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .base import Counts, Item, Peer, counts, folder_bytes, quiet


class DbosSqlite(Peer):
    name = "DBOS SQLite"
    durability = "rollback journal, synced (SQLite's defaults)"
    distributions = ("dbos",)

    def __init__(self, folder: Path) -> None:
        self.probe()
        from dbos import DBOS, DBOSClient

        self._folder = folder
        self._url = f"sqlite:///{folder / 'dbos.sqlite'}"
        self._dbos: Any = DBOS
        self._client_type: Any = DBOSClient
        self._inbox: SimpleQueue[tuple[Item, Item] | None] = SimpleQueue()
        self._outbox: SimpleQueue[BaseException | None] = SimpleQueue()
        self._closed = False
        self._start()

    @staticmethod
    def probe() -> None:
        quiet()
        import dbos  # noqa: F401

    def _start(self) -> None:
        """Launch DBOS on the fresh database and leave one workflow waiting for work."""
        self._dbos(config={"name": "bench", "system_database_url": self._url, "log_level": "CRITICAL"})
        step = self._dbos.step(name="record")(_record)

        def run() -> None:
            self._serve(step)

        workflow = self._dbos.workflow(name="run")(run)
        self._dbos.launch()
        self._handle = self._dbos.start_workflow(workflow)
        self._id = self._handle.get_workflow_id()

    def _serve(self, step: Callable[[Item, Item], Item]) -> None:
        """Body of the workflow: one recorded step for each item, until there are no more."""
        while (item := self._inbox.get()) is not None:
            try:
                step(*item)
            except BaseException as problem:
                self._outbox.put(problem)
                raise
            self._outbox.put(None)

    def save(self, step: int, task: Item, decision: Item) -> None:
        self._inbox.put((task, decision))
        problem = self._outbox.get()
        if problem is not None:
            raise problem

    def resume(self) -> Counts:
        client = self._client_type(system_database_url=self._url)
        try:
            return _fold(client.list_workflow_steps(self._id))
        finally:
            client.destroy()

    def load(self, step: int) -> Counts:
        return _fold(self._dbos.list_workflow_steps(self._id, limit=step + 1))

    def list(self) -> int:
        return len(self._dbos.list_workflow_steps(self._id))

    def bytes_on_disk(self) -> int:
        return folder_bytes(self._folder)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._inbox.put(None)
        self._handle.get_result()
        self._dbos.destroy(destroy_registry=True)


def _record(task: Item, decision: Item) -> Item:
    return {"task": task, "decision": decision}


def _fold(steps: Sequence[Any]) -> Counts:
    """The state the recorded steps add up to, counted."""
    outputs = [step["output"] for step in steps]
    state = {
        "tasks": [output["task"] for output in outputs],
        "decisions": [output["decision"] for output in outputs],
    }
    return counts(state)
