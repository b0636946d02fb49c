"""`Orchestra`: runs workflows. It puts the parts together and keeps them while runs are under way."""

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from orchestra.agents.registry import Runners
from orchestra.app import forks
from orchestra.app import orders as ordering
from orchestra.app.compose import SystemClock, open_manager
from orchestra.app.definitions import (
    Definition,
    Secrets,
    extract_secrets,
    find_key,
    load_definition,
    restore_run,
    restore_secrets,
    with_breakpoints,
    with_overrides,
)
from orchestra.app.environment import EnvironmentProbe
from orchestra.app.finish import part, tidy
from orchestra.app.mailbox import Mailbox
from orchestra.app.observers import Observers, choose_observers
from orchestra.app.workbench import Workbench
from orchestra.checkpoint.active import ActiveRun
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.config.inputs import accept_inputs
from orchestra.config.load import LoadedWorkflow
from orchestra.engine import start
from orchestra.engine.agents.slots import Slots
from orchestra.engine.atlas import Atlas, Ending
from orchestra.engine.orders import Order
from orchestra.engine.outputs import OutputFolder
from orchestra.engine.redact import Redactor
from orchestra.engine.rollback import RollbackPlan
from orchestra.engine.settings import EngineSettings
from orchestra.engine.stage import Stage, SteadyClock
from orchestra.errors import RunExists, RunOwned
from orchestra.ids import RunId, new_run_id, run_id
from orchestra.model import events as ev
from orchestra.model.state import State, WorkflowRef
from orchestra.model.workflow import RecoveryPolicy, Workflow
from orchestra.ports.sink import Sink
from orchestra.ports.store import Store


