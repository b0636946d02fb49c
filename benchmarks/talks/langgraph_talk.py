"""LangGraph: a graph of two nodes, model and tool, whose state is messages (`add_messages`).

A step is two supersteps, and the saver stores the writes and the whole state of each: four commits a step.
It is told to make each durable before it goes on (`durability="sync"`), as ours are, where its default
would store one beside the next. `SqliteSaver` as its own `from_conn_string` opens it: write-ahead log,
SQLite's default synchronous setting, which is full. `LangGraphDelta` keeps the messages in a
`DeltaChannel`, its incremental (beta) channel.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Annotated, Any, TypedDict

from benchmarks.peers.base import quiet
from benchmarks.talks.base import Talk
from benchmarks.talks.script import END, PROMPT, Ticks, line


class LangGraph(Talk):
    name = "LangGraph, not saved"
    distributions = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")
    saver: Any = None
    delta = False

    @staticmethod
    def probe() -> None:
        quiet()
        import langgraph.channels.delta
        import langgraph.checkpoint.sqlite
        import langgraph.graph.message  # noqa: F401

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self.numbers = itertools.count()
        yield

    async def converse(self, steps: int, ticks: Ticks) -> str:
        graph = _graph(steps, ticks, delta=self.delta).compile(checkpointer=self.saver)
        config = {"configurable": {"thread_id": f"talk-{next(self.numbers)}"}, "recursion_limit": 10 * steps}
        more: Any = {} if self.saver is None else {"durability": "sync"}
        ended = graph.invoke({"messages": [("user", PROMPT)]}, config, **more)
        return str(ended["messages"][-1].content)


class LangGraphSqlite(LangGraph):
    name = "LangGraph SQLite"
    unsaved = LangGraph.name
    durability = "WAL, synced, each superstep before the next"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with ExitStack() as held:
            path = str(self.folder / "checkpoints.sqlite")
            self.saver = held.enter_context(SqliteSaver.from_conn_string(path))
            self.numbers = itertools.count()
            yield


class LangGraphDelta(LangGraphSqlite):
    name = "LangGraph SQLite, delta channel"
    delta = True


def _extend(state: Sequence[Any], writes: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """Reducer of a delta channel: the state with every written message after it."""
    return [*state, *(item for write in writes for item in write)]


def _graph(steps: int, ticks: Ticks, *, delta: bool) -> Any:
    """The graph, not compiled."""
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph import END as STOP
    from langgraph.graph import START, StateGraph
    from langgraph.graph.message import add_messages

    channel: Any = DeltaChannel(_extend, list) if delta else add_messages
    state: Any = TypedDict("state", {"messages": Annotated[list, channel]})  # type: ignore[type-arg]
    asked = itertools.count(1)

    def model(state: Any) -> Any:
        ticks.tick()
        number = next(asked)
        if number >= steps:
            return {"messages": [AIMessage(END)]}
        call = {"name": "look_up", "args": {"number": number}, "id": f"call_{number}"}
        return {"messages": [AIMessage(line(number).said, tool_calls=[call])]}

    def tool(state: Any) -> Any:
        (call,) = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(line(call["args"]["number"]).found, tool_call_id=call["id"])]}

    def onward(state: Any) -> str:
        return "tool" if state["messages"][-1].tool_calls else STOP

    graph: Any = StateGraph(state)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", onward, ["tool", STOP])
    graph.add_edge("tool", "model")
    return graph
