"""The folder that holds the JSON files of a run: where it is, and what goes from it when snapshots go."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from orchestra.checkpoint.archive import Archive
from orchestra.checkpoint.jsonform import LATEST
from orchestra.ids import RunId
from orchestra.ports.store import RowQuery

_NUMBERED: Final = re.compile(r"checkpoint_phase\d+_\w+_(\d+)\.json")


def json_folder(outputs: Path, run: RunId) -> Path:
    """Where the JSON files of a run are."""
    return outputs / run / "checkpoints"


def tidy_folder(archive: Archive, run: RunId, outputs: Path) -> int:
    """Remove the files of snapshots that are pruned, of a run that is gone all of them; how many went.

    Files that somebody else put there stay. Raises what removing a file raises, unless it is gone already.
    """
    folder = json_folder(outputs, run)
    found = {path: _seq(path) for path in folder.glob("*.json")} if folder.is_dir() else {}
    if not found:
        return 0
    rows = archive.store.rows(RowQuery(run=run, content=False))
    kept = {row.seq for row in rows if not row.pruned}
    going = [path for path, seq in found.items() if seq is not None and seq not in kept]
    if not kept:
        going += [path for path in found if path.name == LATEST]
    for path in going:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # something of somebody else's is in it
        folder.rmdir()
    return len(going)


def _seq(path: Path) -> int | None:
    named = _NUMBERED.fullmatch(path.name)
    return int(named[1]) if named is not None else None
