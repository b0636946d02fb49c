"""The report of the engines: tables, what was measured of ours alone, and the verdicts.

Rates are the figures that count; processor time for each run stands beside them, since it says the same
however busy the machine is. Ratios are against ours: how many times as much time a contestant takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from benchmarks.figures import Figures
from benchmarks.table import Paint, aligned, ratio, seconds, size
from benchmarks.verdicts import Verdict

Results = Mapping[int, Mapping[str, Figures]]
"""Figures by number of runs at once and by contestant."""
Alone = Mapping[str, Figures]
"""What was measured of ours alone, by name."""

OURS: Final = "orchestra"
TELEMETRY: Final = "orchestra, telemetry"
RIVAL: Final = "LangGraph"
FAMILIES: Final = ("LangGraph", "Burr", "CrewAI", "DBOS")
MANY, SINGLE = 64, 1
TIMES: Final = {MANY: 5.0, SINGLE: 2.0}
AIM: Final = {MANY: " (aim 10×)", SINGLE: ""}
GROWTH, IDLE_SHARE, WIDE_BYTES, TELEMETRY_SHARE = 1.5, 0.01, 300e6, 0.30
WIDE_FULL, GROWTH_FULL = 1000, 10_000
UNEVEN: Final = 2.0
SLOW_FILE_SECONDS: Final = 0.0002
"""What two folders and a file take while a filesystem recovers from the removal of many."""


def section(at_once: int, figures: Mapping[str, Figures], paint: Paint) -> Iterator[str]:
    """The table of one load."""
    ours = figures.get(OURS)
    yield ""
    title = "one run at a time" if at_once == 1 else f"{at_once} runs at once"
    yield paint("bold", title) + paint("dim", f"   (× is against {OURS}; disk is a bare commit just before)")
    head = ["", "runs/s", "", "CPU a run", "", "run p50", "p95", "bytes/run", "memory", "disk", "load"]
    yield aligned([head, *(_row(each, ours, paint) for each in figures.values())], paint)
    for each in figures.values():
        parts = each.notes if each.missing is None else [f"not measured: {each.missing}"]
        if parts:
            yield paint("dim", f"  {each.name}: {'; '.join(parts)}")
    yield from _warning(figures.values(), paint)


def _row(each: Figures, ours: Figures | None, paint: Paint) -> list[str]:
    name = paint("bold", each.name) if each is ours else each.name
    if each.missing is not None:
        return [name, "not measured", *[""] * 9]
    got = each.metrics
    faster = slower = ""
    if ours is not None and ours is not each and ours.missing is None:
        faster = ratio(ours.metrics["rate"] / got["rate"])
        slower = ratio(got["cpu"] / ours.metrics["cpu"])
    times = [seconds(got["p50"]), seconds(got["p95"])]
    machine = [size(got["memory"]), seconds(got["disk"]), f"{got['machine_load']:.1f}"]
    return [
        name,
        f"{got['rate']:.1f}",
        faster,
        seconds(got["cpu"]),
        slower,
        *times,
        size(got["bytes"]),
        *machine,
    ]


def _warning(figures: Iterable[Figures], paint: Paint) -> Iterator[str]:
    """Say so when contestants did not meet the same machine, for then their rates mean little."""
    known = [each.metrics for each in figures if "disk" in each.metrics]
    disks, loads = [each["disk"] for each in known], [each["machine_load"] for each in known]
    if disks and max(disks) > UNEVEN * min(disks):
        span = f"a bare commit took {seconds(min(disks))} to {seconds(max(disks))}"
        yield paint("red", f"  The disk was not the same for all: {span}. Measure again when it is idle.")
    files = [each["file"] for each in known if "file" in each]
    if files and max(files) > SLOW_FILE_SECONDS:
        text = f"  To make a file took {seconds(max(files))}, and telemetry makes some: were many removed?"
        yield paint("red", text)
    if loads and max(loads) > (os.cpu_count() or 1):
        text = f"  The machine was busy, load up to {max(loads):.1f}. Measure again when it is idle."
        yield paint("red", text)


def alone(figures: Alone, paint: Paint) -> Iterator[str]:
    """What was measured of ours alone, in words."""
    if figures:
        yield "\n" + paint("bold", "orchestra alone")
    for name, each in figures.items():
        if each.missing is not None:
            yield f"  {name}: not measured: {each.missing}"
            continue
        got = each.metrics
        if name == "growth":
            whole, first, last = (_both(got, part) for part in ("each", "first", "last"))
            yield f"  {each.n:,} assignments of one run: {whole} each; first tenth {first}, last tenth {last}"
            yield f"    in a run of a tenth of them: {seconds(got['short_cpu'])} CPU each"
            yield "    CPU by tenths: " + ", ".join(seconds(value) for _, value in each.windows)
        elif name == "idle":
            yield f"  a waiting run, {each.n} s: {got['share']:.2%} of a core"
        elif name == "wide":
            yield (
                f"  {each.n:,} specialists under way together: {size(got['memory'])} at most, "
                f"{size(got['memory_before'])} before; {seconds(got['each_cpu'])} CPU each"
            )


def _both(got: Mapping[str, float], name: str) -> str:
    return f"{seconds(got[name])} ({seconds(got[f'{name}_cpu'])} CPU)"


def conclusion(results: Results, own: Alone, paint: Paint) -> Iterator[str]:
    """What each contestant is, and the verdicts."""
    every = {name: each for row in results.values() for name, each in row.items() if not each.missing}
    if every:
        yield "\n" + paint("bold", "Contestants")
    yield from (f"  {name} ({each.version}): {each.durability}" for name, each in every.items())
    found = verdicts(results, own)
    if found:
        yield "\n" + paint("bold", "Targets")
    for verdict in found:
        word = paint("green", "PASS") if verdict.kept else paint("red", "FAIL")
        yield f"{word}  {verdict.promise}: {verdict.measured}"
    yield from (paint("dim", f"      {line}") for line in _easier(results))


def _easier(results: Results) -> Iterator[str]:
    """How ours compares with those that play an easier shape, which is no target."""
    for at_once, row in results.items():
        for family in FAMILIES:
            theirs = fastest(row, family, same_shape=False)
            for verdict in _compared(row, theirs, 1, f"{_load(at_once)}, {family} at an easier shape"):
                yield f"{verdict.promise}: {verdict.measured}"


def verdicts(results: Results, own: Alone) -> list[Verdict]:
    """Every promise that the figures at hand can say something about."""
    return [*_against_rival(results), *_against_all(results), *_telemetry(results), *_alone(own)]


def fastest(row: Mapping[str, Figures], family: str, *, same_shape: bool = True) -> Figures | None:
    """The variant of a library that plays most runs of the shape that was asked for, or of an easier one."""
    known = [
        each
        for name, each in row.items()
        if name.startswith(family) and not each.missing and each.same_shape is same_shape
    ]
    return max(known, key=lambda each: each.metrics["rate"], default=None)


def _against(row: Mapping[str, Figures], family: str, times: float, promise: str) -> Iterator[Verdict]:
    return _compared(row, fastest(row, family), times, promise)


def _compared(
    row: Mapping[str, Figures], theirs: Figures | None, times: float, promise: str
) -> Iterator[Verdict]:
    ours = row.get(OURS)
    if ours is None or ours.missing or theirs is None:
        return
    mine, rate = ours.metrics["rate"], theirs.metrics["rate"]
    cpu = ratio(theirs.metrics["cpu"] / ours.metrics["cpu"])
    measured = f"{ratio(mine / rate)} {theirs.name} ({mine:.1f} against {rate:.1f} runs/s; by CPU {cpu})"
    kept = mine > rate if times == 1 else mine >= times * rate
    yield Verdict(promise=promise, kept=kept, measured=measured)


def _load(at_once: int) -> str:
    return "one at a time" if at_once == 1 else f"{at_once} at once"


def _against_rival(results: Results) -> Iterator[Verdict]:
    for at_once, times in TIMES.items():
        promise = f"{_load(at_once)}: at least {times:g}× the fastest {RIVAL} on SQLite{AIM[at_once]}"
        yield from _against(results.get(at_once, {}), RIVAL, times, promise)


def _against_all(results: Results) -> Iterator[Verdict]:
    for at_once, row in results.items():
        for family in FAMILIES:
            yield from _against(row, family, 1, f"{_load(at_once)}: ahead of {family}")


def _telemetry(results: Results) -> Iterator[Verdict]:
    for at_once, row in results.items():
        plain, told = row.get(OURS), row.get(TELEMETRY)
        if plain is None or told is None or plain.missing or told.missing:
            continue
        cost = plain.metrics["rate"] / told.metrics["rate"] - 1
        cpu = told.metrics["cpu"] / plain.metrics["cpu"] - 1
        yield Verdict(
            promise=f"{_load(at_once)}: telemetry costs at most {TELEMETRY_SHARE:.0%}",
            kept=cost <= TELEMETRY_SHARE,
            measured=f"{cost:+.0%} time a run ({cpu:+.0%} CPU)",
        )


def _alone(own: Alone) -> Iterator[Verdict]:
    known = {name: each for name, each in own.items() if not each.missing}
    if (each := known.get("growth")) is not None:
        got = each.metrics
        times, wall = got["last_cpu"] / got["first_cpu"], got["last"] / got["first"]
        yield Verdict(
            promise=f"{each.n:,} assignments: the last cost at most {GROWTH:g}× what the first cost"
            + _smaller(each.n, GROWTH_FULL),
            kept=times <= GROWTH,
            measured=f"{ratio(times)} CPU ({ratio(wall)} by the clock)",
        )
    if (each := known.get("idle")) is not None:
        share = each.metrics["share"]
        promise = f"a waiting run takes less than {IDLE_SHARE:.0%} of a core"
        yield Verdict(promise=promise, kept=share < IDLE_SHARE, measured=f"{share:.2%}")
    if (each := known.get("wide")) is not None:
        memory = each.metrics["memory"]
        yield Verdict(
            promise=f"{each.n:,} specialists in a phase: less than {size(WIDE_BYTES)}"
            + _smaller(each.n, WIDE_FULL),
            kept=memory < WIDE_BYTES,
            measured=size(memory),
        )


def _smaller(n: int, full: int) -> str:
    return f" (the target is for {full:,})" if n < full else ""
