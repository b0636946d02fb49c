"""One contestant at one size, measured in a process of its own.

`python -m benchmarks.worker` reads a job as JSON from standard input, does the work in an empty folder and
writes the figures to the file that the job names; whatever a library prints stays out of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs

from benchmarks import measure_peer
from benchmarks.figures import Figures, peak_bytes
from benchmarks.peers import PEERS
from benchmarks.peers.base import quiet


@attrs.frozen(kw_only=True)
class Job:
    """What a worker is to do."""

    name: str
    n: int
    samples: int
    folder: str
    result: str


def work(job: Job) -> Figures:
    """Measure the contestant of that name."""
    folder = Path(job.folder)
    for peer in PEERS:
        if peer.name == job.name:
            return measure_peer.measure(peer, folder, job.n, job.samples)
    return _work_ours(job.name, folder, job.n)


def _work_ours(name: str, folder: Path, n: int) -> Figures:
    from benchmarks import measure_ours  # not above: a peer's memory is not to hold our package
    from benchmarks.ours import OURS

    contestant = next(each for each in OURS if each.name == name)
    return measure_ours.measure(contestant, folder, n)


def main() -> None:
    """Do the job on standard input."""
    quiet()
    job = Job(**json.load(sys.stdin))
    figures = work(job)
    figures.metrics["memory"] = peak_bytes()
    Path(job.result).write_text(json.dumps(attrs.asdict(figures)))


if __name__ == "__main__":
    main()
