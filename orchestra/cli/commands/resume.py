"""`orchestra resume`: go on with runs where they were."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from cyclopts import Parameter

from orchestra.app.orchestra import Orchestra
from orchestra.app.resumable import playable_runs
from orchestra.app.workflow_files import load_workflow
from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJsonLines, StoreUrl
from orchestra.cli.play.conclusion import conclude
from orchestra.cli.play.inputs import read_inputs
from orchestra.cli.play.jobs import Job, exit_code, perform
from orchestra.cli.play.lifeline import Lifeline, play
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.settings import settings_in_force
from orchestra.cli.render.displays import Display, display_for
from orchestra.cli.render.screen import screen
from orchestra.cli.store import store_url, with_store
from orchestra.config.load import LoadedWorkflow
from orchestra.engine.atlas import Ending
from orchestra.engine.orders import Order
from orchestra.errors import BadSetting, BadWorkflow, DamageError, RunOwned
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_known
from orchestra.history.references import resolve_run
from orchestra.ids import RunId
from orchestra.model.state import State

Wait = Annotated[bool, Parameter(help="Stay and wait for answers instead of ending with 3.")]
AcceptChanges = Annotated[bool, Parameter(help="Go on with the workflow as it is now.")]
Workflow = Annotated[
    Path | None, Parameter(name="--workflow", metavar="FILE", help="Go on with this workflow file.")
]
Inputs = Annotated[
    list[str] | None,
    Parameter(name="--input", metavar="NAME=VALUE", help="A secret input again: those are not stored."),
]
QuietFlag = Annotated[bool, Parameter(name="--quiet", help="Print only what came of it.")]


def resume(
    runs: Annotated[
        list[str] | None, Parameter(name="RUN", help="Runs, or any beginnings of their ids.")
    ] = None,
    /,
    *,
    all: Annotated[
        bool, Parameter(name="--all", help="Every run that was cut off, or got an answer since.")
    ] = False,
    wait: Wait = False,
    accept_changes: AcceptChanges = False,
    workflow: Workflow = None,
    input: Inputs = None,
    quiet: QuietFlag = False,
    store: StoreUrl = None,
    json: AsJsonLines = False,
) -> int:
    """Go on with runs where they were, until they end or cannot go on without somebody.

    A failed run tries again what failed; a run at a breakpoint goes past it. A run that another process plays
    is told to go on there.
    """
    if bool(runs) == all:
        raise BadSetting(setting="RUN", value=" ".join(runs or []), reason="name runs, or write --all")
    return play_on(
        runs,
        wait=wait,
        accept=accept_changes,
        workflow=workflow,
        inputs=read_inputs(input or []),
        quiet=quiet,
        store=store,
        as_json=json,
    )


def play_on(
    runs: Sequence[str] | None,
    *,
    wait: bool = False,
    accept: bool = False,
    workflow: Path | None = None,
    inputs: Mapping[str, str] | None = None,
    quiet: bool = False,
    store: str | None = None,
    as_json: bool = False,
) -> int:
    """Resume runs, or with None all that can simply go on, and play them; returns the exit code."""
    loaded = None if workflow is None else load_workflow(workflow)

    async def main(lifeline: Lifeline) -> int:
        several = runs is None or len(runs) > 1
        display = display_for(as_json=as_json, quiet=quiet, several=several, store=store)
        async with OrchestraPool([display]) as troupe:
            base = await troupe.house(settings_in_force(store or store_url(None)), create=False)
            archive = base.manager.archive
            names = _named(archive, runs)
            jobs: list[Job] = []
            damaged = False
            with display:
                for name in names:
                    if await _told_to_go_on(base, name, display):
                        continue
                    try:
                        house = await orchestra_for(troupe, archive, name, store)
                        await _expect(house, name, display)
                        jobs.append(_job(house, name, loaded, accept, wait, inputs or {}))
                    except DamageError as error:
                        if runs is not None:  # with --all the others are not to blame
                            raise
                        damaged = True
                        display.say(f"not resuming {name}: {with_store(str(error), store)}")
                played = await perform(troupe, jobs, display, lifeline, store)
                code = exit_code([played, DAMAGE if damaged else OK])
            if not names and not as_json:
                screen().line("No run was cut off or answered; nothing to resume.")
            conclude(jobs, troupe, display, store=store, outputs=base.engine.outputs, as_json=as_json)
            lifeline.done(code)
        return code

    return play(main)


def _named(archive: Archive, runs: Sequence[str] | None) -> list[RunId]:
    if runs is None:
        return [found.run for found in playable_runs(archive)]
    return list(dict.fromkeys(resolve_run(archive, each) for each in runs))


async def orchestra_for(troupe: OrchestraPool, archive: Archive, run: RunId, store: str | None) -> Orchestra:
    """The orchestra for a run: in the folder it was started in, with what its workflow file says now."""
    state = last_known(archive, run).state
    project = project_folder(state)
    file = project / (state.workflow.file or "")
    said = {}
    if file.is_file():
        try:
            said = dict(load_workflow(file).settings)
        except BadWorkflow:
            said = {}  # resuming says what is wrong with it
    said.pop("checkpoint.enabled", None)
    return await troupe.house(settings_in_force(store or store_url(None), said), project=project)


def project_folder(state: State) -> Path:
    """The folder a run works in: where it was started, or here when that is gone."""
    began = state.environment.working_dir
    return Path(began) if began and Path(began).is_dir() else Path()


async def _expect(house: Orchestra, run: RunId, display: Display) -> None:
    state = (await anyio.to_thread.run_sync(last_known, house.manager.archive, run)).state
    if state.workflow.definition is not None:
        display.expect((await house.stored_definition(state)).workflow)


def _job(
    house: Orchestra,
    run: RunId,
    loaded: LoadedWorkflow | None,
    accept: bool,
    wait: bool,
    inputs: Mapping[str, str],
) -> Job:
    async def play() -> Ending:
        return await house.resume(run, workflow=loaded, accept_changes=accept, wait=wait, inputs=inputs)

    return Job(play, str(run))


async def _told_to_go_on(house: Orchestra, run: RunId, display: Display) -> bool:
    """Whether another process plays the run and was told to go on; raises `RunOwned` when it does already."""
    found = house.manager.archive.run(run)
    if not found.owned:
        return False
    if found.status == "running":
        raise RunOwned(run=run, owner=found.owner)
    await house.order(run, Order(kind="resume"))
    display.say(f"{run} goes on, played by {found.owner}")
    return True
