"""Jobs in processes of their own: each contestant gets an empty folder and a fresh interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.bare import bare_commit
from benchmarks.figures import Figures, from_json

CHECKOUT: Final = Path(__file__).parents[1]


def usual_place() -> Path:
    """The temporary folder, unless it is on another filesystem than the checkout (it may not be a disk)."""
    usual = Path(tempfile.gettempdir())
    return usual if usual.stat().st_dev == CHECKOUT.stat().st_dev else CHECKOUT / "outputs"


def measured(
    name: str,
    n: int,
    place: Path,
    job_of: Callable[[str, str], Any],
    module: str,
    timeout: float,
    *,
    kept: bool = False,
) -> Figures:
    """What a worker found. `job_of` takes the store's folder and the result's file.

    Its files are removed, unless they are to be `kept` for whoever made the place to remove: a filesystem may
    not use what was removed just now again for half a minute (ext4 does not), and where many files are made
    whoever came next would pay for looking further.
    """
    scratch = Path(tempfile.mkdtemp(prefix="orchestra-bench-", dir=place))
    try:
        folder, result = scratch / "store", scratch / "figures.json"
        folder.mkdir()
        disk = bare_commit(scratch / "bare.db")
        problem = _work(module, job_of(str(folder), str(result)), timeout)
        if problem:
            figures = Figures(name=name, n=n, missing=problem)
        else:
            figures = from_json(json.loads(result.read_text()))
        figures.metrics.update(disk=disk, machine_load=os.getloadavg()[0])
        return figures
    finally:
        if not kept:
            shutil.rmtree(scratch)


def _work(module: str, job: Any, timeout: float) -> str | None:
    """Run a worker; None, or what went wrong."""
    path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(attrs.asdict(job)),
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {timeout:.0f} s"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip(" |+-")]
    return lines[-1].strip(" |") if lines else f"it ended with code {done.returncode}"
