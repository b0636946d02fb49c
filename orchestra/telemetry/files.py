"""Files that lines are added to: what telemetry and the journal leave beside the outputs of a run.

Spans and metrics share a file: to make another costs as much as all that is written about a small run.
"""

import os
from pathlib import Path

from orchestra.ids import RunId
from orchestra.telemetry import names


class TelemetryFiles:
    """Appends lines to the telemetry of runs."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = str(outputs)

    def append(self, run: RunId, lines: str, *, new: bool) -> None:
        """Write lines about a run down; about a `new` one nothing is written yet."""
        folder = f"{self._outputs}/{run}/{names.FOLDER}"
        if new:
            _make(folder)
        append(f"{folder}/{names.FILE}", lines.encode("utf-8", "backslashreplace"))


def append(path: str, content: bytes) -> None:
    """Add to a file; it is made when it is not there, and so is its folder."""
    try:
        held = _open(path)
    except FileNotFoundError:  # it is new, or somebody removed it
        _make(os.path.dirname(path))  # noqa: PTH120 - paths are texts here, see `_make`
        held = _open(path)
    try:
        while content:
            content = content[os.write(held, content) :]
    finally:
        os.close(held)


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _make(folder: str) -> None:
    """A folder and those above it: mostly two are missing, and these are made without looking."""
    try:
        os.mkdir(folder.rpartition("/")[0])  # noqa: PTH102 - pathlib takes as long as what is written
        os.mkdir(folder)  # noqa: PTH102
    except OSError:
        Path(folder).mkdir(parents=True, exist_ok=True)
