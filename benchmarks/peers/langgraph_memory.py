"""LangGraph's `InMemorySaver`: the same chain of checkpoints, nothing written to disk.

Measured: `save` is `put_writes` and `put` of an `InMemorySaver`, the calls a compiled graph
makes a step; `put` serialises each changed channel whole and keeps the bytes in a dictionary.
Nothing outlives the process, so `resume` reads the latest tuple back from the same saver: it
is the cost of decoding, with no store to open.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .base import Counts, Item, Peer, quiet
from .langgraph_chain import START, Chain, listed, stored


class LangGraphMemory(Peer):
    name = "LangGraph in memory"
    durable = False
    grows = True
    durability = "none: gone with the process"
    distributions = ("langgraph", "langgraph-checkpoint")

    def __init__(self, folder: Path) -> None:
        self.probe()
        from langgraph.checkpoint.memory import InMemorySaver

        self._chain = Chain(InMemorySaver(), writes=True)

    @staticmethod
    def probe() -> None:
        quiet()
        import langgraph.channels.binop
        import langgraph.checkpoint.memory  # noqa: F401

    def save(self, step: int, task: Item, decision: Item) -> None:
        self._chain.save(step, task, decision)

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        self._chain.seed(tasks, decisions)

    def resume(self) -> Counts:
        return stored(self._chain.saver, START)

    def load(self, step: int) -> Counts:
        return stored(self._chain.saver, self._chain.configs[step])

    def list(self) -> int:
        return listed(self._chain.saver)
