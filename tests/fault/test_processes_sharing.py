"""Two processes write and three read one store: nobody hears of a lock, and every row is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestra.ids import run_id
from orchestra.stores.registry import open_store
from tests.fault.support.work import check_whole

ROOT = Path(__file__).parents[2]
TURNS = 120
ROUNDS = 25


def _start(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.fault.support.sharing", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.mark.parametrize("made", [True, False], ids=["existing", "made by whoever comes first"])
def test_two_write_and_three_read(tmp_path: Path, made: bool) -> None:
    place = f"sqlite:{tmp_path / 'orchestra.db'}"
    if made:
        open_store(place, create=True).close()
    writers = [_start("write", place, name, TURNS) for name in ("one", "two")]
    readers = [_start("read", place, name, ROUNDS) for name in ("three", "four", "five")]
    for process in (*writers, *readers):
        said, _ = process.communicate()
        assert (process.returncode, said) == (0, "")
    with open_store(place) as store:
        heads = {name: store.run(run_id(name)) for name in ("one-0", "one-1", "two-0", "two-1")}
        assert [found and found.head for found in heads.values()] == [TURNS] * 4
        assert [found and found.owned for found in heads.values()] == [False] * 4
        check_whole(store)
