"""The report of the conversations: a table for each part, what each contestant is, and the verdicts.

Ratios are taken between contestants of one run, or between the steps of one contestant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from benchmarks.figures import Figures
from benchmarks.table import Paint, aligned, ratio, seconds, size
from benchmarks.talks import talk_named
from benchmarks.verdicts import Verdict

Row = Mapping[str, Figures]
"""Figures by contestant."""

PACED: Final = "stream at a rate"
UNPACED: Final = "stream as fast as it is taken"
TALK: Final = "conversation"
OURS: Final = "orchestra"
OFF: Final = "orchestra, saving off"
BARE: Final = "pydantic-ai, not saved"
LEAST_RATE, MOST_GROWTH = 0.9, 2.0
UNEVEN: Final = 2.0


def section(part: str, figures: Row, paint: Paint) -> Iterator[str]:
    """The table of one part."""
    size_of = next((each.n for each in figures.values()), 0)
    about = (
        f"{size_of:,} steps, the first and last ten; growth is last by first"
        if part == TALK
        else f"{size_of:,} tokens"
    )
    yield "\n" + paint("bold", f"A {part}") + paint("dim", f"   ({about})")
    head, row = (_TALK_HEAD, _talk_row) if part == TALK else (_STREAM_HEAD, _stream_row)
    yield aligned([head, *(row(each, figures, paint) for each in figures.values())], paint)
    for each in figures.values():
        if each.missing is not None:
            yield paint("dim", f"  {each.name}: not measured: {each.missing}")
    yield from _warning(figures.values(), paint)


_STREAM_HEAD: Final = ["", "tokens/s", "of saving off", "CPU for 1,000", "bytes", "memory", "load"]
_TIMES: Final = ("p50", "p95", "first", "last")
_TALK_HEAD: Final = ["", *_TIMES, "growth", "CPU a step", "for saving", "growth", "bytes", "load"]


def _stream_row(each: Figures, row: Row, paint: Paint) -> list[str]:
    name = paint("bold", each.name) if each.name == OURS else each.name
    if each.missing is not None:
        return [name, "not measured", *[""] * (len(_STREAM_HEAD) - 2)]
    got, off = each.metrics, _metric(row, OFF, "rate")
    share = f"{got['rate'] / off:.2f}×" if off else ""
    figures = [f"{got['rate']:,.0f}", share, seconds(got["cpu"]), size(got["bytes"]), size(got["memory"])]
    return [name, *figures, f"{got['machine_load']:.1f}"]


def _talk_row(each: Figures, row: Row, paint: Paint) -> list[str]:
    name = paint("bold", each.name) if each.name == OURS else each.name
    if each.missing is not None:
        return [name, "not measured", *[""] * (len(_TALK_HEAD) - 2)]
    got = each.metrics
    alone = _metric(row, talk_named(each.name).unsaved or "", "cpu")
    saving = "-" if alone is None else seconds(max(got["cpu"] - alone, 0.0))
    times = [*(seconds(got[name]) for name in _TIMES), ratio(got["last"] / got["first"])]
    cpu = [seconds(got["cpu"]), saving, ratio(got["last_cpu"] / got["first_cpu"])]
    return [name, *times, *cpu, size(got["bytes"]), f"{got['machine_load']:.1f}"]


def _metric(row: Row, name: str, metric: str) -> float | None:
    found = row.get(name)
    return None if found is None or found.missing is not None else found.metrics.get(metric)


def _warning(figures: Iterable[Figures], paint: Paint) -> Iterator[str]:
    """Say so when contestants did not meet the same machine, for then their ratios mean little."""
    known = [each.metrics for each in figures if "disk" in each.metrics]
    disks, loads = [each["disk"] for each in known], [each["machine_load"] for each in known]
    if disks and max(disks) > UNEVEN * min(disks):
        span = f"a bare commit took {seconds(min(disks))} to {seconds(max(disks))}"
        yield paint("red", f"  The disk was not the same for all: {span}. Measure again when it is idle.")
    if loads and max(loads) > (os.cpu_count() or 1):
        text = f"  The machine was busy, load up to {max(loads):.1f}. Measure again when it is idle."
        yield paint("red", text)


def conclusion(results: Mapping[str, Row], paint: Paint) -> Iterator[str]:
    """What each contestant is, and the verdicts."""
    every = {name: each for row in results.values() for name, each in row.items() if not each.missing}
    yield "\n" + paint("bold", "Contestants")
    yield from (f"  {name} ({each.version}): {each.durability}" for name, each in every.items())
    found = verdicts(results)
    if found:
        yield "\n" + paint("bold", "Targets")
    for verdict in found:
        word = paint("green", "PASS") if verdict.kept else paint("red", "FAIL")
        yield f"{word}  {verdict.promise}: {verdict.measured}"


def verdicts(results: Mapping[str, Row]) -> list[Verdict]:
    """Every promise that the figures at hand can say something about."""
    streams = [each for part in (PACED, UNPACED) for each in _rates(part, results.get(part, {}))]
    return [*streams, *_growth(results.get(TALK, {}))]


def _rates(part: str, row: Row) -> Iterator[Verdict]:
    ours, off = _metric(row, OURS, "rate"), _metric(row, OFF, "rate")
    if ours is not None and off is not None:
        yield Verdict(
            promise=f"a {part}: with saving at least {LEAST_RATE:g}× of saving off",
            kept=ours >= LEAST_RATE * off,
            measured=f"{ours / off:.2f}× ({ours:,.0f} against {off:,.0f} tokens/s)",
        )


def _growth(row: Row) -> Iterator[Verdict]:
    found = row.get(OURS)
    if found is None or found.missing is not None:
        return
    got, bare = found.metrics, row.get(BARE)
    own = ""
    if bare is not None and bare.missing is None:
        theirs = bare.metrics
        rest = [got[name] - theirs[name] for name in ("first_cpu", "last_cpu")]
        own = f", of which pydantic-ai alone {ratio(theirs['last_cpu'] / theirs['first_cpu'])}"
        own += f" and the rest {ratio(rest[1] / rest[0])}" if min(rest) > 0 else ""
    yield Verdict(
        promise=f"a conversation of {found.n * 2} messages: a step takes at most {MOST_GROWTH:g}× the first",
        kept=got["last"] <= MOST_GROWTH * got["first"],
        measured=f"{ratio(got['last'] / got['first'])} ({seconds(got['first'])}, "
        f"then {seconds(got['last'])}; by CPU {ratio(got['last_cpu'] / got['first_cpu'])}{own})",
    )
