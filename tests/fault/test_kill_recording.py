"""A recording process dies at every write and sync it makes, and whoever takes the work up misses nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fault.support.work import TURNS

ROOT = Path(__file__).parents[2]


def _start(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.fault.support.killing", *map(str, arguments)]
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
    bad = [case for case in cases if case["complaint"] or not case["finished"]]
    assert not bad, "\n".join(f"{case['case']}: {case['complaint']}" for case in bad[:3])


def test_dying_at_every_write(tmp_path: Path) -> None:
    """Two runs of 25 turns side by side: nothing acknowledged is lost, both end as if nothing had been."""
    cases = _cases(*[_start("once", tmp_path / str(first), first, 2) for first in range(2)])
    _check(cases)
    assert sum(case["killed"][0] for case in cases) >= 300
    assert max(case["acknowledged"] for case in cases) == 2 * (TURNS + 1)


def test_dying_again_while_taking_up_the_work(tmp_path: Path) -> None:
    """A second death at every write of the recovery, and a third in the recovery from that."""
    pairs = [(130, 330), (280, 33)]  # early, late, in the middle, and while the store is being made
    for pair in pairs:
        cases = _cases(*[_start("again", tmp_path / str(point), point, 24) for point in pair])
        _check(cases)
        assert sum(all(case["killed"]) for case in cases) >= 40
