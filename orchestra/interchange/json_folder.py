"""The folder of a run's JSON files, and removing those of snapshots that are gone.

Several stores may share a folder, so a file is removed only when its number and digest match.
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from orchestra.errors import DamageError
from orchestra.ids import Digest, RunId
from orchestra.interchange.json_form import LATEST
from orchestra.ports.store import RowQuery, Store

Recorded: TypeAlias = dict[int, Digest]
"""Snapshots of one run, by sequence number."""

_NUMBERED: Final = re.compile(r"checkpoint_phase\d+_\w+_(\d+)\.json")


def json_folder(outputs: Path, run: RunId) -> Path:
    """Where the JSON files of a run are."""
    return outputs / run / "checkpoints"


def runs_with_files(outputs: Path) -> list[RunId]:
    """The runs that have a folder of JSON files."""
    return [RunId(folder.parent.name) for folder in outputs.glob("*/checkpoints")]


def recorded_snapshots(store: Store, run: RunId, outputs: Path) -> Recorded:
    """The snapshots of a run that may have JSON files; none if the run is damaged."""
    if not json_folder(outputs, run).is_dir():
        return {}
    with suppress(DamageError):
        return {row.seq: row.digest for row in store.rows(RowQuery(run=run, content=False))}
    return {}


def kept_snapshots(store: Store, run: RunId) -> Recorded:
    """The snapshots of a run that are not pruned."""
    return {row.seq: row.digest for row in store.rows(RowQuery(run=run, content=False)) if not row.pruned}


def tidy_folder(run: RunId, outputs: Path, before: Recorded, kept: Recorded) -> int:
    """Remove the files of snapshots that are kept no longer, of a run that is gone all; how many went.

    Files that somebody else put there stay. Raises what removing a file raises, unless it is gone already.
    """
    folder = json_folder(outputs, run)
    gone = {seq: digest for seq, digest in before.items() if kept.get(seq) != digest}
    if not gone or not folder.is_dir():
        return 0
    names = {path: gone[seq].hex() for path in folder.glob("*.json") if (seq := _seq(path)) in gone}
    going = [path for path, digest in names.items() if _digest(path) == digest]
    latest = folder / LATEST
    if not kept and _digest(latest) in {digest.hex() for digest in gone.values()}:
        going.append(latest)
    for path in going:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # something of somebody else's is in it
        folder.rmdir()
    return len(going)


def _seq(path: Path) -> int:
    """The number of the snapshot in a file's name; -1 where there is none."""
    named = _NUMBERED.fullmatch(path.name)
    return int(named[1]) if named is not None else -1


def _digest(path: Path) -> str | None:
    """The digest of the snapshot that a file holds, in hexadecimal; None when it cannot be told."""
    try:
        return str(json.loads(path.read_bytes())["snapshot"]["digest"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # it is no file of ours
        return None
