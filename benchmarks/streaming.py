"""`python -m benchmarks.streaming`: what saving a conversation with a model costs, ours and other libraries'.

A stream of tokens goes through an agent with saving on and off; a long conversation is saved step by step.
The model is a script in the same process: no network and no provider, so that saving is most of what is
left to measure. Every contestant has a process of its own; they take turns, and the tables show the median
of the rounds. `docs/benchmarks.md` says more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import attrs

from benchmarks import streaming_report
from benchmarks.children import Contestant, usual_place
from benchmarks.figures import Figures, joined
from benchmarks.report import machine
from benchmarks.streaming_report import PACED, TALK, UNPACED
from benchmarks.streaming_worker import Job
from benchmarks.table import Paint
from benchmarks.talks import STREAMS, TALKS

TIMEOUT_SECONDS: Final = 300.0
RATE: Final = 5000
SECONDS: Final = 2.0
AT_ONCE_TOKENS: Final = 60_000
MESSAGES: Final = 200
TURNS, ROUNDS = 2, 2


@attrs.frozen(kw_only=True)
class Plan:
    """What was asked for on the command line."""

    names: tuple[str, ...]
    rate: int
    seconds: float
    messages: int
    turns: int
    rounds: int
    folder: Path

    def parts(self) -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
        """What is measured: of whom, and what their workers are told."""
        streams = self._chosen(each.name for each in STREAMS)
        paced = {"tokens": round(self.rate * self.seconds), "rate": float(self.rate)}
        talks = self._chosen(each.name for each in TALKS)
        return {
            PACED: (streams, paced),
            UNPACED: (streams, {"tokens": AT_ONCE_TOKENS}),
            TALK: (talks, {"steps": self.messages // 2}),
        }

    def _chosen(self, names: Any) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the JSON if wanted."""
    options = _parser().parse_args(arguments)
    plan = _plan(options)
    paint = Paint.for_stream()
    print("\n".join(_preamble(plan)))
    results: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="orchestra-bench-", dir=plan.folder) as place:
        for part, (names, told) in plan.parts().items():
            results[part] = _measured(attrs.evolve(plan, folder=Path(place)), part, names, told)
            print("\n".join(streaming_report.section(part, results[part], paint)), flush=True)
    print("\n".join(streaming_report.conclusion(results, paint)))
    if options.json is not None:
        _write(options.json, results)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="parts of contestants' names")
    parser.add_argument("--rate", type=int, default=RATE, help=f"tokens a second (default {RATE})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a paced stream is")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="how long a conversation is")
    parser.add_argument(
        "--turns", type=int, default=TURNS, help=f"turns of each in a round (default {TURNS})"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often everything is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--folder", type=Path, help="where temporary stores go; it should be on a real disk")
    return parser


def _plan(options: argparse.Namespace) -> Plan:
    wanted = [word.lower() for word in options.only]
    names = [each.name for each in TALKS]
    chosen = [name for name in names if not wanted or any(word in name.lower() for word in wanted)]
    if not chosen:
        raise SystemExit(f"No contestant is called that. There are: {'; '.join(names)}.")
    return Plan(
        names=tuple(chosen),
        rate=options.rate,
        seconds=options.seconds,
        messages=options.messages,
        turns=options.turns,
        rounds=options.rounds,
        folder=options.folder or usual_place(),
    )


def _preamble(plan: Plan) -> list[str]:
    return [
        f"Machine: {machine()}, load {os.getloadavg()[0]:.2f}.",
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()} (ours), "
        f"{sqlite3.sqlite_version} (the peers').",
        f"Work: streams of {plan.rate:,} tokens a second for {plan.seconds:g} s, and of {AT_ONCE_TOKENS:,} "
        f"as fast as they are taken; conversations of {plan.messages} messages, a tool call at every step.",
    ]


def _measured(plan: Plan, part: str, names: Sequence[str], told: dict[str, Any]) -> dict[str, Figures]:
    """Every contestant of a part, each in a new process in every round, at its turn."""
    rounds = []
    for number in range(plan.rounds):
        contestants = [_contestant(plan, name, told) for name in names]
        for turn in range(plan.turns):
            for each in contestants:
                _progress(f"{part}, round {number + 1} of {plan.rounds}, turn {turn + 1}: {each.name}")
                each.play()
        rounds.append({each.name: each.figures() for each in contestants})
    _progress("")
    return {name: joined([each[name] for each in rounds]) for name in names}


def _contestant(plan: Plan, name: str, told: dict[str, Any]) -> Contestant:
    def job(folder: str, result: str) -> Job:
        return Job(name=name, folder=folder, result=result, **told)

    size = told.get("steps") or told["tokens"]
    return Contestant(name, size, plan.folder, job, "benchmarks.streaming_worker", TIMEOUT_SECONDS)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _write(path: Path, results: dict[str, dict[str, Figures]]) -> None:
    figures = {
        part: {name: attrs.asdict(each) for name, each in row.items()} for part, row in results.items()
    }
    facts = {"python": platform.python_version(), "machine": machine()}
    path.write_text(json.dumps({"facts": facts, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
