"""`python -m benchmarks.browser`: how fast the snapshot browser is, in a real Chromium, beside its targets.

It records a run of 10,000 snapshots and one of 100,000, a state of 10 MB and two of 1 MB (kept under
`outputs/benchmarks/browser`, so that the next time begins at once), serves each with `orchestra browse` and
prints every figure beside its target. Times are those of the page itself, with an empty cache; they depend on
what else the machine does.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs
from playwright.sync_api import Browser, sync_playwright

from benchmarks.browser_page import (
    compared_ms,
    opened,
    paged,
    serving,
    shown_ms,
    step_script_ms,
    tailed,
    usable_ms,
    weight,
)
from benchmarks.browser_runs import recorded
from benchmarks.table import Paint

FOLDER: Final = Path("outputs/benchmarks/browser")
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
NEEDED: Final = {
    "open": ("ten-thousand",),
    "open-more": ("hundred-thousand",),
    "move": ("ten-thousand",),
    "great": ("ten-megabytes", "one-megabyte"),
    "tail": (),
}
"""Which runs each part of the measurement needs."""
Stores = dict[str, tuple[str, str]]
REPEATS: Final = 5
STEPS: Final = 300
MEGABYTE: Final = 1_000_000


@attrs.frozen(kw_only=True)
class Measured:
    """One figure beside its target."""

    name: str
    value: float
    target: float
    unit: str
    more: str = ""

    @property
    def reached(self) -> bool:
        """Whether it is within its target."""
        return self.value <= self.target


def opening(browser: Browser, stores: Stores, play: str, target: float) -> list[Measured]:
    """The first view that can be used."""
    url, run = stores[play]
    with serving(url, "--read-only") as server:
        times = usable_ms(browser, server, f"/runs/{run}", REPEATS)
    more = f"first {times[0]:.0f}, worst {max(times):.0f}"
    words = play.replace("-", " ")
    return [
        Measured(
            name=f"open {words} snapshots",
            value=statistics.median(times),
            target=target,
            unit="ms",
            more=more,
        )
    ]


def moving(browser: Browser, stores: Stores) -> list[Measured]:
    """Steps by key, jumps to states that were not asked for before, and what the page weighs."""
    url, run = stores["ten-thousand"]
    with serving(url, "--read-only") as server:
        own, everything, strangers = weight(browser, server, f"/runs/{run}")
        with paged(browser) as page:
            session = opened(page, server, f"/runs/{run}?at=6000")
            half, most, worst = step_script_ms(page, session, STEPS)
            shown = shown_ms(page, range(137, 10_000, 251))
    return [
        Measured(
            name="key step, script, p95",
            value=most,
            target=8,
            unit="ms",
            more=f"p50 {half:.1f}, p99 {worst:.1f}",
        ),
        Measured(
            name="state shown after a jump, p95",
            value=sorted(shown)[len(shown) * 95 // 100],
            target=50,
            unit="ms",
            more=f"p50 {statistics.median(shown):.0f}",
        ),
        Measured(
            name="page weight, compressed",
            value=own / 1000,
            target=200,
            unit="KB",
            more=f"{everything / 1000:.0f} KB with data",
        ),
        Measured(
            name="requests to others", value=len(strangers), target=0, unit="", more=", ".join(strangers[:3])
        ),
    ]


def great_values(browser: Browser, stores: Stores) -> list[Measured]:
    """A great state, and what differs between two that are smaller."""
    url, run = stores["ten-megabytes"]
    with serving(url, "--read-only") as server:
        times = usable_ms(browser, server, f"/runs/{run}?tab=after", REPEATS)
    url, run = stores["one-megabyte"]
    with serving(url, "--read-only") as server, paged(browser) as page:
        opened(page, server, f"/runs/{run}")
        compared = compared_ms(page, [(1, 3), (2, 1), (1, 2), (3, 1)])
    return [
        Measured(
            name="open a state of 10 MB",
            value=statistics.median(times),
            target=500,
            unit="ms",
            more=f"worst {max(times):.0f}",
        ),
        Measured(
            name="diff of two states of 1 MB",
            value=max(compared),
            target=100,
            unit="ms",
            more=f"best {min(compared):.0f}",
        ),
    ]


def tailing(browser: Browser, folder: Path, seconds: float) -> list[Measured]:
    """A run that is watched while it is written."""
    tail = tailed(browser, folder, 50, seconds)
    grown = (tail.heap_after - tail.heap_before) / MEGABYTE
    heap = f"{tail.heap_before / MEGABYTE:.1f} to {tail.heap_after / MEGABYTE:.1f} MB"
    more = f"{heap}, {tail.nodes_after - tail.nodes_before:+.0f} nodes"
    return [
        Measured(
            name=f"live tail, 50 a second for {seconds:.0f} s: missed",
            value=tail.written - tail.seen,
            target=0,
            unit="",
            more=f"{tail.seen:,} of {tail.written:,} came",
        ),
        Measured(name="memory it grew by meanwhile", value=grown, target=10, unit="MB", more=more),
    ]


def measured(browser: Browser, stores: Stores, folder: Path, tail: float, only: str) -> Sequence[Measured]:
    """Every figure, printed as it comes."""
    parts: dict[str, Callable[[], list[Measured]]] = {
        "open": lambda: opening(browser, stores, "ten-thousand", 500),
        "open-more": lambda: opening(browser, stores, "hundred-thousand", 1500),
        "move": lambda: moving(browser, stores),
        "great": lambda: great_values(browser, stores),
        "tail": lambda: tailing(browser, folder, tail),
    }
    found: list[Measured] = []
    for name, part in parts.items():
        if only in ("", name):
            rows = part()
            found += rows
            for row in rows:
                _print(row)
    return found


def _print(row: Measured) -> None:
    paint = Paint.for_stream()
    mark = paint("green", "✔") if row.reached else paint("red", "✖")
    digits = 0 if row.unit == "" else 1 if row.value < 100 else 0
    figure = f"{row.value:,.{digits}f} {row.unit}".strip()
    target = f"{row.target:,.0f} {row.unit}".strip()
    print(f"{mark} {row.name:<46} {figure:>10}   target {target:>9}   {paint('dim', row.more)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the runs are kept")
    parser.add_argument(
        "--tail", type=float, default=120, metavar="SECONDS", help="how long the live run is watched"
    )
    parser.add_argument("--only", default="", choices=("", *NEEDED))
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    names = sorted({name for part, names in NEEDED.items() if given.only in ("", part) for name in names})
    stores = recorded(given.folder.resolve(), tuple(names))
    program = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        found = measured(browser, stores, given.folder.resolve(), given.tail, given.only)
        browser.close()
    return 0 if all(row.reached for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
