"""The JSON files of snapshots in the outputs folder, when snapshots are removed."""

import sys
from collections.abc import Iterable
from pathlib import Path

from orchestra.cli.render.screen import screen
from orchestra.cli.store import open_for_reading, outputs_folder, store_url
from orchestra.errors import OrchestraError, StoreMissing
from orchestra.ids import RunId
from orchestra.interchange.json_files import (
    Recorded,
    kept_snapshots,
    recorded_snapshots,
    runs_with_files,
    tidy_folder,
)
from orchestra.ports.store import Store


def json_files(opened: Store, run: RunId | None) -> dict[RunId, Recorded]:
    """The snapshots, of one run or all, that may have JSON files here; before any of them go."""
    folder = Path(outputs_folder())
    runs = runs_with_files(folder) if run is None else [run]
    found = {each: recorded_snapshots(opened, each, folder) for each in runs}
    return {each: snapshots for each, snapshots in found.items() if snapshots}


def remove_json_files(
    opened: Store, given: str | None, before: dict[RunId, Recorded], runs: Iterable[RunId]
) -> None:
    """Remove the JSON files of what is gone, unless the project's own store still has it."""
    folder = Path(outputs_folder())
    for run in (each for each in runs if each in before):
        try:
            tidy_folder(run, folder, before[run], {**_own(given, run), **kept_snapshots(opened, run)})
        except (OSError, OrchestraError) as error:
            screen(sys.stderr).line(f"run {run}: JSON files of snapshots that are gone stay: {error}")


def _own(given: str | None, run: RunId) -> Recorded:
    """What the store that is used here by itself has of a run, where another one was given."""
    if store_url(given) == store_url(None):
        return {}
    try:
        with open_for_reading(None) as store:
            return kept_snapshots(store, run)
    except StoreMissing:
        return {}
