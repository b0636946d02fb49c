"""Conversations with a model, held and saved by us and by other libraries behind one small interface.

Each module adapts one library and says in its docstring what is called and what is saved when. Libraries are
imported only when an adapter is asked for, so one that is not installed takes only its own adapters away.
"""

from __future__ import annotations

from importlib import metadata
from typing import Final

from benchmarks.talks.base import Talk
from benchmarks.talks.langgraph_talk import LangGraph, LangGraphDelta, LangGraphSqlite
from benchmarks.talks.orchestra_talk import OrchestraTalk, OrchestraUnsaved
from benchmarks.talks.pydantic_ai_talk import (
    PydanticAI,
    PydanticAIDbos,
    PydanticAIFiles,
    PydanticAISqlite,
)

__all__ = ["STREAMS", "TALKS", "Talk", "talk_named", "version_of"]

TALKS: Final[tuple[type[Talk], ...]] = (
    OrchestraTalk,
    OrchestraUnsaved,
    PydanticAI,
    PydanticAISqlite,
    PydanticAIFiles,
    PydanticAIDbos,
    LangGraph,
    LangGraphSqlite,
    LangGraphDelta,
)
"""Who holds a conversation."""
STREAMS: Final[tuple[type[Talk], ...]] = (OrchestraTalk, OrchestraUnsaved, PydanticAI)
"""Who takes a stream: those that need not be told how to save one."""


def talk_named(name: str) -> type[Talk]:
    """The adapter of that name; it must be there."""
    return next(talk for talk in TALKS if talk.name == name)


def version_of(talk: type[Talk]) -> str:
    """The packages behind an adapter, with their versions."""
    if not talk.distributions:
        from orchestra.version import VERSION

        return f"orchestra {VERSION}"
    return ", ".join(f"{name} {metadata.version(name)}" for name in talk.distributions)
