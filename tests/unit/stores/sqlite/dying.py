"""Stores whose process died, and the files beside a database."""

import subprocess
import sys
from pathlib import Path


def beside(path: Path, suffix: str) -> Path:
    """A file that belongs to a database."""
    return path.with_name(path.name + suffix)


def crashed(path: Path, rows: int = 5) -> None:
    """A store whose process died: everything is in the log."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from orchestra.stores.sqlite import SqliteStore\n"
        "from orchestra.testing.samples import SampleRun\n"
        "store = SqliteStore(Path(sys.argv[1]), create=True)\n"
        "SampleRun(store, 'a').extend(int(sys.argv[2])); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path), str(rows)], check=True)
    assert beside(path, "-wal").stat().st_size
