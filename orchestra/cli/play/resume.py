"""Going on with runs: what resume, fork, rollback and orders share."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from orchestra.app.orchestra import Orchestra
from orchestra.app.resumable import playable_runs
from orchestra.app.workflow_files import load_workflow
from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.play.conclusion import conclude
from orchestra.cli.play.jobs import Job, exit_code, perform
from orchestra.cli.play.lifeline import Lifeline, play
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.render.displays import Display, display_for
from orchestra.cli.render.screen import screen
from orchestra.cli.store import with_store
from orchestra.engine.orders import Order
from orchestra.errors import DamageError, RunOwned
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_known
from orchestra.history.references import resolve_run
from orchestra.ids import RunId


def resume_runs(
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
    how: dict[str, Any] = {"workflow": loaded, "accept_changes": accept, "wait": wait, "inputs": inputs}

    async def main(lifeline: Lifeline) -> int:
        several = runs is None or len(runs) > 1
        display = display_for(as_json=as_json, quiet=quiet, several=several, store=store)
        async with OrchestraPool([display]) as pool:
            base = await pool.open_existing(store)
            archive = base.manager.archive
            names = _resolve_runs(archive, runs)
            jobs: list[Job] = []
            damaged = False
            with display:
                for name in names:
                    if await _tell_to_go_on(base, name, display):
                        continue
                    try:
                        orchestra = await pool.open_for(archive, name, store)
                        await _expect(orchestra, name, display)
                        jobs.append(Job(partial(orchestra.resume, name, **how), str(name)))
                    except DamageError as error:
                        if runs is not None:  # with --all the others are not to blame
                            raise
                        damaged = True
                        display.say(f"not resuming {name}: {with_store(str(error), store)}")
                played = await perform(pool, jobs, display, lifeline, store)
                code = exit_code([played, DAMAGE if damaged else OK])
            if not names and not as_json:
                screen().line("No run was cut off or answered; nothing to resume.")
            conclude(jobs, pool, display, store=store, outputs=base.engine.outputs, as_json=as_json)
            lifeline.leave(code)
        return code

    return play(main)


def _resolve_runs(archive: Archive, runs: Sequence[str] | None) -> list[RunId]:
    if runs is None:
        return [found.run for found in playable_runs(archive)]
    return list(dict.fromkeys(resolve_run(archive, each) for each in runs))


async def _expect(orchestra: Orchestra, run: RunId, display: Display) -> None:
    state = (await anyio.to_thread.run_sync(last_known, orchestra.manager.archive, run)).state
    if state.workflow.definition is not None:
        display.expect((await orchestra.stored_definition(state)).workflow)


async def _tell_to_go_on(orchestra: Orchestra, run: RunId, display: Display) -> bool:
    """Whether another process plays the run and was told to go on; raises `RunOwned` when it does already."""
    found = orchestra.manager.archive.run(run)
    if not found.owned:
        return False
    if found.status == "running":
        raise RunOwned(run=run, owner=found.owner)
    await orchestra.order(run, Order(kind="resume"))
    display.say(f"{run} goes on, played by {found.owner}")
    return True
