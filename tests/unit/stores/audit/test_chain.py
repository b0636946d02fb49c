"""The chain of an audit notices every line that was changed, moved or taken away."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestra.ids import RunId
from orchestra.stores.audit.log import AuditLog, AuditNote

ROOT = Path(__file__).parents[4]


def _note(run: str = "a", **changes: Any) -> AuditNote:
    given: dict[str, Any] = {
        "at": "2026-11-15T14:30:22.118000Z",
        "user": "ann",
        "uid": 1000,
        "pid": 7,
        "what": "show",
        "act": "read",
        "run": RunId(run),
        "first": 0,
        "last": 3,
        "count": 4,
        "content": True,
        "objects": 1,
    }
    return AuditNote(**given | changes)


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    """An audit with five lines."""
    made = AuditLog(str(tmp_path / "store.db-audit.jsonl"))
    made.make()
    for run in "abcde":
        made.append([_note(run)])
    return made


def _edited(log: AuditLog, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file = Path(log.file)
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))


def test_a_chain_that_nobody_touched_is_whole(log: AuditLog) -> None:
    found = log.check()
    assert (found.lines, found.broken) == (5, None)
    assert [line.run for line in log.lines() if line] == list("abcde")
    assert [line.no for line in log.lines() if line] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines[:2], *lines[3:]], 3),
        (lambda lines: lines[:-1], 5),
        (lambda lines: lines[:-3], 3),
        (lambda lines: [], 1),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4),
        (lambda lines: [lines[0].replace(b"ann", b"bob"), *lines[1:]], 1),
        (lambda lines: [lines[0].replace(b'"no":1', b'"no": 1'), *lines[1:]], 1),
        (lambda lines: [*lines[:4], lines[4][:-10]], 5),
        (lambda lines: [*lines[:4], lines[4][:-10] + b"\n"], 5),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], 3),
        (lambda lines: [*lines[:2], b"nonsense\n", *lines[3:]], 3),
        (lambda lines: [*lines[:2], b"\xff" * 200_000, *lines[3:]], 3),
        (lambda lines: [*lines[:2], b'{"a":' * 50_000 + b"\n", *lines[3:]], 3),
    ],
    ids=[
        "the first removed", "one removed", "the last removed", "the last three removed", "all removed",
        "two swapped", "one doubled", "changed", "other spaces", "cut off", "shortened",
        "an empty line", "no line at all", "no text at all", "deep",
    ],
)  # fmt: skip
def test_the_first_broken_line_is_named(
    log: AuditLog, change: Callable[[list[bytes]], list[bytes]], broken: int
) -> None:
    _edited(log, change)
    assert log.check().broken == broken
    assert log.check().reason
    log.append([_note("f")])  # and that is not healed by what comes after
    assert log.check().broken == broken


def test_a_line_that_lacks_only_its_end_gets_it_back(log: AuditLog) -> None:
    _edited(log, lambda lines: [*lines[:4], lines[4][:-1]])
    assert log.check().broken == 5
    log.append([_note("f")])
    assert (log.check().lines, log.check().broken) == (6, None)


def test_a_line_whose_digest_was_made_to_fit_is_noticed_by_the_next(log: AuditLog) -> None:
    other = AuditLog(log.file + ".other.jsonl")
    other.make()
    other.append([_note("a", user="bob")])
    [forged] = Path(other.file).read_bytes().splitlines(keepends=True)
    _edited(log, lambda lines: [forged, *lines[1:]])
    found = log.check()
    assert (found.broken, found.lines) == (2, 1)


def test_a_log_that_is_gone_is_noticed(log: AuditLog) -> None:
    Path(log.file).unlink()
    assert log.is_there
    assert log.check().broken == 1
    log.append([_note("f")])
    assert log.check().broken == 1


@pytest.mark.parametrize("head", [None, b"", b"nonsense", b"000000000009 " + b"0" * 64 + b"\n"])
def test_a_head_that_is_gone_or_changed_is_noticed(log: AuditLog, head: bytes | None) -> None:
    if head is None:
        Path(log.head).unlink()
    else:
        Path(log.head).write_bytes(head)
    assert log.check().broken is not None
    log.append([_note("f")])
    assert log.check().broken == 6


def test_a_process_that_died_before_the_head_was_written_damaged_nothing(log: AuditLog) -> None:
    before = Path(log.head).read_bytes()
    log.append([_note("f"), _note("g")])
    Path(log.head).write_bytes(before)
    assert (log.check().lines, log.check().broken) == (7, None)
    log.append([_note("h")])
    assert (log.check().lines, log.check().broken) == (8, None)


def test_several_processes_append_to_one_chain(tmp_path: Path) -> None:
    file = tmp_path / "x-audit.jsonl"
    code = """
import sys
from tests.unit.stores.audit.test_chain import AuditLog, _note
log = AuditLog(sys.argv[1])
log.make()
for n in range(50):
    log.append([_note("a", first=n), _note("b", first=n)])
"""
    told = [sys.executable, "-c", code, str(file)]
    started = [subprocess.Popen(told, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}) for _ in range(3)]
    assert [each.wait(60) for each in started] == [0, 0, 0]
    found = AuditLog(str(file)).check()
    assert (found.lines, found.broken) == (300, None)
