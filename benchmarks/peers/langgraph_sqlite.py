"""LangGraph's `SqliteSaver`, every checkpoint holding the whole state.

Measured: `save` is `SqliteSaver.put_writes` (the step's writes, one commit) and then
`SqliteSaver.put` (msgpack of the whole checkpoint, one commit), the pair that a compiled
graph makes every step, driven as `langgraph_chain` describes. `LangGraphSqlitePut` leaves
the first out, for whoever writes checkpoints without running a graph. The database is
opened by the saver's own `from_conn_string`, in its write-ahead mode with SQLite's default
synchronous setting.
`resume` opens a second saver and gets the thread's latest tuple; `load` gets a tuple by the
checkpoint id that `put` returned; `list` walks `SqliteSaver.list`, which decodes every
checkpoint it yields.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from .base import Counts, Item, Peer, folder_bytes, quiet
from .langgraph_chain import START, Chain, listed, stored


class LangGraphSqlite(Peer):
    name = "LangGraph SQLite"
    grows = True
    durability = "WAL, synced (SQLite's default synchronous setting)"
    writes = True
    distributions = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")

    def __init__(self, folder: Path) -> None:
        self.probe()
        from langgraph.checkpoint.sqlite import SqliteSaver

        self._folder = folder
        self._path = str(folder / "checkpoints.sqlite")
        self._saver_type = SqliteSaver
        self._open = ExitStack()
        saver = self._open.enter_context(SqliteSaver.from_conn_string(self._path))
        saver.setup()
        self._chain = Chain(saver, writes=self.writes)

    @staticmethod
    def probe() -> None:
        quiet()
        import langgraph.channels.binop
        import langgraph.checkpoint.base
        import langgraph.checkpoint.sqlite  # noqa: F401

    def save(self, step: int, task: Item, decision: Item) -> None:
        self._chain.save(step, task, decision)

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        self._chain.seed(tasks, decisions)

    def resume(self) -> Counts:
        with self._saver_type.from_conn_string(self._path) as saver:
            return stored(saver, START)

    def load(self, step: int) -> Counts:
        return stored(self._chain.saver, self._chain.configs[step])

    def list(self) -> int:
        return listed(self._chain.saver)

    def bytes_on_disk(self) -> int:
        return folder_bytes(self._folder)

    def close(self) -> None:
        self._open.close()


class LangGraphSqlitePut(LangGraphSqlite):
    """The same without the writes: one commit a step."""

    name = "LangGraph SQLite, put only"
    writes = False
