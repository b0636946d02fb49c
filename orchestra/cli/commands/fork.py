"""`orchestra fork` and `replay`: begin a new run at a snapshot of another, with something changed."""

from pathlib import Path
from typing import Annotated, Any

import anyio
from cyclopts import Parameter

from orchestra.app.workflow_files import load_workflow
from orchestra.cli.options import AsJson, Quiet, Reason, Reference, StoreUrl, Wait, WorkflowFile, read_values
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.resume import resume_runs
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.store import archive, option
from orchestra.engine.names import visit_name
from orchestra.errors import BadSetting
from orchestra.history.references import resolve
from orchestra.ids import RunId, run_id
from orchestra.ports.store import Row

Values = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        metavar="PATH=VALUE",
        help="inputs.NAME, context.NAME or a place in a conversation, as YAML; may be repeated.",
    ),
]
NewId = Annotated[str | None, Parameter(name="--id", metavar="NEW", help="The id of the new run.")]


def fork(
    ref: Reference,
    /,
    *,
    set: Values = None,
    workflow: WorkflowFile = None,
    run: Annotated[bool, Parameter(name="--run", help="Play the new run at once.")] = False,
    id: NewId = None,
    wait: Wait = False,
    quiet: Quiet = False,
    reason: Reason = "",
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Begin a new run at a snapshot of another, with values or the workflow changed.

    What the changes leave valid is kept, the rest is done again. The other run is not touched.
    """
    if id is not None:
        run_id(id)
    values = read_values(set)
    row, done = _base(ref, store, inputs=any(path.startswith("inputs.") for path in values))
    new = anyio.run(_fork, row, id, values, workflow, reason, store)
    if done and not json and not quiet:
        stay = f"{', '.join(done)}: done with the inputs of before; fork {row.run}@0 to have all done again"
        screen().paragraph([("  kept       ", "dim"), (stay, "")], indent=13)
    if run:
        return resume_runs([new], wait=wait, quiet=quiet, store=store, as_json=json)
    out = screen()
    if json:
        print_json({"run": new, "from": f"{row.run}@{row.seq}", "set": sorted(values)})
    elif quiet:
        out.line(new)
    else:
        out.line((new, "bold"), f" begins at {row.run}@{row.seq}.")
        out.line(("  next       ", "dim"), f"orchestra resume {new}{option(store)}")
    return 0


def replay(
    ref: Annotated[str | None, Parameter(help="RUN, RUN@12, RUN@phase:NAME, a digest or a UUID.")] = None,
    /,
    *,
    checkpoint: Annotated[str | None, Parameter(show=False)] = None,
    id: NewId = None,
    wait: Wait = False,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Begin a new run at a snapshot of another and play it: the same as fork --run."""
    chosen = ref or checkpoint
    if chosen is None or (ref and checkpoint):
        raise BadSetting(setting="REF", value=ref, reason="name one snapshot")
    return fork(chosen, run=True, id=id, wait=wait, quiet=quiet, reason="replay", store=store, json=json)


def _base(ref: str, store: str | None, *, inputs: bool) -> tuple[Row, list[str]]:
    """The snapshot a fork begins at, and when inputs change the visits that are done there."""
    with archive(store) as opened:
        row = resolve(opened, ref)
        if not inputs:
            return row, []
        path = opened.snapshot(row).state.path
        done = [visit_name(each.phase, each.visit) for each in path if each.completed_at is not None]
        return row, list(dict.fromkeys(done))


async def _fork(
    row: Row, new: str | None, values: dict[str, Any], workflow: Path | None, reason: str, store: str | None
) -> RunId:
    loaded = None if workflow is None else load_workflow(workflow)
    async with OrchestraPool() as pool:
        archive = (await pool.open_existing(store)).manager.archive
        orchestra = await pool.open_for(archive, row.run, store)
        return await orchestra.fork(row.run, row.seq, new=new, values=values, workflow=loaded, reason=reason)
