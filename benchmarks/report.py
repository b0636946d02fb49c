"""The report: what is printed before, for and after the sizes that were measured."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import apsw

from benchmarks import work
from benchmarks.figures import Figures
from benchmarks.table import READING, WRITING, Paint, ours_table, seconds, table
from benchmarks.verdicts import OURS, Results, verdicts

UNEVEN: Final = 2.0
"""By how much the disk may change between contestants before the tables carry a warning."""


def preamble(folder: Path) -> list[str]:
    """What the figures were taken on and with."""
    size = sum(work.raw_bytes(each) for each in work.steps(0, 100)) / 100
    free = shutil.disk_usage(folder).free / 1e9
    return [
        f"Machine: {machine()}, load {os.getloadavg()[0]:.2f}, {free:.0f} GB free.",
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()} (ours), "
        f"{sqlite3.sqlite_version} (the peers').",
        f"Work: each step adds a task and a decision, {size:.0f} bytes as compact JSON; the texts shrink "
        f"{work.compressibility():.2f}× with zstd on 16 KB blocks.",
    ]


def machine() -> str:
    """The machine in a few words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


def section(n: int, figures: Mapping[str, Figures], paint: Paint) -> Iterator[str]:
    """The tables of one size."""
    ours = figures.get(OURS)
    mine = [each for name, each in figures.items() if name.startswith("orchestra") and not each.missing]
    yield ""
    yield paint("bold", f"N = {n:,}") + paint(
        "dim", f"   (× is against {OURS}; ~ is from a part of the run; disk is a bare commit just before)"
    )
    yield table(WRITING, figures.values(), ours, paint)
    yield ""
    yield table(READING, figures.values(), ours, paint)
    if mine:
        yield ""
        yield ours_table(mine, paint)
    yield from _notes(figures, paint)
    yield from _warning(figures, paint)


def _warning(figures: Mapping[str, Figures], paint: Paint) -> Iterator[str]:
    """Say so when contestants did not meet the same machine, for then their ratios mean little."""
    disks = [each.metrics["disk"] for each in figures.values() if "disk" in each.metrics]
    loads = [each.metrics["machine_load"] for each in figures.values() if "machine_load" in each.metrics]
    if disks and max(disks) > UNEVEN * min(disks):
        span = f"a bare commit took {seconds(min(disks))} to {seconds(max(disks))}"
        yield paint("red", f"  The disk was not the same for all: {span}. Measure again when it is idle.")
    if loads and max(loads) > (os.cpu_count() or 1):
        yield paint(
            "red", f"  The machine was busy, load up to {max(loads):.1f}. Measure again when it is idle."
        )


def conclusion(results: Results, paint: Paint) -> Iterator[str]:
    """How the save grew, what each contestant is, and the verdicts."""
    for n, row in results.items():
        if n >= 10_000 and OURS in row and row[OURS].windows:
            steps = ", ".join(f"{at:,}: {seconds(p50)}" for at, p50 in row[OURS].windows)
            yield f"\nSave p50 of {OURS} on the way to {n:,} steps: {steps}"
    yield "\n" + paint("bold", "Contestants")
    yield from _contestants(results)
    found = verdicts(results)
    if found:
        yield "\n" + paint("bold", "Targets")
    for each in found:
        word = paint("green", "PASS") if each.kept else paint("red", "FAIL")
        yield f"{word}  {each.promise}: {each.measured}"


def _contestants(results: Results) -> Iterator[str]:
    """Version, durability and lacks of everybody who took part."""
    every = {name: each for row in results.values() for name, each in row.items() if not each.missing}
    for name, each in every.items():
        lacks = [f"no {metric}: {why}" for metric, why in each.unsupported.items()]
        yield f"  {name} ({each.version}): {'; '.join([each.durability, *lacks])}"


def _notes(figures: Mapping[str, Figures], paint: Paint) -> Iterator[str]:
    for each in figures.values():
        parts = each.notes if each.missing is None else [f"not measured: {each.missing}"]
        if parts:
            yield paint("dim", f"  {each.name}: {'; '.join(parts)}")
