"""Kills a recording process at its n-th write or sync, takes the work up in another, and says what it found.

    python -m tests.fault.support.killing once FOLDER FIRST STEP
    python -m tests.fault.support.killing again FOLDER POINT COUNT

`once` goes through the operations FIRST, FIRST+STEP, … until the work gets through unharmed. `again` kills at
POINT, then kills whoever takes the work up at each of its first COUNT operations, and its successor too. Each
line of output is one case as JSON. Children are forked before any store is open, as starting Python costs
more than the work.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import attrs

from orchestra.ids import Digest, RunId
from orchestra.ports.store import Store
from orchestra.stores.sqlite import SqliteStore
from tests.fault.support.disk import Disk, Strike, kill_at
from tests.fault.support.work import Digests, check, undisturbed, work

KILLED = -signal.SIGKILL


@attrs.define
class Outcome:
    """How a child ended, what it acknowledged before, and what it had to say."""

    status: int
    acknowledged: Digests
    complaint: str


class Child:
    """The other end of the pipe: everything is written at once, so that death takes nothing back."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def acknowledge(self, run: RunId, seq: int, digest: Digest) -> None:
        os.write(self._pipe, f"{run} {seq} {digest.hex()}\n".encode())

    def complain(self) -> None:
        os.write(self._pipe, f"! {json.dumps(traceback.format_exc())}\n".encode())


def in_child(do: Callable[[Child], None]) -> Outcome:
    """Do something in a forked process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os._exit(_lived(do, Child(writing)))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(pid, 0)
    return _outcome(os.waitstatus_to_exitcode(status), lines)


def _lived(do: Callable[[Child], None], child: Child) -> int:
    try:
        do(child)
    except BaseException:
        child.complain()
        return 1
    return 0


def _outcome(status: int, lines: list[str]) -> Outcome:
    complaints = [json.loads(line[2:]) for line in lines if line.startswith("!")]
    acknowledged: Digests = {}
    for run, seq, digest in (line.split() for line in lines if not line.startswith("!")):
        acknowledged[RunId(run), int(seq)] = Digest(bytes.fromhex(digest))
    return Outcome(status, acknowledged, "".join(complaints))


def opened(folder: Path, disk: Disk | None) -> Store:
    """The store in a folder, made when it is not there yet."""
    return SqliteStore(folder / "orchestra.db", create=True, vfs=disk.name if disk else None)


def record(folder: Path, strike: Strike) -> Outcome:
    """Work until the end or until struck."""

    def do(child: Child) -> None:
        disk = Disk("struck", strike)
        disk.watch_os()
        with opened(folder, disk) as store:
            anyio.run(work, store, child.acknowledge)

    return in_child(do)


def check_and_finish(folder: Path, acknowledged: Digests) -> Outcome:
    """Look at what is there, then work until the end."""

    def do(child: Child) -> None:
        with opened(folder, None) as store:
            check(store, acknowledged)
            anyio.run(work, store, child.acknowledge)
            check(store, undisturbed())

    return in_child(do)


def case(name: str, before: list[Outcome], folder: Path) -> dict[str, Any]:
    """Check and finish after deaths; what came of it, as data."""
    acknowledged: Digests = {}
    for outcome in before:
        acknowledged |= outcome.acknowledged
    last = check_and_finish(folder, acknowledged)
    complaints = [each.complaint for each in (*before, last) if each.complaint]
    return {
        "case": name,
        "killed": [each.status == KILLED for each in before],
        "acknowledged": len(acknowledged),
        "finished": last.status == 0,
        "complaint": "\n".join(complaints),
    }


def once(folder: Path, first: int, step: int) -> Iterator[dict[str, Any]]:
    """Die at every operation, in turn before it and in the middle of it."""
    point = first
    while True:
        place = folder / str(point)
        outcome = record(place, kill_at(point, torn=point // step % 2 == 1))
        yield case(f"at {point}", [outcome], place)
        shutil.rmtree(place)
        if outcome.status != KILLED:
            return
        point += step


def again(folder: Path, point: int, count: int) -> Iterator[dict[str, Any]]:
    """Die at `point`, then at every operation of the recovery, then once more in the next."""
    first = folder / "first"
    death = record(first, kill_at(point, torn=point % 2 == 1))
    for second in range(count):
        place = folder / f"second-{second}"
        shutil.copytree(first, place)
        relapse = record(place, kill_at(second, torn=second % 4 == 3))
        third = record(place, kill_at(second // 2))
        yield case(f"at {point}, {second}, {second // 2}", [death, relapse, third], place)
        shutil.rmtree(place)
        if relapse.status != KILLED:
            return


def main() -> None:
    """Run the cases that the command line asks for."""
    mode, folder, one, two = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    undisturbed()
    for found in {"once": once, "again": again}[mode](folder, one, two):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
