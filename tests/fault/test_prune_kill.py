"""Processes that prune and are killed, and that write and are stopped: real signals, on a SQLite store."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def drive(folder: Path, mode: str, points: int) -> str:
    """Run the driver, which needs a process without threads to fork from."""
    command = [sys.executable, "-m", "tests.fault.prune_driver", str(folder), mode, str(points)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_killed_at_100_writes_while_another_records(tmp_path: Path) -> None:
    assert "killed at" in drive(tmp_path, "kill", 100)


def test_a_writer_that_is_stopped_while_all_is_pruned(tmp_path: Path) -> None:
    drive(tmp_path, "stop", 0)


@pytest.mark.slow
def test_killed_at_every_write_while_another_records(tmp_path: Path) -> None:
    drive(tmp_path, "kill", 0)
