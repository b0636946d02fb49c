"""One engine at one load, or one measurement of ours alone, in a process of its own.

`python -m benchmarks.engine_worker` reads a job as a line of JSON from standard input, does it in an empty
folder and writes the figures to the file that the job names. An engine plays when it is its turn: it answers
with a line when it is ready to, plays at every further line that it is given, answers when that is over, and
ends with its input. Whatever a library prints stays out of all this.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TextIO

import attrs

from benchmarks.children import READY
from benchmarks.figures import Figures, calm_heap, peak_bytes, percentiles
from benchmarks.flows import FLOWS, Flow, Load, Played, Turns, flow_named, version_of
from benchmarks.peers.base import folder_bytes, quiet


@attrs.frozen(kw_only=True)
class Job:
    """What a worker is to do: play runs, or measure `size` of something of ours."""

    name: str
    folder: str
    result: str
    at_once: int = 0
    seconds: float = 0.0
    least: int = 0
    size: float = 0.0


class Told:
    """Turns as somebody tells them, line by line."""

    def __init__(self, told: TextIO, answers: TextIO) -> None:
        self._told, self._answers = told, answers

    def wait(self) -> bool:
        """Say that it can go on, and wait until it is told to; False when nobody will."""
        print(READY, file=self._answers, flush=True)
        return bool(self._told.readline())


def work(job: Job, turns: Turns) -> Figures:
    """Do the job of that name."""
    folder = Path(job.folder)
    if any(flow.name == job.name for flow in FLOWS):
        load = Load(at_once=job.at_once, seconds=job.seconds, least=job.least)
        return measure(flow_named(job.name), folder, load, turns)
    from benchmarks.engine_ours import OURS_ALONE  # not above: a peer's memory is not to hold our package

    return OURS_ALONE[job.name](folder, job.size)


def measure(flow: type[Flow], folder: Path, load: Load, turns: Turns) -> Figures:
    """Play runs with one engine."""
    flow.probe()
    calm_heap()
    played = flow(folder).play(load, turns)
    return attrs.evolve(
        figures_of(flow.name, load, played, stored_bytes(folder)),
        version=version_of(flow),
        durability=flow.durability,
        same_shape=flow.same_shape,
        notes=[flow.note] if flow.note else [],
    )


def stored_bytes(folder: Path) -> int:
    """What was stored; without the fixed reserve that our SQLite store keeps for deleting on a full disk."""
    return folder_bytes(folder) - sum(path.stat().st_size for path in folder.rglob("*-ballast"))


def figures_of(name: str, load: Load, played: Played, stored: int) -> Figures:
    """The figures of what was played; `stored` is the size of the store, warm-up included."""
    runs = len(played.runs)
    p50, p95, _ = percentiles(played.runs)
    metrics = {
        "rate": runs / played.seconds,
        "cpu": played.cpu_seconds / runs,
        "p50": p50,
        "p95": p95,
        "runs": float(runs),
        "bytes": stored / (runs + load.warm),
        "memory": peak_bytes(),
    }
    return Figures(name=name, n=load.at_once, metrics=metrics)


def main() -> None:
    """Do the job on standard input."""
    quiet()
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        job = Job(**json.loads(sys.stdin.readline()))
        figures = work(job, Told(sys.stdin, answers))
    Path(job.result).write_text(json.dumps(attrs.asdict(figures)))


if __name__ == "__main__":
    main()
