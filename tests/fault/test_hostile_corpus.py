"""Bytes that somebody hostile put into a store: every one is refused as damage, and nothing else happens."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cbor2
import pytest

from orchestra.codec.cbor import LIVE_TAGS
from tests.fault.support.hostile import MEGABYTES

ROOT = Path(__file__).parents[2]
MINUTES = 4


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Any]]:
    """How every case went; opened in processes of their own, so that nothing they do reaches this one."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fault.support.hostile"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_case_is_refused(outcomes: list[dict[str, Any]]) -> None:
    """By a `DamageError` with a printable sentence: nothing was imported, nothing crashed, nothing hung."""
    assert len(outcomes) >= 500
    odd = [f"{case['case']}: {case['outcome']}" for case in outcomes if case["outcome"] != "refused"]
    assert not odd, "\n".join(odd)


def test_no_case_takes_much_memory(outcomes: list[dict[str, Any]]) -> None:
    greedy = [f"{case['case']}: {case['megabytes']} MB" for case in outcomes if case["megabytes"] > MEGABYTES]
    assert not greedy, "\n".join(greedy)


def test_every_tag_that_the_library_brings_to_life_is_known() -> None:
    """A newer library may bring more of them."""
    alive = []
    for tag in (*range(70_000), *(1 << bits for bits in range(17, 64))):
        head = cbor2.dumps(cbor2.CBORTag(tag, 0))[:-1]
        for content in (0, "2026-11-15", b"\x01\x02\x03\x04", [1, 2], {b"\x0a\0\0\0": 8}):
            try:
                found = cbor2.loads(head + cbor2.dumps(content))
            except Exception:
                alive.append(tag)
                break
            if type(found) is not cbor2.CBORTag:
                alive.append(tag)
                break
    ours = {2, 3}
    assert set(alive) - ours == set(LIVE_TAGS) - ours
