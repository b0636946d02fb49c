"""Kills a playing process just before and just after its n-th commit, resumes in another, says what it found.

    python -m tests.fault.support.engine_killing once FOLDER FIRST STEP
    python -m tests.fault.support.engine_killing again FOLDER FIRST STEP

`once` goes through the commits FIRST, FIRST+STEP, … of a whole run; `again` kills the process that resumes as
well, at each of its first commits. Each line of output is one case as JSON.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from orchestra.ids import Digest
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.faulty import FaultPlan, FaultyStore, Kill, When
from tests.fault.support.engine_work import RUN, digest_of, play, starts
from tests.fault.support.killing import KILLED, Child, Outcome, in_child
from tests.fault.support.work import manager_of

RELAPSES = 3
_MOMENTS: tuple[When, ...] = ("before", "after")


def played(folder: Path, kill: Kill | None) -> Outcome:
    """Begin or go on with the run until its end or its process's."""
    folder.mkdir(parents=True, exist_ok=True)

    def do(child: Child) -> None:
        plan = FaultPlan([kill] if kill is not None else [])
        with SqliteStore(folder / "orchestra.db", create=True) as inner:
            ending = anyio.run(play, FaultyStore(inner, plan), folder)
            child.acknowledge(RUN, plan.calls["commit"], digest_of(ending))

    return in_child(do)


def acknowledged(folder: Path) -> set[str]:
    """The assignments whose results are in the store."""
    found: list[str] = []

    def do(child: Child) -> None:
        with SqliteStore(folder / "orchestra.db", create=True) as store:
            if store.run(RUN) is None:
                return
            archive = manager_of(store).archive
            state = archive.snapshot(archive.newest(RUN)).state
            done = [name for name, task in state.tasks.items() if task.status == "completed"]
            (folder / "acknowledged").write_text("\n".join(done))

    outcome = in_child(do)
    assert outcome.status == 0, outcome.complaint
    noted = folder / "acknowledged"
    if noted.exists():
        found = noted.read_text().splitlines()
        noted.unlink()
    return set(found)


def case(folder: Path, kills: list[Kill], wanted: Digest) -> dict[str, Any]:
    """Die as planned, go on, and compare; what came of it, as data."""
    deaths, complaints, last = 0, list[str](), None
    done: set[str] = set()
    before: Counter[str] = Counter()
    for kill in kills:
        last = played(folder, kill)
        deaths += last.status == KILLED
        complaints += _repeated(before, starts(folder), done)
        done, before = acknowledged(folder), starts(folder)
    if last is None or last.status == KILLED:
        last = played(folder, None)
    complaints += _repeated(before, starts(folder), done)
    complaints += [f"{name} began {n} times" for name, n in starts(folder).items() if n > 1 + deaths]
    if list(last.acknowledged.values()) != [wanted]:
        complaints.append(f"it ended otherwise: {last.complaint}")
    return {"case": str(kills), "deaths": deaths, "complaint": "; ".join(complaints)}


def _repeated(before: Counter[str], after: Counter[str], done: set[str]) -> list[str]:
    return [f"{name} was done and began again" for name in after - before if name in done]


def undisturbed(folder: Path) -> tuple[Digest, int]:
    """The outcome when nothing goes wrong, and how many commits that takes."""
    outcome = played(folder, None)
    assert outcome.status == 0, outcome.complaint
    ((_, commits), digest) = next(iter(outcome.acknowledged.items()))
    return digest, commits


def _kill(nth: int, when: When) -> Kill:
    return Kill(methods={"commit"}, nth=nth, when=when)


def once(folder: Path, first: int, step: int) -> Iterator[dict[str, Any]]:
    """Die at every commit, before it and after it."""
    wanted, commits = undisturbed(folder / "undisturbed")
    for nth in range(first, commits, step):
        for when in _MOMENTS:
            place = folder / f"{nth}-{when}"
            yield case(place, [_kill(nth, when)], wanted)
            shutil.rmtree(place)


def again(folder: Path, first: int, step: int) -> Iterator[dict[str, Any]]:
    """Die, and die again at each of the first commits of the recovery, and in the next one."""
    wanted, commits = undisturbed(folder / "undisturbed")
    for nth in range(first, commits, step):
        for second in range(RELAPSES):
            place = folder / f"{nth}-{second}"
            when: When = "before" if second % 2 else "after"
            yield case(place, [_kill(nth, when), _kill(second, when), _kill(second // 2, "before")], wanted)
            shutil.rmtree(place)


def main() -> None:
    """Run the cases that the command line asks for."""
    mode, folder, first, step = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    for found in {"once": once, "again": again}[mode](folder, first, step):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
