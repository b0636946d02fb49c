"""Parting from a run that was played: what could not be saved yet, and what retention says of its end."""

import logging
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from orchestra.app.observers import Observers
from orchestra.checkpoint.active import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.retention.plan import prune_run
from orchestra.engine.atlas import Ending
from orchestra.errors import OrchestraError
from orchestra.ids import Instant, RunId
from orchestra.interchange.json_folder import kept_snapshots, recorded_snapshots, tidy_folder
from orchestra.model.state import ENDED

_LOG: Final = logging.getLogger("orchestra.app.compose")


async def part(manager: CheckpointManager, active: ActiveRun) -> None:
    """Give a run up; snapshots that `on_save_error: continue` kept back are tried once more before."""
    with anyio.CancelScope(shield=True):
        if active.is_degraded:
            try:
                await manager.flush(active)
            except OrchestraError as error:
                lost = len(active.unsaved)
                _LOG.error("run %s: its last %d snapshots were not saved: %s", active.run, lost, error)
        await manager.release(active)


async def tidy(
    manager: CheckpointManager, observers: Observers, outputs: Path, ending: Ending, now: Instant
) -> None:
    """Prune a run that is over, or delete one that is completed, where that is wanted; its files too."""
    retention = manager.settings.retention
    over = ending.kind in ENDED
    if (over and retention.auto) or (ending.kind == "completed" and retention.delete_on_completion):
        await anyio.to_thread.run_sync(observers.write_files)  # what is pruned cannot be written any more
        await anyio.to_thread.run_sync(_prune, manager, ending.run, outputs, now)


def _prune(manager: CheckpointManager, run: RunId, outputs: Path, now: Instant) -> None:
    store = manager.archive.store
    before = recorded_snapshots(store, run, outputs)
    prune_run(manager.archive, run, manager.settings.retention, now=now)
    try:
        tidy_folder(run, outputs, before, kept_snapshots(store, run))
    except OSError as error:
        _LOG.warning("run %s: JSON files of snapshots that are gone stay: %s", run, error)
