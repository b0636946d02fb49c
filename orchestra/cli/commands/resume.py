"""`orchestra resume`: go on with runs where they were."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import (
    AsJsonLines,
    Quiet,
    RecordFile,
    ReplayFile,
    StoreUrl,
    Wait,
    WorkflowFile,
    check_answer_files,
    read_inputs,
)
from orchestra.cli.play.resume import resume_runs
from orchestra.errors import BadSetting


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
    accept_changes: Annotated[bool, Parameter(help="Go on with the workflow as it is now.")] = False,
    workflow: WorkflowFile = None,
    input: Annotated[
        list[str] | None,
        Parameter(name="--input", metavar="NAME=VALUE", help="A secret input again: those are not stored."),
    ] = None,
    record: RecordFile = None,
    replay: ReplayFile = None,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json: AsJsonLines = False,
) -> int:
    """Go on with runs where they were, until they end or cannot go on without somebody.

    A failed run tries again what failed; a run at a breakpoint goes past it. A run that another process plays
    is told to go on there. With --record the answers of models join those that are in the file.
    """
    if bool(runs) == all:
        raise BadSetting(setting="RUN", value=" ".join(runs or []), reason="name runs, or write --all")
    check_answer_files(record, replay)
    return resume_runs(
        runs,
        wait=wait,
        accept=accept_changes,
        workflow=workflow,
        inputs=read_inputs(input),
        record=record,
        replay=replay,
        quiet=quiet,
        store=store,
        as_json=json,
    )
