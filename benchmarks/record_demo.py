"""`python -m benchmarks.record_demo`: records runs of a believable code review, to have something to look at.

There is no engine behind it: the plays in `benchmarks.demo` hand their events to the CheckpointManager as an
engine would. The same seed gives the same runs, except for times, and ids and digests with them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
import attrs

from benchmarks.demo import review, troubles
from benchmarks.demo.stage import PlayClock, Stage
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.cli.store import store_url
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store

OWNER: Final = "demo"
RUN_SECONDS: Final = 15 * 60
PLAYS: Final[tuple[tuple[str, Callable[[Stage], Awaitable[RunId]]], ...]] = (
    ("a review that was evaluated twice and completed", review.play),
    ("a review that failed, was rolled back and completed", troubles.rolled_back),
    ("a review that waits for a person's answer", troubles.waiting),
)


@attrs.frozen(kw_only=True)
class Recorded:
    """One run that was recorded."""

    run: RunId
    about: str


async def record(store: Store, *, runs: int, seed: int, start: Instant) -> list[Recorded]:
    """Play `runs` runs and a fork of the first into a store."""
    clock = PlayClock(start)
    recorded: list[Recorded] = []
    async with CheckpointManager(store, clock=clock, owner=OWNER) as manager:
        for number in range(runs):
            about, play = PLAYS[number % len(PLAYS)]
            stage = Stage(manager, store, clock, seed * 1000 + number)
            recorded.append(Recorded(run=await play(stage), about=about))
            clock.forward(60)
        if recorded:
            stage = Stage(manager, store, clock, seed * 1000 + 999)
            fork = await troubles.forked(stage, recorded[0].run)
            recorded.append(
                Recorded(run=fork, about=f"a fork of {recorded[0].run}, without the second round")
            )
    return recorded


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, and say what to try next."""
    options = _parser().parse_args(arguments)
    url = store_url(options.store)
    start = Instant(time.time_ns() // 1000 - (options.runs + 1) * RUN_SECONDS * 1_000_000)
    with open_store(url, create=True) as store:
        recorded = anyio.run(lambda: record(store, runs=options.runs, seed=options.seed, start=start))
        print("\n".join(_told(store, recorded)))
    print("\n".join(_next(recorded, url, given=options.store is not None)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_demo", description=__doc__)
    parser.add_argument("--store", metavar="URL", help="where to record (default: the usual store)")
    parser.add_argument("--runs", type=int, default=3, help="how many runs, beside a fork of the first")
    parser.add_argument("--seed", type=int, default=7, help="another seed gives other figures")
    return parser


def _told(store: Store, recorded: Sequence[Recorded]) -> list[str]:
    lines = [f"Recorded in {store.place}:", ""]
    for each in recorded:
        row = store.run(each.run)
        assert row is not None, "BUG: a recorded run is in the store"
        lines.append(f"  {each.run}  {row.status:<10} {row.head + 1:>3} snapshots  {each.about}")
    return lines


def _next(recorded: Sequence[Recorded], url: str, *, given: bool) -> list[str]:
    if not recorded:
        return []
    run, fork = recorded[0].run, recorded[-1].run
    where = f" --store {url}" if given and not os.environ.get("ORCHESTRA_STORE") else ""
    commands = (
        "runs",
        f"snapshots {run}",
        f"show {run}@phase:evaluation",
        f"diff {run}@phase:evaluation {run}",
        f"diff {run} {fork}",
        f"blame {run} confidence.overall",
        f"verify {run}",
    )
    return ["", "Look at them:", "", *(f"  orchestra {command}{where}" for command in commands)]


if __name__ == "__main__":
    sys.exit(main())
