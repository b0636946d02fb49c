"""Engines behind one small interface: the same small run, played by us and by other libraries.

Each module adapts one library and says in its docstring what is called, what is timed and what is not.
Libraries are imported only when an adapter is asked for, so one that is not installed takes only its own
adapters away.
"""

from __future__ import annotations

from importlib import metadata
from typing import Final

from benchmarks.flows.base import Alone, Flow, Load, Played, Turns
from benchmarks.flows.burr_flow import BurrAsync, BurrParallel, BurrThreads
from benchmarks.flows.crewai_flow import CrewAIFlow, CrewAISequential
from benchmarks.flows.dbos_flow import DbosGathered, DbosSequential, DbosThreads
from benchmarks.flows.langgraph_flow import (
    LangGraphAsync,
    LangGraphDeltaAsync,
    LangGraphDeltaThreads,
    LangGraphSavers,
    LangGraphTasks,
    LangGraphTasksAsync,
    LangGraphThreads,
)
from benchmarks.flows.orchestra_flow import OrchestraFlow, OrchestraTelemetry

__all__ = ["FLOWS", "Alone", "Flow", "Load", "Played", "Turns", "flow_named", "version_of"]

FLOWS: Final[tuple[type[Flow], ...]] = (
    OrchestraFlow,
    OrchestraTelemetry,
    LangGraphThreads,
    LangGraphSavers,
    LangGraphDeltaThreads,
    LangGraphAsync,
    LangGraphDeltaAsync,
    LangGraphTasks,
    LangGraphTasksAsync,
    BurrThreads,
    BurrAsync,
    BurrParallel,
    CrewAIFlow,
    CrewAISequential,
    DbosGathered,
    DbosSequential,
    DbosThreads,
)


def flow_named(name: str) -> type[Flow]:
    """The adapter of that name; it must be there."""
    return next(flow for flow in FLOWS if flow.name == name)


def version_of(flow: type[Flow]) -> str:
    """The packages behind an adapter, with their versions."""
    if not flow.distributions:
        from orchestra.version import VERSION

        return f"orchestra {VERSION}"
    return ", ".join(f"{name} {metadata.version(name)}" for name in flow.distributions)
