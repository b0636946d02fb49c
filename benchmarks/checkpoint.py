"""`python -m benchmarks.checkpoint`: our stores and other libraries' side by side on the same work.

Every contestant runs in a process of its own, one after the other, in rounds; the tables show the median of
the rounds. `docs/benchmarks.md` says what is measured and how.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks import report
from benchmarks.children import measured, usual_place
from benchmarks.figures import Figures, joined
from benchmarks.ours import OURS
from benchmarks.peers import PEERS
from benchmarks.table import Paint
from benchmarks.work import raw_bytes, step
from benchmarks.worker import Job

HUGE_CONTESTANTS: Final = ("orchestra sqlite",)
MANY_ROUNDS_UP_TO: Final = 2000
SPARE_BYTES: Final = 2_000_000_000
TIMEOUT_SECONDS: Final = 3600.0


@attrs.frozen(kw_only=True)
class Plan:
    """What was asked for on the command line."""

    sizes: tuple[int, ...]
    huge: tuple[int, ...]
    names: tuple[str, ...]
    samples: int
    rounds: int
    folder: Path

    def rounds_at(self, n: int) -> int:
        """How often a size is measured; large ones once, they have saves enough."""
        return self.rounds if n <= MANY_ROUNDS_UP_TO else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the JSON if wanted."""
    options = _parser().parse_args(arguments)
    plan = _plan(options)
    paint = Paint.for_stream()
    print("\n".join(report.preamble(plan.folder)))
    results: dict[int, dict[str, Figures]] = {}
    for n in (*plan.sizes, *plan.huge):
        results[n] = _measured(plan, n)
        print("\n".join(report.section(n, results[n], paint)), flush=True)
    print("\n".join(report.conclusion(results, paint)))
    if options.json is not None:
        _write(options.json, results)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint", description=__doc__)
    parser.add_argument("--n", type=_numbers, help="numbers of steps (default 100,1000,10000)")
    parser.add_argument("--ours", type=_numbers, help="sizes for our default store alone (default 100000)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="parts of contestants' names")
    parser.add_argument(
        "--samples", type=int, default=200, help="saves made of a run too large to save whole"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often sizes up to 2000 are measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--folder", type=Path, help="where temporary stores go; it should be on a real disk")
    parser.add_argument("--quick", action="store_true", help="sizes 100 and 1000, one round")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _plan(options: argparse.Namespace) -> Plan:
    wanted = [word.lower() for word in options.only]
    names = [*(each.name for each in OURS), *(each.name for each in PEERS)]
    chosen = [name for name in names if not wanted or any(word in name.lower() for word in wanted)]
    if not chosen:
        raise SystemExit(f"No contestant is called that. There are: {', '.join(names)}.")
    sizes = options.n or ((100, 1000) if options.quick else (100, 1000, 10_000))
    huge = options.ours if options.ours is not None else () if options.quick else (100_000,)
    return Plan(
        sizes=sizes,
        huge=tuple(n for n in huge if n not in sizes),
        names=tuple(chosen),
        samples=options.samples,
        rounds=1 if options.quick else options.rounds,
        folder=options.folder or usual_place(),
    )


def _measured(plan: Plan, n: int) -> dict[str, Figures]:
    names = [name for name in plan.names if n not in plan.huge or name in HUGE_CONTESTANTS]
    rounds: dict[str, list[Figures]] = {name: [] for name in names}
    for number in range(plan.rounds_at(n)):
        for name in names:
            _progress(f"N = {n:,}, round {number + 1} of {plan.rounds_at(n)}: {name}")
            rounds[name].append(_run(plan, name, n))
    _progress("")
    return {name: joined(each) for name, each in rounds.items()}


def _run(plan: Plan, name: str, n: int) -> Figures:
    """One contestant at one size in a process of its own; its files are removed afterwards."""
    need, free = _need(name, n, plan.samples), shutil.disk_usage(plan.folder).free
    if need + SPARE_BYTES > free:
        why = f"it would write about {need / 1e9:.1f} GB and {free / 1e9:.1f} GB are free"
        return Figures(name=name, n=n, missing=why)

    def job(folder: str, result: str) -> Job:
        return Job(name=name, n=n, samples=plan.samples, folder=folder, result=result)

    return measured(name, n, plan.folder, job, "benchmarks.worker", TIMEOUT_SECONDS)


def _need(name: str, n: int, samples: int) -> int:
    """About how many bytes a contestant writes at a size."""
    each = raw_bytes(step(0))
    if any(peer.name == name and peer.grows for peer in PEERS):
        return each * n // 2 * (n if n <= MANY_ROUNDS_UP_TO else samples) * 3 // 2
    return each * n * 20


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _write(path: Path, results: dict[int, dict[str, Figures]]) -> None:
    figures = {str(n): {name: attrs.asdict(each) for name, each in row.items()} for n, row in results.items()}
    facts = {"python": platform.python_version(), "machine": report.machine()}
    path.write_text(json.dumps({"facts": facts, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
