"""`orchestra delete`: delete a run with all its snapshots."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.play.json_files import json_files, remove_json_files
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.render.text import count
from orchestra.cli.store import archive_over, open_for_writing, option
from orchestra.errors import UsageError
from orchestra.history.references import resolve_run


class RemovalNotConfirmed(UsageError):
    """Something that cannot be undone was asked for without saying so twice."""

    template = "This deletes run {run!r} with {snapshots}, and nothing brings it back. Repeat it {how}."


def delete(
    run: Annotated[str, Parameter(help="The whole id of a run.")],
    /,
    *,
    yes: Annotated[bool, Parameter(help="Really delete it.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Delete a run with all its snapshots, pins and notes. Its forks stay whole."""
    with open_for_writing(store) as opened:
        reader = archive_over(opened)
        found = reader.run(resolve_run(reader, run))
        snapshots = count(found.head + 1, "snapshot")
        if not yes or found.run != run:
            how = "with --yes" if found.run == run else "with --yes and the whole id"
            raise RemovalNotConfirmed(run=found.run, snapshots=snapshots, how=how)
        before = json_files(opened, found.run)
        opened.delete(found.run)
        remove_json_files(opened, store, before, [found.run])
    if json:
        print_json({"run": found.run, "snapshots": found.head + 1, "deleted": True})
        return
    out = screen()
    out.line("Deleted ", (found.run, "bold"), f" with {snapshots}.")
    out.hints((f"orchestra prune{option(store)}", "gives back the space it took"))
