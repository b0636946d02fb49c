"""LangGraph's `SqliteSaver` with `DeltaChannel`, the library's incremental (beta) channel.

A delta channel is left out of most checkpoints. The step's writes go to the saver's writes
table and the value is rebuilt by replaying them from the nearest snapshot; a snapshot of
the whole value goes into the checkpoint at every `snapshot_frequency`-th update (100 unless
told otherwise, and it is not told otherwise here).

Measured: `save` is the pair of calls the Pregel loop makes for a superstep, `put_writes`
under the parent checkpoint, then `put`: two commits. Which step snapshots, and the counters
kept in the metadata, come from the library's own functions, so no graph has to run. Some of
those are private to the `langgraph` package and may move between releases.
`resume` and `load` rebuild both channels with the library's `channels_from_checkpoint`.
`list` walks `SqliteSaver.list`, which does not rebuild delta channels: the state of a listed
checkpoint has to be loaded separately. The thread's empty input checkpoint, to which the
first step's writes belong, is stored at opening and not counted.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .base import Counts, Item, Peer, folder_bytes, quiet
from .langgraph_chain import NODE, START, advance


def extend(state: Sequence[Item], writes: Sequence[Sequence[Item]]) -> Sequence[Item]:
    """Reducer of both channels: the state with every written item after it."""
    return [*state, *(item for write in writes for item in write)]


class LangGraphDelta(Peer):
    name = "LangGraph SQLite, delta channels"
    durability = "WAL, synced (SQLite's default synchronous setting)"
    distributions = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")

    def __init__(self, folder: Path) -> None:
        self.probe()
        from langgraph.channels.delta import DeltaChannel
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.pregel import _checkpoint

        self._folder = folder
        self._path = str(folder / "checkpoints.sqlite")
        self._saver_type = SqliteSaver
        self._pregel: Any = _checkpoint
        self._specs: dict[str, Any] = {name: DeltaChannel(extend, list) for name in ("tasks", "decisions")}
        self._open = ExitStack()
        self._saver = self._open.enter_context(SqliteSaver.from_conn_string(self._path))
        self._begin()

    @staticmethod
    def probe() -> None:
        quiet()
        import langgraph.channels.delta
        import langgraph.checkpoint.sqlite
        import langgraph.pregel._checkpoint  # noqa: F401

    def _begin(self) -> None:
        """Store the thread's input checkpoint, as the loop does before its first superstep."""
        self._counters: dict[str, tuple[int, int]] = {}
        self._checkpoint: Any = self._pregel.empty_checkpoint()
        self._channels, _ = self._pregel.channels_from_checkpoint(self._specs, self._checkpoint)
        metadata: Any = {"source": "input", "step": -1, "parents": {}}
        self._configs: list[Any] = [self._saver.put(_config(START), self._checkpoint, metadata, {})]

    def save(self, step: int, task: Item, decision: Item) -> None:
        parent = self._configs[-1]
        self._saver.put_writes(
            parent, [("tasks", [task]), ("decisions", [decision])], str(uuid.uuid4()), NODE
        )
        versions = advance(self._saver, self._checkpoint, self._channels, [task], [decision])
        whole = self._due()
        self._checkpoint = self._pregel.create_checkpoint(
            self._checkpoint,
            self._channels,
            step,
            updated_channels=set(self._specs),
            channels_to_snapshot=whole,
        )
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        if self._counters:
            metadata["counters_since_delta_snapshot"] = dict(self._counters)
        self._configs.append(self._saver.put(parent, self._checkpoint, metadata, versions))

    def _due(self) -> set[str]:
        """Count the update of both channels; the channels to be stored whole this time."""
        for name in self._specs:
            updates, supersteps = self._counters.get(name, (0, 0))
            self._counters[name] = (updates + 1, supersteps + 1)
        versions = self._checkpoint["channel_versions"]
        due: set[str] = self._pregel.delta_channels_to_snapshot(self._channels, self._counters, versions)
        for name in due:
            del self._counters[name]
        return due

    def _rebuild(self, saver: Any, config: Any) -> Counts:
        found = saver.get_tuple(config)
        channels, _ = self._pregel.channels_from_checkpoint(
            self._specs, found.checkpoint, saver=saver, config=found.config
        )
        return len(channels["tasks"].get()), len(channels["decisions"].get())

    def resume(self) -> Counts:
        with self._saver_type.from_conn_string(self._path) as saver:
            return self._rebuild(saver, START)

    def load(self, step: int) -> Counts:
        return self._rebuild(self._saver, self._configs[step + 1])

    def list(self) -> int:
        return sum(found.metadata["source"] == "loop" for found in self._saver.list(_config(START)))

    def bytes_on_disk(self) -> int:
        return folder_bytes(self._folder)

    def close(self) -> None:
        self._open.close()


def _config(value: Any) -> Any:
    """The same config, typed as whatever the library expects."""
    return value
