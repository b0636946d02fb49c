"""Other libraries' checkpoint stores behind one small interface, to be timed side by side.

Each module here adapts one store and says in its docstring what its `save` does and what it
leaves out. Libraries are imported only when an adapter is asked for, so one that is not
installed, or does not import, takes only its own adapters away:

    for name, open_peer in available():
        peer = open_peer(folder)

`missing()` says which are away and why, `versions()` what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

from .base import Peer, Unsupported
from .burr_sqlite import BurrSqlite
from .crewai_flow import CrewAIFlow
from .dbos_sqlite import DbosSqlite
from .langgraph_delta import LangGraphDelta
from .langgraph_memory import LangGraphMemory
from .langgraph_sqlite import LangGraphSqlite, LangGraphSqlitePut

__all__ = ["PEERS", "Peer", "Unsupported", "available", "missing", "version_of", "versions"]

PEERS: tuple[type[Peer], ...] = (
    LangGraphSqlite,
    LangGraphSqlitePut,
    LangGraphDelta,
    LangGraphMemory,
    BurrSqlite,
    DbosSqlite,
    CrewAIFlow,
)


def available() -> list[tuple[str, Callable[[Path], Peer]]]:
    """Name and opener of every adapter whose library imports, in the order of the table."""
    away = missing()
    return [(peer.name, peer) for peer in PEERS if peer.name not in away]


def missing() -> dict[str, str]:
    """Name of every adapter that cannot be used, and why."""
    return {peer.name: why for peer in PEERS if (why := _why_missing(peer)) is not None}


def versions() -> dict[str, str]:
    """Name of every usable adapter, and the packages with their versions behind it."""
    return {peer.name: version_of(peer) for peer in PEERS if _why_missing(peer) is None}


def version_of(peer: type[Peer]) -> str:
    """The packages behind an adapter, with their versions."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in peer.distributions)


@cache
def _why_missing(peer: type[Peer]) -> str | None:
    try:
        peer.probe()
    except Exception as problem:  # a broken install can fail with anything while importing
        return f"{type(problem).__name__}: {problem}"
    return None
