"""What the tests of the engine share: workflows in few words, and a theatre in which they are played."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio

from orchestra.app.orchestra import Orchestra
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.values import context_data, thaw
from orchestra.engine.atlas import Ending
from orchestra.engine.settings import EngineSettings
from orchestra.ids import AgentId, PhaseId, RunId
from orchestra.model.events import Event
from orchestra.model.records import Decision
from orchestra.model.state import State
from orchestra.model.workflow import (
    Agent,
    ContextName,
    Input,
    Phase,
    Policy,
    RecoveryPolicy,
    Retry,
    Spawn,
    Specialist,
    Transition,
    Workflow,
)
from orchestra.ports.sink import Notice, TurnRecorded
from orchestra.ports.store import RowQuery, Store
from orchestra.stores.memory import MemoryStore

Functions = Mapping[str, Callable[..., Any]]
QUICK = Retry(backoff_us=1000, max_backoff_us=4000)


def does(name: str, agent: str | None = None, **more: Any) -> Specialist:
    """A specialist; its agent has the same name unless another is said."""
    if "substitute" in more:
        more["substitute"] = AgentId(more["substitute"])
    return Specialist(id=name, agent=AgentId(agent or name), **more)


def phase(name: str, *specialists: Specialist, next: Iterable[Any] = (), **more: Any) -> Phase:
    """A phase; `next` holds names, or names with conditions."""
    ways = tuple(
        Transition(to=PhaseId(each))
        if isinstance(each, str)
        else Transition(to=PhaseId(each[0]), when=each[1])
        for each in next
    )
    return Phase(id=PhaseId(name), specialists=specialists, next=ways, **more)


def flow(
    *phases: Phase,
    context: Mapping[str, str] | None = None,
    inputs: Iterable[Input] = (),
    policy: Policy | None = None,
    name: str = "flow",
) -> Workflow:
    """A workflow whose agents are functions; attempts follow one another quickly."""
    names = sorted({agent for each in phases for agent in _agents(each)})
    return Workflow(
        name=name,
        inputs=tuple(inputs),
        context=tuple(ContextName(name=key, reducer=kind) for key, kind in (context or {}).items()),  # type: ignore[arg-type]
        agents=tuple(Agent(id=AgentId(each), kind="function") for each in names),
        policy=policy or Policy(retry=QUICK),
        phases=phases,
    )


def policy(*steps: str, attempts: int = 1, recoveries: int = 3, **more: Any) -> Policy:
    """A policy with these steps on failure."""
    recovery = RecoveryPolicy(max_recoveries=recoveries, on_failure=steps or ("fail",))  # type: ignore[arg-type]
    retry = Retry(attempts=attempts, backoff_us=1000, max_backoff_us=4000)
    return Policy(retry=retry, recovery=recovery, **more)


def _agents(phase: Phase) -> Iterable[str]:
    for each in phase.specialists:
        yield each.agent
        if each.substitute is not None:
            yield each.substitute
    if phase.evaluate is not None:
        yield phase.evaluate.agent
    for reaction in phase.on_low_confidence:
        if isinstance(reaction, Spawn) and reaction.agent is not None:
            yield reaction.agent


class Theatre:
    """A store that outlives the processes that would be, and the events that were committed to it."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self.folder = folder
        self.store = store or MemoryStore()
        self.turns: list[TurnRecorded] = []
        self._changed = anyio.Event()

    def house(
        self,
        functions: Functions | None = None,
        *,
        settings: CheckpointSettings | None = None,
        engine: EngineSettings | None = None,
    ) -> Orchestra:
        """A process over the store."""
        return Orchestra(
            self.store,
            functions=functions,
            sinks=[self],
            project=self.folder,
            settings=settings,
            engine=engine,
        )

    def notice(self, notice: Notice) -> None:
        if isinstance(notice, TurnRecorded):
            self.turns.append(notice)
            self._changed.set()

    async def until(self, holds: Callable[[TurnRecorded], bool]) -> None:
        """Wait until something is so of the newest turn."""
        with anyio.fail_after(180):
            while not self.turns or not holds(self.turns[-1]):
                self._changed = anyio.Event()
                await self._changed.wait()

    async def until_waiting(self, run: str = "run") -> None:
        """Wait until a run waits for somebody."""
        await self.until(lambda turn: turn.run == run and turn.state.status == "waiting")

    @property
    def events(self) -> list[Event]:
        """Every event so far, in order."""
        return [event for turn in self.turns for event in turn.events]

    async def run(
        self, workflow: Workflow, functions: Functions, inputs: Mapping[str, Any] | None = None, **more: Any
    ) -> Ending:
        """Play a run from its beginning in a process of its own, called `run`."""
        async with self.house(functions, settings=more.pop("settings", None)) as house:
            return await house.run(workflow, inputs, run=more.pop("run", "run"), **more)

    async def resume(self, functions: Functions, run: str = "run", **more: Any) -> Ending:
        """Go on with it in another."""
        async with self.house(functions) as house:
            return await house.resume(run, **more)


def triggers(store: Store, run: str = "run") -> list[tuple[str, ...]]:
    """The triggers of every snapshot of a run, in order."""
    return [tuple(row.triggers) for row in store.rows(RowQuery(run=RunId(run)))]


def kinds(events: Iterable[Event]) -> list[str]:
    """The kinds of events."""
    return [event.kind for event in events]


def decisions(state: State, kind: str | None = None) -> list[Decision]:
    """Atlas's decisions, of one kind or of all."""
    return [each for each in state.decisions if each.agent == "atlas" and kind in (None, each.kind)]


def result(state: State, task: str) -> Any:
    """What an assignment found."""
    held = state.tasks[task].result
    return None if held is None else thaw(held)


def context(state: State) -> dict[str, Any]:
    """The context as data."""
    return {name: context_data(value) for name, value in state.context.items()}


def statuses(state: State) -> dict[str, str]:
    """The status of every assignment."""
    return {name: task.status for name, task in state.tasks.items()}


def path(state: State) -> list[str]:
    """The phases that were visited, in order."""
    return [visit.phase for visit in state.path]


async def nothing(ctx: Any) -> None:
    """An agent with nothing to do."""


def returns(value: Any) -> Callable[[Any], Any]:
    """An agent that always returns the same."""

    async def agent(ctx: Any) -> Any:
        return value

    return agent


class Failing:
    """An agent that fails so many times before it succeeds."""

    def __init__(self, times: int, value: Any = "done", message: str = "not yet") -> None:
        self.times, self.value, self.message, self.calls = times, value, message, 0

    async def __call__(self, ctx: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise RuntimeError(self.message)
        return self.value
