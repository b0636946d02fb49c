"""Tables and verdicts, from figures that were made up."""

import io

import pytest

from benchmarks import report
from benchmarks.figures import Figures
from benchmarks.table import WRITING, Paint, aligned, ratio, seconds, size, table
from benchmarks.verdicts import verdicts

PLAIN = Paint(enabled=False)


def _figures(name: str, *, durable: bool = True, **metrics: float) -> Figures:
    return Figures(name=name, n=1000, durable=durable, metrics=metrics)


def _results() -> dict[int, dict[str, Figures]]:
    ours = _figures(
        "orchestra sqlite",
        save_p50=0.0004,
        save_p95=0.001,
        bytes=1600,
        resume=0.010,
        glance=0.001,
        list=0.004,
        bare_p50=0.0002,
        beside_p50=0.0004,
    )
    rival = _figures(
        "LangGraph SQLite", save_p50=0.004, save_p95=0.008, bytes=469_000, resume=0.006, list=2.0
    )
    return {1000: {each.name: each for each in (ours, rival)}}


@pytest.mark.parametrize(
    ("value", "text"), [(0.0000854, "85 µs"), (0.00031, "310 µs"), (0.0032, "3.2 ms"), (1.94, "1.94 s")]
)
def test_times_have_units(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(1600, "1.60 KB"), (469_000, "469 KB"), (4_700_000, "4.7 MB")])
def test_sizes_have_units(value: float, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.50×"), (12.34, "12.3×"), (1234.0, "1,234×")])
def test_ratios(value: float, text: str) -> None:
    assert ratio(value) == text


def test_columns_are_aligned_with_and_without_colour() -> None:
    rows = [["", "save"], ["a long name", "1 ms"], ["b", "100 ms"]]
    plain = aligned(rows, PLAIN).splitlines()
    assert {len(line) for line in plain} == {len("a long name  100 ms")}
    painted = [["", "save"], ["a long name", Paint(enabled=True)("red", "1 ms")], ["b", "100 ms"]]
    assert aligned(painted, PLAIN).replace("\x1b[31m", "").replace("\x1b[0m", "").splitlines() == plain


def test_each_figure_stands_beside_its_ratio() -> None:
    row = _results()[1000]
    text = table(WRITING, row.values(), row["orchestra sqlite"], PLAIN)
    assert "4 ms   10.0×" in text
    assert "469 KB    293×" in text


def test_estimates_and_gaps_are_marked() -> None:
    estimated = Figures(name="x", n=10, metrics={"save_p50": 0.5}, estimated=["save_p50"])
    absent = Figures(name="y", n=10, missing="not installed")
    text = table(WRITING, [estimated, absent], None, PLAIN)
    assert "~500 ms" in text
    assert "not measured" in text
    section = "\n".join(report.section(10, {"x": estimated, "y": absent}, PLAIN))
    assert "y: not measured: not installed" in section


def test_colour_needs_a_terminal_and_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Paint.for_stream(Terminal()).enabled
    assert not Paint.for_stream(io.StringIO()).enabled
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Paint.for_stream(Terminal()).enabled


def test_verdicts_say_what_was_promised_and_what_was_measured() -> None:
    found = {each.promise: each for each in verdicts(_results())}
    save = found["N = 1,000: save p50 at least 5× faster than LangGraph SQLite"]
    assert save.kept
    assert save.measured == "10.0× (400 µs against 4 ms)"
    assert not found["N = 1,000: save p95 at least 10× faster"].kept
    assert found["N = 1,000: ahead of every durable peer on save"].kept
    assert found["N = 1,000: full resume at most 2× as long as its resume"].kept
    assert not any("10,000" in promise for promise in found)


def test_growth_is_judged_by_the_last_saves() -> None:
    small = Figures(name="orchestra sqlite", n=100, metrics={"save_p50": 0.001, "bare_p50": 0.0002})
    huge = Figures(
        name="orchestra sqlite",
        n=100_000,
        metrics={"bare_p50": 0.0003},
        windows=[(10_000, 0.001), (100_000, 0.0016)],
    )
    (verdict,) = verdicts({100: {small.name: small}, 100_000: {huge.name: huge}})
    assert not verdict.kept
    assert "1.60×" in verdict.measured
    assert "bare commit beside them 1.50×" in verdict.measured


def test_the_conclusion_lists_contestants_and_targets() -> None:
    lines = "\n".join(report.conclusion(_results(), PLAIN))
    assert "PASS  N = 1,000: save p50" in lines
    assert "FAIL  N = 1,000: save p95" in lines


def test_an_uneven_disk_and_a_busy_machine_are_warned_of() -> None:
    row = {name: _figures(name, disk=disk, machine_load=1e6) for name, disk in (("x", 0.0002), ("y", 0.004))}
    text = "\n".join(report.section(1000, row, PLAIN))
    assert "a bare commit took 200 µs to 4 ms" in text
    assert "The machine was busy" in text
    calm = {
        "x": _figures("x", disk=0.0002, machine_load=0.0),
        "y": _figures("y", disk=0.0003, machine_load=0.0),
    }
    assert "Measure again" not in "\n".join(report.section(1000, calm, PLAIN))
