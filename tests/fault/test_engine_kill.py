"""A playing process dies at every commit it makes; whoever resumes the run ends it as if nothing had been.

FAULTS 1, 2 and 3, CHECKLIST 000.2, 000.3, 001.25, 001.35.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fault.support.engine_work import ASSIGNMENTS, starts

ROOT = Path(__file__).parents[2]


def _start(*arguments: object, driver: str = "engine_killing") -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", f"tests.fault.support.{driver}", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _cases(*processes: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    cases = []
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        cases += [json.loads(line) for line in out.splitlines()]
    return cases


def _check(cases: list[dict[str, Any]]) -> None:
    bad = [case for case in cases if case["complaint"]]
    assert not bad, "\n".join(f"{case['case']}: {case['complaint']}" for case in bad[:3])


def test_dying_at_every_commit(tmp_path: Path) -> None:
    """No result that was acknowledged is made again, and an assignment begins once more per death at most."""
    cases = _cases(*[_start("once", tmp_path / str(first), first, 3) for first in range(3)])
    _check(cases)
    assert len(starts(tmp_path / "0" / "undisturbed")) == ASSIGNMENTS
    assert sum(case["deaths"] for case in cases) >= 50


def test_dying_again_while_taking_the_run_up(tmp_path: Path) -> None:
    """A second death in the recovery, and a third in the recovery from that."""
    cases = _cases(*[_start("again", tmp_path / str(first), first, 16) for first in (3, 9)])
    _check(cases)
    assert sum(case["deaths"] == 3 for case in cases) >= 9


@pytest.mark.slow
def test_dying_again_at_every_commit(tmp_path: Path) -> None:
    """As above, from every commit of the run."""
    cases = _cases(*[_start("again", tmp_path / str(first), first, 3) for first in range(3)])
    _check(cases)
    assert sum(case["deaths"] == 3 for case in cases) >= 60


def _returning(tmp_path: Path, seeds: range, count: int) -> None:
    """Die after a return; what was lost is done again under the same effect key, and the run completes."""
    places = [(tmp_path / str(seed), seed, count) for seed in seeds]
    cases = _cases(*[_start(*place, driver="returning") for place in places])
    _check(cases)
    assert len(cases) == len(seeds) * count
    at_the_commit = [case for case in cases if "seconds=None" in case["case"]]
    assert all(case["died"] and case["lost"] for case in at_the_commit), "that commit is never acknowledged"


def test_dying_between_a_return_and_its_snapshot(tmp_path: Path) -> None:
    """FAULTS 3, a few times."""
    _returning(tmp_path, range(2), 20)


@pytest.mark.slow
def test_dying_between_a_return_and_its_snapshot_a_thousand_times(tmp_path: Path) -> None:
    """FAULTS 3."""
    _returning(tmp_path, range(100, 104), 250)
