"""LangGraph checkpoints written straight to a saver, as the Pregel loop does.

Each step updates two list channels with the reducer a graph would declare
(`Annotated[list, operator.add]`), gives both the saver's next version, builds the
checkpoint with the library's own `create_checkpoint` and calls `put` with the previous
checkpoint's config, so that every checkpoint names its parent. No graph runs: what is left
in a step is the saver's work and a few microseconds of bookkeeping.

A compiled graph makes two calls a step: `put_writes`, which stores the node's writes under
the parent checkpoint as soon as the node is done, and `put`, which stores the checkpoint
that contains them. A chain with `writes` makes both, as a graph does; one without makes
only the `put`, which is less than any graph can do. The thread's empty input checkpoint, to
which the first step's writes belong, is stored at opening and not counted.
"""

from __future__ import annotations

import operator
import uuid
from collections.abc import Sequence
from typing import Any

from .base import Counts, Item, counts

NODE = "agent"
START: dict[str, dict[str, str]] = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}


class Chain:
    """The state of one thread and the config of each checkpoint saved for it."""

    def __init__(self, saver: Any, *, writes: bool) -> None:
        from langgraph.channels.binop import BinaryOperatorAggregate
        from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint

        self.saver, self.writes = saver, writes
        self.create_checkpoint = create_checkpoint
        self.checkpoint: Any = empty_checkpoint()
        self.channels: dict[str, Any] = {
            name: BinaryOperatorAggregate(list, operator.add) for name in ("tasks", "decisions")
        }
        metadata = {"source": "input", "step": -1, "parents": {}}
        self.head: Any = saver.put(START, self.checkpoint, metadata, {})
        self.configs: dict[int, Any] = {}

    def save(self, step: int, task: Item, decision: Item) -> None:
        if self.writes:
            self.saver.put_writes(
                self.head, [("tasks", [task]), ("decisions", [decision])], str(uuid.uuid4()), NODE
            )
        versions = advance(self.saver, self.checkpoint, self.channels, [task], [decision])
        self.checkpoint = self.create_checkpoint(self.checkpoint, self.channels, step)
        metadata = {"source": "loop", "step": step, "parents": {}}
        self.head = self.saver.put(self.head, self.checkpoint, metadata, versions)
        self.configs[step] = self.head

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        """Grow the channels without a checkpoint."""
        self.channels["tasks"].update([list(tasks)])
        self.channels["decisions"].update([list(decisions)])


def advance(
    saver: Any,
    checkpoint: Any,
    channels: dict[str, Any],
    tasks: Sequence[Item],
    decisions: Sequence[Item],
) -> dict[str, Any]:
    """Write tasks and decisions into the channels; the versions they got."""
    seen = checkpoint["channel_versions"]
    version = saver.get_next_version(max(seen.values(), default=None), None)
    channels["tasks"].update([tasks])
    channels["decisions"].update([decisions])
    checkpoint["versions_seen"] = {NODE: dict(seen)}
    checkpoint["channel_versions"] = dict.fromkeys(channels, version)
    return dict(checkpoint["channel_versions"])


def stored(saver: Any, config: Any) -> Counts:
    """What the checkpoint at `config` holds, its channel values being stored whole."""
    return counts(saver.get_tuple(config).checkpoint["channel_values"])


def listed(saver: Any) -> int:
    """Checkpoints the saver lists for the thread.

    One at a time: the saver decodes every listed checkpoint, and a thousand grown states
    would not fit in memory together.
    """
    return sum(found.metadata["source"] == "loop" for found in saver.list(START))
