"""`orchestra import`: an exported file as a run."""

import os
import platform
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.render.text import count
from orchestra.cli.store import archive_over, environment_framer, open_for_writing, option
from orchestra.errors import StoreMissing
from orchestra.interchange.export_store import ExportStore
from orchestra.interchange.transfer import import_run


def import_(
    file: Annotated[str, Parameter(help="A file that `orchestra export` wrote.")],
    /,
    *,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Read an exported run into a store, which is made if there is none.

    Everything in the file is proved before anything of it can be seen. A run that is there already is left
    as it is.
    """
    try:
        target = open_for_writing(store)
    except StoreMissing:
        ExportStore(Path(file), environment_framer()).close()  # only for a file that can be read one is made
        target = open_for_writing(store, create=True)
    with target as opened:
        framer = archive_over(opened, create=True).framer
        owner = f"import by process {os.getpid()} on {platform.node() or 'this machine'}"
        done = import_run(opened, file, framer=framer, owner=owner)
        place = opened.place
    if json:
        added = {"snapshots_added": done.rows, "objects_added": done.objects, "was_there": done.was_there}
        print_json({"run": done.run, "store": place, "snapshots": done.head + 1, **added})
        return
    out = screen()
    if done.was_there:
        out.line((done.run, "bold"), f" is in {place} already; nothing was changed.")
    else:
        out.line((done.run, "bold"), f"  {count(done.rows, 'snapshot')} added to {place}")
    out.hints((f"orchestra snapshots {done.run}{option(store)}", "its moments"))
