"""The workbench: what is needed to change a run by hand, whether it is forked, resumed or ordered about."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from orchestra.app.definitions import (
    Definition,
    learn_secrets,
    load_definition,
    reload_definition,
    value_for,
    with_breakpoints,
)
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.config.load import LoadedWorkflow
from orchestra.engine import edits as editing
from orchestra.engine import start
from orchestra.engine.agents.mercury import Desk
from orchestra.engine.redact import Redactor
from orchestra.engine.view import View
from orchestra.errors import NotResumable
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all
from orchestra.model.state import State
from orchestra.model.workflow import Workflow
from orchestra.ports.clock import Clock


class Workbench:
    """Definitions of runs, views of their states, and the events of changes by hand."""

    def __init__(self, manager: CheckpointManager, redactor: Redactor, clock: Clock, project: Path) -> None:
        self.manager, self.redactor, self.clock = manager, redactor, clock
        self._project = project

    def view(self, workflow: Workflow, state: State) -> View:
        """A state, seen with its workflow."""
        return View(workflow, state, self.manager.archive.value, self.manager.addresser)

    async def desk(self, state: State) -> Desk:
        """What is needed to understand what somebody says of a run, and to keep its secrets."""
        workflow = (await self.stored_definition(state)).workflow
        return Desk(
            view=self.view_with_secrets(workflow, state), redactor=self.redactor, now=self.clock.now()
        )

    def view_with_secrets(self, workflow: Workflow, state: State) -> View:
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
        self, state: State, given: Definition | None, accept_changes: bool
    ) -> tuple[LoadedWorkflow, list[ev.Event]]:
        """The workflow to go on with, and what follows from changes in it.

        It is the given one, else what the files say now, else the stored one.
        """
        stored = await self.stored_definition(state)
        current = reload_definition(stored, self._project) if given is None else load_definition(given)
        digest = start.definition_digest(current.workflow, self.manager.addresser)
        if digest == state.workflow.digest:
            return current, []
        start.check_changes(state, stored.workflow, current.workflow, accepted=accept_changes)
        return current, self.edits(state, current, {}, True)

    def edits(
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
            held = with_breakpoints(held, state.workflow.break_at)
            view = add(ev.DefinitionAccepted(at=now, workflow=held))
        for path, value in values.items():
            made = self.redactor.value(value_for(chosen.workflow, path, value, self._project))
            view = add(editing.edit(view, path, made, now))
        if events:
            edited = any(path.startswith("context.") for path in values)
            add(*editing.replan_events(view, now, context_edited=edited))
        return events
