"""Verdicts: whether the measured figures reach what we promise, one line for each promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from benchmarks.figures import Figures
from benchmarks.table import ratio, seconds, size

Results = Mapping[int, Mapping[str, Figures]]
"""Figures by number of steps and by contestant."""

OURS: Final = "orchestra sqlite"
RIVAL: Final = "LangGraph SQLite"
MAIN, LARGE, SMALL, HUGE = 1000, 10_000, 100, 100_000


@attrs.frozen(kw_only=True)
class Verdict:
    """One promise, whether it is kept, and by how much."""

    promise: str
    kept: bool
    measured: str


def verdicts(results: Results) -> list[Verdict]:
    """Every promise that the figures at hand can say something about."""
    return [*_against_rival(results), *_against_all(results), *_by_itself(results), *_growth(results)]


def _get(results: Results, n: int, name: str, metric: str) -> float | None:
    found = results.get(n, {}).get(name)
    return None if found is None else found.metrics.get(metric)


def _against_rival(results: Results) -> Iterator[Verdict]:
    at = f"N = {MAIN:,}"
    yield from _faster(
        results, MAIN, "save_p50", "save_p50", 5, f"{at}: save p50 at least 5× faster than {RIVAL}"
    )
    yield from _faster(results, MAIN, "save_p95", "save_p95", 10, f"{at}: save p95 at least 10× faster")
    yield from _faster(
        results, LARGE, "save_p50", "save_p50", 50, f"N = {LARGE:,}: save p50 at least 50× faster"
    )
    yield from _faster(
        results, MAIN, "bytes", "bytes", 200, f"{at}: bytes per checkpoint at least 200× smaller"
    )
    yield from _faster(results, MAIN, "list", "list", 100, f"{at}: list at least 100× faster")
    yield from _resume(results)
    for metric, how in (("glance", "opening included"), ("glance_open", "the store open already")):
        promise = f"{at}: glance at the head, {how}, at least 5× faster than its resume, opening included"
        yield from _faster(results, MAIN, metric, "resume", 5, promise)


def _faster(
    results: Results, n: int, mine: str, theirs: str, times: float, promise: str
) -> Iterator[Verdict]:
    """Ours against the rival's: theirs must be so many times ours."""
    ours, rival = _get(results, n, OURS, mine), _get(results, n, RIVAL, theirs)
    if ours is None or rival is None:
        return
    show = size if mine == "bytes" else seconds
    measured = f"{ratio(rival / ours)} ({show(ours)} against {show(rival)})"
    yield Verdict(promise=promise, kept=rival >= times * ours, measured=measured)


def _resume(results: Results) -> Iterator[Verdict]:
    ours, rival = _get(results, MAIN, OURS, "resume"), _get(results, MAIN, RIVAL, "resume")
    if ours is not None and rival is not None:
        yield Verdict(
            promise=f"N = {MAIN:,}: full resume at most 2× as long as its resume",
            kept=ours <= 2 * rival,
            measured=f"{ratio(ours / rival)} as long ({seconds(ours)} against {seconds(rival)})",
        )


def _against_all(results: Results) -> Iterator[Verdict]:
    for metric, word in (("save_p50", "save"), ("bytes", "bytes"), ("list", "list")):
        ours = _get(results, MAIN, OURS, metric)
        theirs = {
            name: figures.metrics[metric]
            for name, figures in results.get(MAIN, {}).items()
            if figures.durable and not name.startswith("orchestra") and metric in figures.metrics
        }
        if ours is None or not theirs:
            continue
        best = min(theirs, key=theirs.__getitem__)
        yield Verdict(
            promise=f"N = {MAIN:,}: ahead of every durable peer on {word}",
            kept=ours < theirs[best],
            measured=f"{ratio(theirs[best] / ours)} to the best of {len(theirs)}, {best}",
        )


def _by_itself(results: Results) -> Iterator[Verdict]:
    at = f"N = {MAIN:,}"
    save, bare = _get(results, MAIN, OURS, "beside_p50"), _get(results, MAIN, OURS, "bare_p50")
    if save is not None and bare is not None:
        measured = f"{ratio(save / bare)} ({seconds(save)} against {seconds(bare)})"
        yield Verdict(
            promise=f"{at}: save p50 at most 2.5× of the bare synced commit",
            kept=save <= 2.5 * bare,
            measured=measured,
        )
    yield from _budget(results, "save_p95", 0.005, f"{at}: save p95 below 5 ms")
    yield from _budget(results, "resume", 0.020, f"{at}: resume below 20 ms")
    yield from _budget(results, "bytes", 4000, f"{at}: a snapshot below 4 KB")


def _budget(results: Results, metric: str, limit: float, promise: str) -> Iterator[Verdict]:
    value = _get(results, MAIN, OURS, metric)
    if value is not None:
        show = size if metric == "bytes" else seconds
        yield Verdict(promise=promise, kept=value < limit, measured=show(value))


def _growth(results: Results) -> Iterator[Verdict]:
    """The last saves of a huge run against those of a small one."""
    huge = results.get(HUGE, {}).get(OURS)
    small = _get(results, SMALL, OURS, "save_p50")
    if huge is None or not huge.windows or small is None:
        return
    last = huge.windows[-1][1]
    yield Verdict(
        promise=f"save p50 at N = {HUGE:,} at most 1.5× of that at N = {SMALL}",
        kept=last <= 1.5 * small,
        measured=f"{ratio(last / small)} ({seconds(last)} against {seconds(small)}){_bare_drift(results)}",
    )


def _bare_drift(results: Results) -> str:
    """How the bare commit moved between the two measurements, which is the machine's doing."""
    huge, small = _get(results, HUGE, OURS, "bare_p50"), _get(results, SMALL, OURS, "bare_p50")
    return "" if huge is None or small is None else f"; the bare commit beside them {ratio(huge / small)}"
