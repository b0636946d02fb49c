"""`orchestra run`: start workflows and play them until they end or wait for somebody."""

import os
from collections.abc import Awaitable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import attrs
from cyclopts import Parameter

from orchestra.app.orchestra import Orchestra
from orchestra.app.resumable import incomplete_runs
from orchestra.app.workflow_files import load_workflow, model_mistake
from orchestra.cli.options import (
    AsJsonLines,
    Quiet,
    RecordFile,
    ReplayFile,
    StoreUrl,
    Wait,
    check_answer_files,
    read_inputs,
)
from orchestra.cli.play.jobs import Job, conclude, exit_code, perform
from orchestra.cli.play.lifeline import Lifeline, play
from orchestra.cli.play.orchestras import OrchestraPool, project_folder
from orchestra.cli.play.settings import PlaySettings, settings_in_force
from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.displays import Display, display_for
from orchestra.cli.render.screen import json_text, screen
from orchestra.cli.store import store_url, with_store
from orchestra.config.inputs import accept_inputs
from orchestra.config.load import LoadedWorkflow
from orchestra.errors import BadSetting, DamageError
from orchestra.history.lineage import last_known
from orchestra.ids import run_id as checked_id
from orchestra.ports.agent_kind import MODEL_VARIABLE

Files = Annotated[list[Path], Parameter(name="FILE", help="Workflow files; several are played side by side.")]


class _Start(NamedTuple):
    loaded: LoadedWorkflow
    settings: PlaySettings
    given: Mapping[str, str]
    run: str | None
    wait: bool
    break_at: tuple[str, ...]
    models: tuple[str, ...]


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
    model: Annotated[
        list[str] | None,
        Parameter(
            metavar="NAME",
            help="Language-model agents ask this one; repeated: if it does not answer, the next.",
        ),
    ] = None,
    record: RecordFile = None,
    replay: ReplayFile = None,
    dry_run: Annotated[
        bool,
        Parameter(help="Only walk through them, and say what they cost at most: nothing is spent or run."),
    ] = False,
    store: StoreUrl = None,
    json: AsJsonLines = False,
) -> int:
    """Start workflows and play them until they end, or cannot go on without somebody.

    Incomplete runs of the same workflow, whose process died or was stopped, are resumed first, unless answers
    of models are recorded or replayed. Ctrl-C stops in order: what is done is kept, and `orchestra resume`
    goes on. Exits with 0 when all completed, 1 when one failed, 3 when one waits for somebody, 130 when it
    was stopped.

    With --dry-run the model `test` answers for every language model, and made-up results stand for all other
    agents: no code of theirs, no tool and no server is run, and nothing is stored.
    """
    _check_options(files, run_id, record, replay, dry_run)
    given = read_inputs(input)
    models = tuple(model or ())
    if models:  # agents that inherit theirs are in order
        os.environ[MODEL_VARIABLE] = ",".join(models)
    starts = [_start(file, given, run_id, wait, tuple(break_at or ()), models, store) for file in files]
    if dry_run:
        return play(partial(_perform_dry_runs, starts, json))
    url = starts[0].settings.url
    named = store or (None if url == store_url(None) else url)  # in hints, where they would not find it

    def main(lifeline: Lifeline) -> Awaitable[int]:
        display = display_for(as_json=json, quiet=quiet, several=len(starts) > 1, store=named)
        return _run(
            starts,
            display,
            lifeline,
            named,
            OrchestraPool([display], record=record, replay=replay),
            as_json=json,
            resume=not (no_resume or record or replay),
        )

    return play(main)


def _check_options(
    files: list[Path], run_id: str | None, record: Path | None, replay: Path | None, dry_run: bool
) -> None:
    """Raise `BadSetting` for options that do not go together."""
    if run_id is not None and len(files) > 1:
        reason = "it names one run, and there are several files"
        raise BadSetting(setting="--run-id", value=run_id, reason=reason)
    if run_id is not None:
        checked_id(run_id)
    check_answer_files(record, replay)
    if dry_run and (record is not None or replay is not None):
        setting, file = ("--record", record) if record is not None else ("--replay", replay)
        raise BadSetting(setting=setting, value=file, reason="a dry run asks no model and records none")


def _start(
    file: Path,
    given: Mapping[str, str],
    run_id: str | None,
    wait: bool,
    break_at: tuple[str, ...],
    models: tuple[str, ...],
    store: str | None,
) -> _Start:
    """A workflow with everything about it checked that can be before it starts."""
    loaded = load_workflow(file, models)
    loaded = attrs.evolve(loaded, inputs=accept_inputs(loaded.workflow, given, base=Path()))
    known = [phase.id for phase in loaded.workflow.phases]
    for phase in break_at:
        if phase not in known:
            reason = f"the phases of {loaded.workflow.name} are {', '.join(known)}"
            raise BadSetting(setting="--break-at", value=phase, reason=reason)
    settings = settings_in_force(store, loaded.settings)
    if mistake := model_mistake(loaded, models):
        raise BadSetting(setting="--model", value=", ".join(models), reason=mistake)
    return _Start(loaded, settings, given, run_id, wait, break_at, models)


async def _perform_dry_runs(starts: list[_Start], as_json: bool, lifeline: Lifeline) -> int:
    from orchestra.app.dry_run import perform_dry_run
    from orchestra.cli.render.dry_run import dry_run_json, exit_code_of, print_dry_run

    codes = []
    for start in starts:
        found = await perform_dry_run(start.loaded, start.models)
        if as_json:
            own_stdout().write(json_text(dry_run_json(found)))
        else:
            print_dry_run(screen(own_stdout()), found)
        codes.append(exit_code_of(found))
    lifeline.leave(code := exit_code(codes))
    return code


async def _run(
    starts: list[_Start],
    display: Display,
    lifeline: Lifeline,
    store: str | None,
    orchestras: OrchestraPool,
    *,
    as_json: bool,
    resume: bool,
) -> int:
    async with orchestras as pool:
        jobs: list[Job] = []
        with display:
            for start in starts:
                orchestra = await pool.open(start.settings)
                display.expect(start.loaded.workflow)
                if resume and start.settings.recovery.auto:
                    known = {job.name for job in jobs}
                    jobs += await _resume_jobs(pool, orchestra, start, display, known, store)
                begin = partial(orchestra.run, start.loaded, run=start.run, wait=start.wait)
                choices = partial(begin, break_at=start.break_at, models=start.models)
                jobs.append(Job(choices, start.loaded.workflow.name))
            code = await perform(pool, jobs, display, lifeline, store)
        conclude(jobs, pool, display, store=store, outputs=starts[0].settings.engine.outputs, as_json=as_json)
        lifeline.leave(code)
    return code


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
