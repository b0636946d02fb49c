"""`python -m benchmarks.engine`: our engine and other libraries' side by side on the same small runs.

A run is five phases of three trivial specialists; what is measured is how many complete runs a second an
engine plays on SQLite, 64 at once and one at a time. Every contestant runs in a process of its own. They take
turns, each several times in a round, so that all of them meet the same machine; the tables show the median of
the rounds. `docs/benchmarks.md` says more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import apsw
import attrs

from benchmarks import engine_report
from benchmarks.bare import bare_file
from benchmarks.children import Contestant, measured, usual_place
from benchmarks.engine_ours import OURS_ALONE, QUICK_SIZES, SIZES
from benchmarks.engine_worker import Job
from benchmarks.figures import Figures, joined
from benchmarks.flows import FLOWS
from benchmarks.report import machine
from benchmarks.table import Paint

TIMEOUT_SECONDS: Final = 600.0
AT_ONCE: Final = (64, 1)
SECONDS, QUICK_SECONDS = 2.0, 1.0
TURNS, QUICK_TURNS = 4, 2
RECOVERY_LOOKS, LOOK_SECONDS = 24, 5.0
LEAST_EACH: Final = 1
"""How many runs every place of the load plays at least each turn."""


@attrs.frozen(kw_only=True)
class Plan:
    """What was asked for on the command line."""

    at_once: tuple[int, ...]
    flows: tuple[str, ...]
    alone: tuple[str, ...]
    sizes: dict[str, float]
    seconds: float
    turns: int
    rounds: int
    folder: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the JSON if wanted."""
    options = _parser().parse_args(arguments)
    plan = plan_of(options)
    with tempfile.TemporaryDirectory(prefix="orchestra-bench-", dir=plan.folder) as place:
        return _main(options, attrs.evolve(plan, folder=Path(place)))


def _main(options: argparse.Namespace, plan: Plan) -> int:
    paint = Paint.for_stream()
    print("\n".join(_preamble()))
    _recovered(plan.folder)
    results: dict[int, dict[str, Figures]] = {}
    for at_once in plan.at_once if plan.flows else ():
        results[at_once] = _played(plan, at_once)
        print("\n".join(engine_report.section(at_once, results[at_once], paint)), flush=True)
    own = _alone(plan)
    print("\n".join([*engine_report.alone(own, paint), *engine_report.conclusion(results, own, paint)]))
    if options.json is not None:
        _write(options.json, results, own)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="parts of names, also of ours alone"
    )
    parser.add_argument("--at-once", type=_numbers, default=AT_ONCE, help="runs at once (default 64,1)")
    parser.add_argument("--seconds", type=float, help=f"how long a turn is (default {SECONDS:g})")
    parser.add_argument("--turns", type=int, help=f"turns of each in a round (default {TURNS})")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--folder", type=Path, help="where temporary stores go; it should be on a real disk")
    parser.add_argument(
        "--quick", action="store_true", help="one round, short and with smaller sizes of ours"
    )
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def plan_of(options: argparse.Namespace) -> Plan:
    """What the options mean."""
    wanted = [word.lower() for word in options.only]

    def chosen(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if not wanted or any(word in name.lower() for word in wanted))

    flows, alone = chosen(flow.name for flow in FLOWS), chosen(OURS_ALONE)
    if not flows and not alone:
        names = [*(flow.name for flow in FLOWS), *OURS_ALONE]
        raise SystemExit(f"Nothing is called that. There are: {'; '.join(names)}.")
    return Plan(
        at_once=options.at_once,
        flows=flows,
        alone=alone,
        sizes=QUICK_SIZES if options.quick else SIZES,
        seconds=options.seconds or (QUICK_SECONDS if options.quick else SECONDS),
        turns=options.turns or (QUICK_TURNS if options.quick else TURNS),
        rounds=1 if options.quick else options.rounds,
        folder=options.folder or usual_place(),
    )


def _preamble() -> list[str]:
    return [
        f"Machine: {machine()}, load {os.getloadavg()[0]:.2f}.",
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()} (ours), "
        f"{sqlite3.sqlite_version} (the peers').",
        "Work: runs of five phases with three specialists each, every one of which returns 1.",
    ]


def _recovered(folder: Path) -> None:
    """Wait until files can be made quickly, two minutes at most: somebody may just have removed many."""
    for number in range(RECOVERY_LOOKS):
        if bare_file(folder / f"file-{number}") <= engine_report.SLOW_FILE_SECONDS:
            return
        _progress("waiting until the filesystem makes files quickly again")
        time.sleep(LOOK_SECONDS)


def _played(plan: Plan, at_once: int) -> dict[str, Figures]:
    """Every contestant at one load."""
    rounds = [_round(plan, at_once, f"round {number + 1} of {plan.rounds}") for number in range(plan.rounds)]
    _progress("")
    return {name: joined([each[name] for each in rounds]) for name in plan.flows}


def _round(plan: Plan, at_once: int, which: str) -> dict[str, Figures]:
    """Every contestant in a new process, each at its turn."""
    contestants = []
    for name in plan.flows:
        _progress(f"{at_once} at once, {which}: {name} is made ready")
        contestants.append(_contestant(plan, name, at_once))
    for turn in range(plan.turns):
        for each in contestants:
            _progress(f"{at_once} at once, {which}, turn {turn + 1} of {plan.turns}: {each.name}")
            each.play()
    return {each.name: each.figures() for each in contestants}


def _contestant(plan: Plan, name: str, at_once: int) -> Contestant:
    def job(folder: str, result: str) -> Job:
        least = at_once * LEAST_EACH
        return Job(
            name=name, folder=folder, result=result, at_once=at_once, seconds=plan.seconds, least=least
        )

    return Contestant(name, at_once, plan.folder, job, "benchmarks.engine_worker", TIMEOUT_SECONDS)


def _alone(plan: Plan) -> dict[str, Figures]:
    """What is measured of ours alone."""
    found: dict[str, list[Figures]] = {name: [] for name in plan.alone}
    for _ in range(plan.rounds):
        for name in plan.alone:
            _progress(f"orchestra alone: {name}")
            size = plan.sizes[name]
            found[name].append(_run(plan, name, size))
    _progress("")
    return {name: joined(each) for name, each in found.items()}


def _run(plan: Plan, name: str, size: float) -> Figures:
    """One measurement of ours in a process of its own; its files are removed when all is measured."""

    def job(folder: str, result: str) -> Job:
        return Job(name=name, folder=folder, result=result, size=size)

    return measured(name, int(size), plan.folder, job, "benchmarks.engine_worker", TIMEOUT_SECONDS, kept=True)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _write(path: Path, results: dict[int, dict[str, Figures]], own: dict[str, Figures]) -> None:
    figures = {str(n): {name: attrs.asdict(each) for name, each in row.items()} for n, row in results.items()}
    facts = {"python": platform.python_version(), "machine": machine()}
    whole = {
        "facts": facts,
        "engines": figures,
        "alone": {name: attrs.asdict(each) for name, each in own.items()},
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
