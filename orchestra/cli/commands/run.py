"""`orchestra run`: start workflows and play them until they end or wait for somebody."""

from collections.abc import Awaitable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import attrs
from cyclopts import Parameter

from orchestra.app.orchestra import Orchestra
from orchestra.app.resumable import incomplete_runs
from orchestra.app.workflow_files import load_workflow
from orchestra.cli.options import AsJsonLines, Quiet, StoreUrl, Wait
from orchestra.cli.play.conclusion import conclude
from orchestra.cli.play.inputs import read_inputs
from orchestra.cli.play.jobs import Job, perform
from orchestra.cli.play.lifeline import Lifeline, play
from orchestra.cli.play.orchestras import OrchestraPool, project_folder
from orchestra.cli.play.settings import PlaySettings, settings_in_force
from orchestra.cli.render.displays import Display, display_for
from orchestra.cli.store import store_url, with_store
from orchestra.config.inputs import accept_inputs
from orchestra.config.load import LoadedWorkflow
from orchestra.errors import BadSetting, DamageError
from orchestra.history.lineage import last_known
from orchestra.ids import run_id as checked_id

Files = Annotated[list[Path], Parameter(name="FILE", help="Workflow files; several are played side by side.")]


@attrs.frozen(kw_only=True)
class _Start:
    """A workflow that is to be run, and how."""

    loaded: LoadedWorkflow
    settings: PlaySettings
    given: Mapping[str, str]
    run: str | None
    wait: bool
    break_at: tuple[str, ...]


def run(
    files: Files,
    /,
    *,
    input: Annotated[
        list[str] | None, Parameter(name="--input", metavar="NAME=VALUE", help="An input; may be repeated.")
    ] = None,
    run_id: Annotated[str | None, Parameter(metavar="ID", help="The id of the new run.")] = None,
    wait: Wait = False,
    quiet: Quiet = False,
    no_resume: Annotated[bool, Parameter(help="Leave incomplete runs of the workflow alone.")] = False,
    break_at: Annotated[
        list[str] | None, Parameter(metavar="PHASE", help="Stop before this phase; may be repeated.")
    ] = None,
    store: StoreUrl = None,
    json: AsJsonLines = False,
) -> int:
    """Start workflows and play them until they end, or cannot go on without somebody.

    Incomplete runs of the same workflow, whose process died or was stopped, are resumed first. Ctrl-C stops
    in order: what is done is kept, and `orchestra resume` goes on. Exits with 0 when all completed, 1 when
    one failed, 3 when one waits for somebody, 130 when it was stopped.
    """
    if run_id is not None and len(files) > 1:
        raise BadSetting(
            setting="--run-id", value=run_id, reason="it names one run, and there are several files"
        )
    if run_id is not None:
        checked_id(run_id)
    given = read_inputs(input or [])
    starts = [_start(file, given, run_id, wait, tuple(break_at or ()), store) for file in files]
    named = store or _store_to_name(starts[0].settings)

    def main(lifeline: Lifeline) -> Awaitable[int]:
        display = display_for(as_json=json, quiet=quiet, several=len(starts) > 1, store=named)
        return _run(starts, display, lifeline, named, as_json=json, resume=not no_resume)

    return play(main)


def _start(
    file: Path,
    given: Mapping[str, str],
    run_id: str | None,
    wait: bool,
    break_at: tuple[str, ...],
    store: str | None,
) -> _Start:
    """A workflow with everything about it checked that can be before it starts."""
    loaded = load_workflow(file)
    loaded = attrs.evolve(loaded, inputs=accept_inputs(loaded.workflow, given, base=Path()))
    known = [phase.id for phase in loaded.workflow.phases]
    for phase in break_at:
        if phase not in known:
            reason = f"the phases of {loaded.workflow.name} are {', '.join(known)}"
            raise BadSetting(setting="--break-at", value=phase, reason=reason)
    return _Start(
        loaded=loaded,
        settings=settings_in_force(store, loaded.settings),
        given=given,
        run=run_id,
        wait=wait,
        break_at=break_at,
    )


async def _run(
    starts: list[_Start],
    display: Display,
    lifeline: Lifeline,
    store: str | None,
    *,
    as_json: bool,
    resume: bool,
) -> int:
    async with OrchestraPool([display]) as pool:
        jobs: list[Job] = []
        with display:
            for start in starts:
                orchestra = await pool.open(start.settings)
                display.expect(start.loaded.workflow)
                if resume and start.settings.auto:
                    known = {job.name for job in jobs}
                    jobs += await _resume_jobs(pool, orchestra, start, display, known, store)
                jobs.append(_start_job(orchestra, start))
            code = await perform(pool, jobs, display, lifeline, store)
        conclude(jobs, pool, display, store=store, outputs=starts[0].settings.engine.outputs, as_json=as_json)
        lifeline.leave(code)
    return code


def _store_to_name(settings: PlaySettings) -> str | None:
    """The store to name in hints: one that no other command would find by itself."""
    return None if settings.url == store_url(None) else settings.url


def _start_job(orchestra: Orchestra, start: _Start) -> Job:
    play = partial(orchestra.run, start.loaded, run=start.run, wait=start.wait, break_at=start.break_at)
    return Job(play, start.loaded.workflow.name)


async def _resume_jobs(
    pool: OrchestraPool,
    orchestra: Orchestra,
    start: _Start,
    display: Display,
    known: Collection[str],
    store: str | None,
) -> list[Job]:
    """Jobs for the runs of a workflow that were cut off, without those that are `known` already."""
    archive, jobs = orchestra.manager.archive, list[Job]()
    for found in incomplete_runs(archive.store, start.loaded.workflow.name):
        if found.run in known:
            continue
        try:
            project = project_folder(last_known(archive, found.run).state)
        except DamageError as error:
            display.say(f"not resuming {found.run}: {with_store(str(error), store)}")
            continue
        display.say(f"resuming {found.run}: it was {found.why}")
        other = await pool.open(start.settings, project=project)
        play = partial(other.resume, found.run, by_hand=False, wait=start.wait, inputs=start.given)
        jobs.append(Job(play, str(found.run), counts=False))
    return jobs
