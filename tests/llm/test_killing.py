"""A process dies in the middle of a conversation: nothing that was finished is paid or done again.

CHECKLIST 002.5 to 002.9: what was said before the death is there, and the run ends as if nothing had been.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _start(
    dialect: str, folder: Path, first: int, step: int, scene: str = "plain"
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.llm.killing", scene, dialect, str(folder), str(first), str(step)]
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
    bad = [case for case in cases if case["complaint"]]
    assert not bad, "\n".join(f"{case['case']}: {case['complaint']}" for case in bad[:3])
    return [case for case in cases if case["deaths"]]


def test_dying_anywhere_in_a_conversation(tmp_path: Path) -> None:
    """At least fifty places: at commits, before and after them, and between pieces of streamed text."""
    died = _cases(*[_start("chat", tmp_path / str(first), first, 2) for first in range(2)])
    assert len(died) >= 50


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_dying_in_a_conversation_with_other_providers(tmp_path: Path, dialect: str) -> None:
    assert len(_cases(_start(dialect, tmp_path, 3, 9))) >= 5


@pytest.mark.parametrize("scene", ["compacted", "overflow"])
def test_dying_while_a_conversation_is_compacted(tmp_path: Path, scene: str) -> None:
    """Before the summary, while it streams and after it; no answer is asked for twice."""
    died = _cases(*[_start("chat", tmp_path / str(first), first, 2, scene) for first in range(2)])
    assert len(died) >= 20
    assert {len(case["books"]["summaries"]) for case in died} == {1}
    assert {case["books"]["compacted"] for case in died} == {1}, "it was decided once"
