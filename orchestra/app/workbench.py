"""The workbench: changing a run by hand that is not played here: forks, orders, and their plans."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import attrs

from orchestra.app.definitions import learn_secrets, reload_definition, value_for, with_choices
from orchestra.app.mailbox import send_order
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.config.load import LoadedWorkflow
from orchestra.engine import edits as editing
from orchestra.engine import orders, start
from orchestra.engine.agents.mercury import Desk
from orchestra.engine.orders import Order
from orchestra.engine.redact import Redactor
from orchestra.engine.rollback import RollbackPlan, effects_since, plan_rollback, roll_back, way_back
from orchestra.engine.view import View
from orchestra.errors import BadOrder, NotResumable
from orchestra.ids import RunId, TaskId, new_run_id, run_id
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all
from orchestra.model.state import State
from orchestra.model.workflow import Workflow
from orchestra.ports.clock import Clock

_DONE: Final = frozenset({"completed", "skipped", "retired", "abandoned"})


@attrs.frozen(kw_only=True)
class ActionPlan:
    """What forking a run, or going on with it, would do again, and what it would not."""

    run: RunId
    at: int  # the snapshot it begins with
    phase: str | None
    kept: tuple[TaskId, ...]  # results that stay valid
    undone: tuple[TaskId, ...]  # results that the changed values make invalid
    again: tuple[TaskId, ...]  # assignments of the current phase that are done, or done again
    effects: tuple[str, ...]  # done to the outside world since, and not undone
    tokens: int  # what the run has spent since then
    cost_micros: int


class Workbench:
    """Definitions of runs, views of their states, and the events of changes by hand."""

    def __init__(self, manager: CheckpointManager, redactor: Redactor, clock: Clock, project: Path) -> None:
        self.manager, self.redactor, self.clock = manager, redactor, clock
        self._project = project

    def view(self, workflow: Workflow, state: State) -> View:
        """A state, seen with its workflow."""
        return View(workflow, state, self.manager.archive.value, self.manager.addresser)

    async def _desk(self, state: State) -> Desk:
        """What is needed to understand what somebody says of a run, and to keep its secrets."""
        workflow = (await self.stored_definition(state)).workflow
        view = self._view_with_secrets(workflow, state)
        return Desk(view=view, redactor=self.redactor, now=self.clock.now())

    def _view_with_secrets(self, workflow: Workflow, state: State) -> View:
        """The view of a run that is not played here, after learning what can be known of its secrets."""
        view = self.view(workflow, state)
        learn_secrets(view, self.redactor, self._project)
        return view

    async def stored_definition(self, state: State) -> LoadedWorkflow:
        """The workflow as a run keeps it."""
        held = state.workflow.definition
        if held is None:
            raise NotResumable(run=state.run, status="recorded without a workflow")
        value = await anyio.to_thread.run_sync(self.manager.archive.loader.value, held)
        file = Path(state.workflow.file or "")
        return LoadedWorkflow(workflow=start.read_definition(value), file=file, text="", settings={})

    async def definition(
        self, state: State, given: LoadedWorkflow | None, accept_changes: bool
    ) -> tuple[LoadedWorkflow, list[ev.Event]]:
        """The workflow to go on with, and what follows from changes in it.

        It is the given one, else what the files say now, else the stored one.
        """
        stored = await self.stored_definition(state)
        current = given or reload_definition(stored, self._project)
        if start.definition_digest(current.workflow, self.manager.addresser) == state.workflow.digest:
            return current, []
        start.check_changes(state, stored.workflow, current.workflow, accepted=accept_changes)
        return current, self._edits(state, current, {}, True)

    def _edits(
        self, state: State, chosen: LoadedWorkflow, values: Mapping[str, Any], redefined: bool
    ) -> list[ev.Event]:
        """The events of changes by hand, and what must be done again because of them."""
        now, events = self.clock.now(), list[ev.Event]()

        def add(*more: ev.Event) -> View:
            nonlocal state
            state = apply_all(state, more)
            events.extend(more)
            return self.view(chosen.workflow, state)

        view = self.view(chosen.workflow, state)
        if redefined:
            held = start.reference(chosen.workflow, self.manager.addresser, str(chosen.file) or None)
            held = with_choices(held, state.workflow.break_at, state.workflow.models)
            view = add(ev.DefinitionAccepted(at=now, workflow=held))
        for path, value in values.items():
            made = self.redactor.value(value_for(chosen.workflow, path, value, self._project))
            view = add(*editing.edit(view, path, made, now))
        if events:
            edited = any(path.startswith("context.") for path in values)
            add(*editing.replan_events(view, now, context_edited=edited))
        return events

    async def fork(
        self,
        source: RunId,
        seq: int | None,
        *,
        new: str | None,
        values: Mapping[str, Any],
        workflow: LoadedWorkflow | None,
        reason: str,
    ) -> RunId:
        """Begin a run at a snapshot of another, with some values or the workflow changed; returns its id."""
        base, now = await self.manager.look(source, seq), self.clock.now()
        stored = await self.stored_definition(base.state)
        self._view_with_secrets(stored.workflow, base.state)
        chosen = workflow or stored
        name = run_id(new) if new else new_run_id(chosen.workflow.name, now, secrets.token_bytes(4))
        at = base.header.seq
        if base.state.status == "completed":
            left = f"nothing is left to do at {source}@{at}; fork from an earlier snapshot"
            raise BadOrder(order="fork", reason=left)
        forked = ev.Forked(at=now, run=name, from_run=source, from_seq=at, from_digest=base.digest)
        more = self._edits(apply_all(base.state, (forked,)), chosen, values, workflow is not None)
        active = await self.manager.fork(source, at, name, reason=self.redactor.text(reason), more=more)
        await self.manager.record(active, (ev.RunPaused(at=self.clock.now(), reason=orders.FORKED),))
        await self.manager.release(active)
        return name

    async def plan_fork(self, run: RunId, seq: int | None, values: Mapping[str, Any]) -> ActionPlan:
        """What a fork at a snapshot with some values changed would do; raises what `fork` raises.

        Without a snapshot it begins at the head, which is what going on with the run would do.
        """
        base, head = await self.manager.look(run, seq), await self.manager.look(run)
        state = base.state
        if values:
            stored = await self.stored_definition(state)
            state = apply_all(state, self._edits(state, stored, values, False))
        cursor, before, after = state.cursor, _completed(base.state), _completed(state)
        again = (
            TaskId(name)
            for name, task in state.tasks.items()
            if (task.phase, task.visit) == (cursor.phase, cursor.visit) and task.status not in _DONE
        )
        return ActionPlan(
            run=run,
            at=base.header.seq,
            phase=cursor.phase,
            kept=tuple(sorted(after)),
            undone=tuple(sorted(before - after)),
            again=tuple(again),
            effects=tuple(effects_since(head.state, base.state)),
            tokens=head.state.metrics.tokens - base.state.metrics.tokens,
            cost_micros=head.state.metrics.cost_micros - base.state.metrics.cost_micros,
        )

    async def rollback_plan(self, run: RunId, to: int | None) -> RollbackPlan:
        """What going back would undo, keep and pay again, without doing it."""
        loaded = await self.stored_definition((await self.manager.look(run)).state)
        return await plan_rollback(self.manager, run, loaded.workflow, to)

    async def carry_out(self, run: RunId, order: Order, patience: float) -> None:
        """Have something done with a run that another process plays, or nobody.

        A run that nobody plays is claimed, changed and given up again. Raises `BadOrder` or `RunOwned`.
        """
        manager = self.manager
        if await anyio.to_thread.run_sync(lambda: manager.archive.run(run).owned):
            clean = await self._check_order(run, order)
            if await send_order(manager, run, clean, self.clock.now(), patience):
                return
        active = await manager.restore(run)
        try:
            desk = await self._desk(active.state)
            if order.kind == "rollback":
                await roll_back(manager, active, desk, order)
                return
            events = orders.events_of(desk, order, live=False)
            if active.state.status != "running" and apply_all(active.state, events).status == "running":
                events = (*events, ev.RunPaused(at=self.clock.now(), reason=orders.READY))
            await manager.record(active, events)
        finally:
            with anyio.CancelScope(shield=True):
                await manager.release(active)

    async def _check_order(self, run: RunId, order: Order) -> Order:
        """The order without secrets; raises `BadOrder` for what who plays the run would only note down."""
        desk = await self._desk((await self.manager.look(run)).state)
        if order.kind == "rollback":
            orders.check_open(desk.view.state, order)
            await way_back(self.manager, run, orders.snapshot_number(order))
        else:
            orders.events_of(desk, order, live=True)
        return orders.without_secrets(desk, order)


def _completed(state: State) -> set[TaskId]:
    return {TaskId(name) for name, task in state.tasks.items() if task.status == "completed"}
