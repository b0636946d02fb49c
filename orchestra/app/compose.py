"""The composition root: the only module that names concrete parts together."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.history.addressing import KEY_VARIABLE, address_key, addresser_for
from orchestra.ids import wall_clock
from orchestra.model.records import Environment
from orchestra.ports.sink import Sink
from orchestra.ports.store import DEFAULT_STORE, STORE_VARIABLE, Store
from orchestra.stores.registry import add_audit, open_store
from orchestra.version import VERSION


class SystemClock:
    """The clock of this machine."""

    now = staticmethod(wall_clock)
    monotonic = staticmethod(time.monotonic)
    """Seconds that never go back."""


def owner_name() -> str:
    """Who this process is, for people who wonder who holds a run."""
    return f"process {os.getpid()} on {platform.node() or 'this machine'}"


def environment_of(project: Path) -> Environment:
    """The facts about this process and the project that every run keeps; asks git, which takes a moment."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        asked = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=5, check=False)
        commit = asked.stdout.strip() if asked.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        commit = ""
    return Environment(
        version=VERSION,
        python=platform.python_version(),
        platform=sys.platform,
        working_dir=str(project),
        git_commit=commit or None,
    )


def open_manager(
    store: Store | str | None = None,
    *,
    settings: CheckpointSettings | None = None,
    sinks: Iterable[Sink] = (),
) -> CheckpointManager:
    """A manager over a store, opened or made when a URL is given. Close the manager, then its store.

    Without a store it is the one in the environment, else the default.
    """
    chosen = settings or CheckpointSettings()
    if not isinstance(store, Store):
        named = store or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
        store = open_store(named if chosen.enabled else "memory:", create=True, audited=chosen.audit)
    elif chosen.audit:
        store = add_audit(store)
    addresser = addresser_for(store, address_key(os.environ.get(KEY_VARIABLE)), create=True)
    return CheckpointManager(
        store, clock=SystemClock(), owner=owner_name(), settings=chosen, sinks=sinks, addresser=addresser
    )
