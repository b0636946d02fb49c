"""Measuring a peer: saves one after the other, then everything that reads them.

A peer that stores the whole state every time would write tens of gigabytes for ten thousand steps. Of such a
run only some saves are made, in blocks spread evenly over it; between two blocks the state grows without a
checkpoint. Since the blocks stand for all sizes the state goes through, percentiles and the mean of bytes
are those of the whole run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.figures import Figures, peak_bytes, repeated, resident_bytes
from benchmarks.peers import version_of
from benchmarks.peers.base import Peer, Unsupported
from benchmarks.work import steps

BLOCKS: Final = 20
WHOLE_STEPS: Final = 2000
"""Runs of at most this many steps are saved step by step by everybody."""


def measure(kind: type[Peer], folder: Path, n: int, samples: int) -> Figures:
    """All figures of a peer at that size."""
    figures = Figures(name=kind.name, n=n, durable=kind.durable, durability=kind.durability)
    try:
        kind.probe()
    except Exception as problem:  # a broken install can fail with anything while importing
        figures.missing = f"{type(problem).__name__}: {problem}".splitlines()[0]
        return figures
    figures.version = version_of(kind)
    figures.metrics["memory_before"] = resident_bytes()
    peer = kind(folder)
    try:
        _measure(peer, figures, planned(n, samples if kind.grows else n))
    finally:
        peer.close()
    return figures


def planned(n: int, samples: int) -> list[tuple[int, int]]:
    """Which steps are saved, as ranges: all of them, or blocks in the middle of equal parts of the run."""
    if n <= max(samples, WHOLE_STEPS):
        return [(0, n)]
    size, part = samples // BLOCKS, n // BLOCKS
    return [(at + (part - size) // 2, at + (part + size) // 2) for at in range(0, part * BLOCKS, part)]


def _measure(peer: Peer, figures: Figures, blocks: list[tuple[int, int]]) -> None:
    sampled = len(blocks) > 1
    saved = sum(last - first for first, last in blocks)
    figures.add_saves(_saves(peer, blocks))
    figures.metrics["memory_saves"] = peak_bytes()
    if peer.durable:
        figures.metrics["bytes"] = peer.bytes_on_disk() / saved
    if sampled:
        _leap(peer, blocks[-1][1], figures.n - 1)
        _save_last(peer, figures.n - 1)
        figures.estimated += ["save_p50", "save_p95", "save_p99", "bytes", "list"]
        figures.notes.append(f"{saved} saves spread over {figures.n} steps")
    _reads(peer, figures, _middle(blocks, figures.n))


def _saves(peer: Peer, blocks: list[tuple[int, int]]) -> list[float]:
    """Save every step of the blocks; how long each save took."""
    taken: list[float] = []
    at = 0
    for first, last in blocks:
        _leap(peer, at, first)
        for step in steps(first, last):
            begun = time.perf_counter()
            peer.save(*step)
            taken.append(time.perf_counter() - begun)
        at = last
    return taken


def _leap(peer: Peer, first: int, last: int) -> None:
    """Let the state grow from one step to another without saving."""
    if first < last:
        grown = list(steps(first, last))
        peer.seed([step.task for step in grown], [step.decision for step in grown])


def _save_last(peer: Peer, number: int) -> None:
    for step in steps(number, number + 1):
        peer.save(*step)


def _middle(blocks: list[tuple[int, int]], n: int) -> int:
    """A saved step in the middle of the run."""
    if len(blocks) == 1:
        return n // 2
    return blocks[len(blocks) // 2][0]


def _reads(peer: Peer, figures: Figures, middle: int) -> None:
    n = figures.n
    assert peer.resume() == (n, n), f"{peer.name} lost something: {peer.resume()} of {n}"
    _read(figures, "resume", peer.resume)
    _read(figures, "load", lambda: _loaded(peer, middle))
    _read(figures, "list", peer.list)
    if "list" in figures.metrics:
        figures.metrics["list"] *= n / peer.list()


def _loaded(peer: Peer, step: int) -> None:
    found = peer.load(step)
    assert found == (step + 1, step + 1), f"{peer.name} loads {found} at step {step}"


def _read(figures: Figures, metric: str, work: Callable[[], object]) -> None:
    try:
        figures.metrics[metric] = repeated(work)
    except Unsupported as lack:
        figures.unsupported[metric] = str(lack)