class Orchestra:
    """Runs workflows in one process, many at once, over one store."""

    def __init__(
        self,
        store: Store | str | None = None,
        *,
        settings: CheckpointSettings | None = None,
        engine: EngineSettings | None = None,
        recovery: RecoveryPolicy | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        sinks: Iterable[Sink] = (),
        project: Path | None = None,
        telemetry: bool | None = None,
        events: bool | None = None,
    ) -> None:
        """`functions` are agents of kind "function", by id; `project` is where runs work, by default here.

        `recovery` takes the place of what workflows say about it.

        `telemetry` and `events` say whether runs are traced and keep a journal; when they say nothing the
        `engine` settings do, and without those it is off.
        """
        self.engine = engine or EngineSettings()
        self.project = (project or Path()).absolute()
        self._functions, self._recovery = dict(functions or {}), recovery
        self._redactor = Redactor.of_environment(os.environ)
        told = choose_observers(engine, telemetry=telemetry, events=events)
        self._observers = Observers(self.project / self.engine.outputs, told, self._redactor.text)
        sinks = (*sinks, *self._observers.sinks)
        self.manager = open_manager(store, settings=settings, sinks=sinks)
        self._observers.bind(self.manager.archive)
        self._own_store = not isinstance(store, Store)
        self._clock = SystemClock()
        self._bench = Workbench(self.manager, self._redactor, self._clock, self.project)
        self._playing: dict[RunId, Atlas] = {}
        self._runners: dict[tuple[Path, float], Runners] = {}
        self._references: dict[int, tuple[Workflow, WorkflowRef]] = {}
        self._facts = EnvironmentProbe(self.project)
        self._group: TaskGroup | None = None
        self._slots = Slots(self.engine.process_concurrency)
        self._outputs = OutputFolder(self.project / self.engine.outputs)
        self._draining = False

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(Mailbox(self.manager, self._playing, self.engine).deliver)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None, "BUG: it was not entered"
        self._group.cancel_scope.cancel()
        await self._group.__aexit__(None, None, None)
        await self.manager.close()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._observers.close)
        if self._own_store:
            self.manager.archive.store.close()

    async def flush(self) -> bool:
        """Wait until telemetry and journals are written as far as runs have come; whether they are."""
        return await anyio.to_thread.run_sync(self._observers.flush)

    @property
    def playing(self) -> list[RunId]:
        """The runs that are played here now."""
        return list(self._playing)

    async def run(
        self,
        workflow: Definition,
        inputs: Mapping[str, Any] | None = None,
        *,
        run: str | None = None,
        wait: bool = False,
        break_at: Collection[str] = (),
    ) -> Ending:
        """Start a run and play it until it ends, or cannot go on without somebody.

        It stops before the phases in `break_at`, in every process; they are no part of its definition.
        """
        loaded = load_definition(workflow)
        played = with_overrides(loaded.workflow, break_at, self._recovery)
        active, hidden = await self._begin(loaded, played, inputs or {}, run, break_at)
        return await self._play(played, active, loaded.file, hidden, wait=wait)

    async def resume(
        self,
        run: RunId | str,
        *,
        workflow: Definition | None = None,
        accept_changes: bool = False,
        by_hand: bool = True,
        wait: bool = False,
        inputs: Mapping[str, Any] | None = None,
    ) -> Ending:
        """Go on with a run where it was.

        When its workflow has changed since, `DefinitionChanged` is raised unless that is accepted. `inputs`
        are the secret ones, which are not stored; else they are taken from the environment.
        """
        active = await restore_run(self.manager, run_id(str(run)), self._recovery)
        try:
            loaded, edits = await self._bench.definition(active.state, workflow, accept_changes)
            played = with_overrides(loaded.workflow, active.state.workflow.break_at, self._recovery)
            view = self._bench.view(played, active.state)
            hidden = restore_secrets(view, inputs or {}, self._redactor, self.project)
            events = start.resume_events(played, active, self._clock.now(), by_hand=by_hand)
            await self.manager.record(active, (*events, *edits))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.manager.release(active)
            raise
        return await self._play(played, active, loaded.file, hidden, wait=wait)

    async def fork(
        self,
        run: RunId | str,
        seq: int | None = None,
        *,
        new: str | None = None,
        values: Mapping[str, Any] | None = None,
        workflow: Definition | None = None,
        reason: str = "",
    ) -> RunId:
        """Begin a new run at a snapshot of another, with some values or the workflow changed; returns its id.

        What stays valid is kept, the rest will be done again. The new run does not play yet: `resume` it.
        """
        source = run_id(str(run))
        return await forks.fork(
            self._bench, source, seq, new=new, values=values or {}, workflow=workflow, reason=reason
        )

    def edits(
        self, state: State, chosen: LoadedWorkflow, values: Mapping[str, Any], redefined: bool
    ) -> list[ev.Event]:
        """The events of changes by hand, and what must be done again because of them."""
        return self._bench.edits(state, chosen, values, redefined)

    async def order(self, run: RunId | str, order: Order, *, patience: float = 30.0) -> None:
        """Have something done with a run, wherever it is played; raises `BadOrder` or `RunOwned`.

        A run that nobody plays is claimed, changed and given up again.
        """
        name = run_id(str(run))
        atlas = self._playing.get(name)
        if atlas is not None:
            await atlas.ordered(order)
            return
        await ordering.carry_out(self._bench, name, order, patience)

    async def rollback_plan(self, run: RunId | str, to: int | None = None) -> RollbackPlan:
        """What going back would undo, keep and pay again, without doing it."""
        return await ordering.rollback_plan(self._bench, run_id(str(run)), to)

    def drain(self) -> None:
        """Stop every run in order: what is done is kept, and all stay resumable."""
        self._draining = True
        for atlas in self._playing.values():
            atlas.drain()

    async def _begin(
        self,
        loaded: LoadedWorkflow,
        workflow: Workflow,
        given: Mapping[str, Any],
        run: str | None,
        break_at: Collection[str],
    ) -> tuple[ActiveRun, Secrets]:
        if loaded.inputs is None:
            inputs = accept_inputs(workflow, given, base=self.project)
        else:
            inputs = dict(loaded.inputs)
        hidden = extract_secrets(workflow, inputs, self._redactor)
        inputs = self._redactor.value(inputs)
        now, held = self._clock.now(), with_breakpoints(self._reference(loaded), break_at)
        while True:
            name = run_id(run) if run else new_run_id(workflow.name, now, secrets.token_bytes(4))
            started, more, state = start.first_events(
                workflow,
                name,
                inputs,
                now,
                addresser=self.manager.addresser,
                held=held,
                environment=await self._facts.found(),
            )
            try:
                return await self.manager.begin(started, *more, state=state), hidden
            except (RunExists, RunOwned):  # a name made by chance may be taken, also by a run under way
                if run:
                    raise

    def _reference(self, loaded: LoadedWorkflow) -> WorkflowRef:
        """A workflow as states keep it; worked out once for all its runs."""
        found = self._references.get(id(loaded.workflow))
        if found is None or found[0] is not loaded.workflow:
            file = str(loaded.file) if loaded.file.name else None
            held = start.reference(loaded.workflow, self.manager.addresser, file)
            found = self._references[id(loaded.workflow)] = (loaded.workflow, held)
        return found[1]

    async def _play(
        self, workflow: Workflow, active: ActiveRun, file: Path, hidden: Secrets, *, wait: bool
    ) -> Ending:
        if active.state.status == "failed":  # it was parked, or failed as it began
            await self.manager.release(active)
            return Ending(run=active.run, kind="failed", state=active.state)
        atlas = Atlas(self._stage(file, workflow, hidden), workflow, active, wait=wait)
        self._playing[active.run] = atlas
        if self._draining:
            atlas.drain()
        try:
            ending = await atlas.play()
        finally:
            try:
                await part(self.manager, active)
            finally:
                del self._playing[active.run]  # not before: an order that comes meanwhile is refused at once
        await tidy(self.manager, self._observers, self._outputs.root, ending, self._clock.now())
        return ending

    def _stage(self, file: Path, workflow: Workflow, hidden: Secrets) -> Stage:
        grace = workflow.policy.grace_us / 1_000_000
        runner = self._runners.get((file, grace))
        if runner is None:
            folder = (self.project / file).parent
            runner = self._runners[file, grace] = Runners(folder, self._functions, grace=grace)
        return Stage(
            manager=self.manager,
            runner=runner,
            outputs=self._outputs,
            clock=SteadyClock(self._clock),
            project=self.project,
            redactor=self._redactor,
            keys=find_key,
            slots=self._slots,
            secrets=hidden,
            every_us=self.engine.every_us,
        )

    async def stored_definition(self, state: State) -> LoadedWorkflow:
        """The workflow as a run keeps it."""
        return await self._bench.stored_definition(state)
