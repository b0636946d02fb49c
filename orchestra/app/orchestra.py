"""`Orchestra`: runs workflows. It puts the parts together and keeps them while runs are under way."""

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio
from anyio.abc import TaskGroup

from orchestra.agents.runners import Runners
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
from orchestra.app.reader import RunReader
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
from orchestra.model.state import State, WorkflowRef
from orchestra.model.workflow import RecoveryPolicy, Workflow
from orchestra.ports.sink import Sink
from orchestra.ports.store import Store

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
"""Agents that are functions of a program, by id."""


class Orchestra(RunReader):
    """Runs workflows in one process, many at once, over one store.

    Runs are named by their ids. What cannot be done raises a `UsageError`; a failed run is an `Ending`.
    """

    def __init__(
        self,
        store: Store | str | None = None,
        *,
        settings: CheckpointSettings | None = None,
        engine: EngineSettings | None = None,
        recovery: RecoveryPolicy | None = None,
        functions: Functions | None = None,
        sinks: Iterable[Sink] = (),
        project: Path | None = None,
        telemetry: bool | None = None,
        events: bool | None = None,
    ) -> None:
        """`store` is a URL, by default `ORCHESTRA_STORE` or a file below `outputs`.

        `project` is the folder that runs work in, by default this one. `recovery` takes the place of what
        workflows say about it. `functions` are agents by id, for runs whose workflow is not handed in.

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
        self.workbench = Workbench(self.manager, self._redactor, self._clock, self.project)
        self._playing: dict[RunId, Atlas] = {}
        self._runners: dict[tuple[Path, float, tuple[tuple[str, int], ...]], Runners] = {}
        self._built: dict[str, Functions] = {}  # of workflows that programs built, by name
        self._references: dict[int, tuple[Workflow, WorkflowRef]] = {}
        self._environment = EnvironmentProbe(self.project)
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
        **more_inputs: Any,
    ) -> Ending:
        """Start a run and play it until it ends, or cannot go on without somebody.

        Inputs are keywords; `inputs` is for names that are no keywords, or taken. `wait` stays for answers.
        It stops before the phases in `break_at`, in every process; they are no part of its definition.
        """
        loaded = self._load(workflow)
        played = with_overrides(loaded.workflow, break_at, self._recovery)
        active, hidden = await self._begin(loaded, played, {**(inputs or {}), **more_inputs}, run, break_at)
        return await self._play(played, active, loaded, hidden, wait=wait)

    async def resume(
        self,
        run: str,
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
        active = await restore_run(self.manager, run_id(run), self._recovery)
        try:
            given = None if workflow is None else self._load(workflow)
            loaded, edits = await self.workbench.definition(active.state, given, accept_changes)
            played = with_overrides(loaded.workflow, active.state.workflow.break_at, self._recovery)
            view = self.workbench.view(played, active.state)
            hidden = restore_secrets(view, inputs or {}, self._redactor, self.project)
            events = start.resume_events(played, active, self._clock.now(), by_hand=by_hand)
            await self.manager.record(active, (*events, *edits))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.manager.release(active)
            raise
        return await self._play(played, active, loaded, hidden, wait=wait)

    async def fork(
        self,
        run: str,
        at: int | None = None,
        *,
        new: str | None = None,
        values: Mapping[str, Any] | None = None,
        workflow: Definition | None = None,
        reason: str = "",
    ) -> RunId:
        """Begin a new run at a snapshot of another, by default its head; returns its id.

        `values` are set by path, e.g. `{"inputs.who": "you"}`; `workflow` takes the place of the run's own.
        What stays valid is kept, the rest will be done again. The new run does not play yet: `resume` it.
        """
        chosen = None if workflow is None else self._load(workflow)
        return await forks.fork(
            self.workbench, run_id(run), at, new=new, values=values or {}, workflow=chosen, reason=reason
        )

    async def answer(self, run: str, value: Any, *, question: str = "") -> None:
        """Answer a question; which one need only be said when several are open."""
        await self.order(run, Order(kind="answer", target=question, value=value))

    async def provide(self, run: str, name: str) -> None:
        """Say that a key is there now, in the environment or the key file; its value is never stored."""
        await self.order(run, Order(kind="provide", target=name))

    async def pause(self, run: str, *, reason: str = "") -> None:
        """Begin nothing new in a run until it is resumed."""
        await self.order(run, Order(kind="pause", reason=reason))

    async def unpause(self, run: str) -> None:
        """Let a run that is being played go on from a pause or a breakpoint; `resume` plays one."""
        await self.order(run, Order(kind="resume"))

    async def cancel(self, run: str, *, reason: str = "") -> None:
        """End a run for good."""
        await self.order(run, Order(kind="cancel", reason=reason))

    async def snapshot(self, run: str, *, note: str = "") -> None:
        """Mark a snapshot of a run as it is now."""
        await self.order(run, Order(kind="snapshot", reason=note))

    async def retry(self, run: str, assignment: str) -> None:
        """Have an assignment of the current phase that failed tried again."""
        await self.order(run, Order(kind="retry", target=assignment))

    async def rollback(self, run: str, *, to: int | None = None, reason: str = "") -> None:
        """Go back to a snapshot, by default the last good one; history is added to, not rewritten."""
        target = "" if to is None else str(to)
        await self.order(run, Order(kind="rollback", target=target, reason=reason))

    async def order(self, run: str, order: Order, *, patience: float = 30.0) -> None:
        """Have something done with a run, wherever it is played, as the methods above do.

        Raises `BadOrder` or `RunOwned`. A run that nobody plays is claimed, changed and given up again.
        """
        name = run_id(run)
        atlas = self._playing.get(name)
        if atlas is not None:
            await atlas.do_order(order)
            return
        await ordering.carry_out(self.workbench, name, order, patience)

    async def rollback_plan(self, run: str, to: int | None = None) -> RollbackPlan:
        """What going back would undo, keep and pay again, without doing it."""
        return await ordering.rollback_plan(self.workbench, run_id(run), to)

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
                environment=await self._environment.facts(),
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
        self, workflow: Workflow, active: ActiveRun, loaded: LoadedWorkflow, hidden: Secrets, *, wait: bool
    ) -> Ending:
        if active.state.status == "failed":  # it was parked, or failed as it began
            await self.manager.release(active)
            opener = self.manager.archive.value
            return Ending(run=active.run, kind="failed", state=active.state, opener=opener, workflow=workflow)
        atlas = Atlas(self._stage(loaded, workflow, hidden), workflow, active, wait=wait)
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

    def _load(self, definition: Definition) -> LoadedWorkflow:
        """A definition, checked; its functions are kept for runs that are resumed without it."""
        loaded = load_definition(definition)
        if loaded.functions:
            self._built[loaded.workflow.name] = loaded.functions
        return loaded

    def _runner(self, loaded: LoadedWorkflow, workflow: Workflow) -> Runners:
        functions = {**self._functions, **(loaded.functions or self._built.get(workflow.name, {}))}
        grace = workflow.policy.grace_us / 1_000_000
        key = loaded.file, grace, tuple((name, id(each)) for name, each in functions.items())
        if key not in self._runners:
            folder = (self.project / loaded.file).parent
            self._runners[key] = Runners(folder, functions, grace=grace)
        return self._runners[key]

    def _stage(self, loaded: LoadedWorkflow, workflow: Workflow, hidden: Secrets) -> Stage:
        return Stage(
            manager=self.manager,
            runner=self._runner(loaded, workflow),
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
        return await self.workbench.stored_definition(state)
