"""The benchmark of engines: its clock, its plan, its verdicts, and our own engine played a few times."""

import argparse
import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from benchmarks import engine, engine_report, engine_worker
from benchmarks.children import Contestant
from benchmarks.engine_ours import OURS_ALONE
from benchmarks.engine_report import fastest, verdicts
from benchmarks.engine_worker import Job, figures_of
from benchmarks.figures import Figures
from benchmarks.flows import FLOWS, Alone, Load, Played
from benchmarks.flows.base import RESULTS, AsyncFlow, Meter, ThreadFlow
from benchmarks.table import Paint

PLAIN = Paint(enabled=False)
LOAD = Load(at_once=4, seconds=0.0, least=10, warm=3)


class Coroutines(AsyncFlow):
    name = "coroutines"
    under_way = most = 0
    results = RESULTS

    @staticmethod
    def probe() -> None:
        return None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        yield

    async def run(self) -> int:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return self.results


class Calls(ThreadFlow):
    name = "calls"

    @staticmethod
    def probe() -> None:
        return None

    @contextmanager
    def opened(self) -> Iterator[None]:
        yield

    def run(self) -> int:
        return RESULTS


def test_as_many_runs_as_were_wanted_are_played_at_once(tmp_path: Path) -> None:
    flow = Coroutines(tmp_path)
    played = flow.play(LOAD, Alone(2))
    assert len(played.runs) == 2 * LOAD.least
    assert flow.most == LOAD.at_once
    assert len(Calls(tmp_path).play(LOAD, Alone(3)).runs) == 3 * LOAD.least


def test_a_run_that_lost_a_result_is_no_run(tmp_path: Path) -> None:
    flow = Coroutines(tmp_path)
    flow.results = RESULTS - 1
    with pytest.raises(AssertionError, match="14 results"):
        flow.play(LOAD, Alone())


def test_runs_are_handed_out_until_the_time_is_up() -> None:
    meter = Meter(least=0, seconds=60.0)
    assert all(meter.next() for _ in range(100))
    assert not Meter(least=0).next()


def test_rates_are_of_the_whole_time() -> None:
    played = Played(seconds=2.0, cpu_seconds=1.0, runs=(0.1, 0.2, 0.3, 0.4))
    got = figures_of("x", LOAD, played, stored=700).metrics
    assert (got["rate"], got["cpu"], got["p50"], got["bytes"]) == (2.0, 0.25, 0.3, 100.0)


def _options(*arguments: str) -> argparse.Namespace:
    return engine._parser().parse_args(arguments)


def test_names_choose_contestants_and_what_is_ours_alone() -> None:
    plan = engine.plan_of(_options("--only", "langgraph async", "idle"))
    assert plan.flows == ("LangGraph AsyncSqliteSaver", "LangGraph AsyncSqliteSaver, delta channel")
    assert plan.alone == ("idle",)
    assert engine.plan_of(_options()).alone == tuple(OURS_ALONE)
    with pytest.raises(SystemExit, match="Nothing is called that"):
        engine.plan_of(_options("--only", "nobody"))


def test_quick_is_one_short_round() -> None:
    quick, whole = engine.plan_of(_options("--quick")), engine.plan_of(_options())
    assert quick.rounds == 1
    assert quick.seconds * quick.turns < whole.seconds * whole.turns
    assert quick.sizes["growth"] < whole.sizes["growth"] == engine_report.GROWTH_FULL


def test_every_family_has_a_contestant() -> None:
    assert {flow.family for flow in FLOWS} == {"orchestra", *engine_report.FAMILIES}
    assert all(flow.name.startswith(flow.family) for flow in FLOWS)
    assert len({flow.name for flow in FLOWS}) == len(FLOWS)


def _row(**rates: float) -> dict[str, Figures]:
    names = {name.replace("_", " "): rate for name, rate in rates.items()}
    metrics = {"p50": 0.1, "p95": 0.2, "bytes": 9.0, "memory": 5e7, "disk": 0.0002, "machine_load": 0.0}
    return {
        name: Figures(name=name, n=64, metrics={"rate": rate, "cpu": 1 / rate, **metrics})
        for name, rate in names.items()
    }


def test_the_fastest_variant_is_the_opponent() -> None:
    row = _row(orchestra=100.0, LangGraph_slow=5.0, LangGraph_quick=25.0)
    row["LangGraph away"] = Figures(name="LangGraph away", n=64, missing="not installed")
    best = fastest(row, "LangGraph")
    assert best is not None
    assert best.name == "LangGraph quick"
    assert fastest(row, "Burr") is None
    found = {each.promise: each for each in verdicts({64: row, 1: row}, {})}
    many = found["64 at once: at least 5× the fastest LangGraph on SQLite (aim 10×)"]
    assert not many.kept
    assert many.measured == "4.00× LangGraph quick (100.0 against 25.0 runs/s; by CPU 4.00×)"
    assert found["one at a time: at least 2× the fastest LangGraph on SQLite"].kept
    assert found["64 at once: ahead of LangGraph"].kept
    assert not any("Burr" in promise for promise in found)


def test_who_plays_an_easier_shape_is_no_opponent_but_is_told() -> None:
    row = _row(orchestra=100.0, Burr_parallel=50.0, Burr_in_a_row=125.0)
    row["Burr in a row"].same_shape = False
    found = {each.promise: each for each in verdicts({64: row}, {})}
    assert found["64 at once: ahead of Burr"].measured.startswith("2.00× Burr parallel")
    lines = list(engine_report.conclusion({64: row}, {}, PLAIN))
    assert lines[-1].strip().startswith("64 at once, Burr at an easier shape: 0.80× Burr in a row")


def test_contestants_take_turns(tmp_path: Path) -> None:
    def job(folder: str, result: str) -> Job:
        return Job(name="orchestra", folder=folder, result=result, at_once=2, least=2)

    pair = [Contestant(name, 2, tmp_path, job, "benchmarks.engine_worker", 60.0) for name in "ab"]
    for _ in range(3):
        for each in pair:
            each.play()
    assert [each.figures().metrics["runs"] for each in pair] == [6, 6]


def test_a_contestant_that_cannot_play_says_why(tmp_path: Path) -> None:
    def job(folder: str, result: str) -> Job:
        return Job(name="orchestra", folder=folder, result=result, at_once=0)

    contestant = Contestant("x", 2, tmp_path, job, "benchmarks.nobody", 60.0)
    contestant.play()
    assert "No module named benchmarks.nobody" in (contestant.figures().missing or "")


def test_what_telemetry_costs_is_judged() -> None:
    row = _row(orchestra=130.0)
    row["orchestra, telemetry"] = _row(told=99.0)["told"]
    (verdict,) = verdicts({64: row}, {})
    assert not verdict.kept
    assert verdict.measured == "+31% time a run (+31% CPU)"


def test_what_was_measured_of_ours_alone_is_judged() -> None:
    growth = {"first": 0.001, "first_cpu": 0.001, "last": 0.003, "last_cpu": 0.0014}
    growth |= {"each": 0.002, "each_cpu": 0.001, "short_cpu": 0.001}
    own = {
        "growth": Figures(name="growth", n=10_000, metrics=growth),
        "idle": Figures(name="idle", n=5, metrics={"share": 0.02}),
        "wide": Figures(name="wide", n=200, metrics={"memory": 6e7, "memory_before": 4e7, "each_cpu": 0.001}),
    }
    first, second, third = verdicts({}, own)
    assert first.kept
    assert first.measured == "1.40× CPU (3.00× by the clock)"
    assert not second.kept
    assert third.kept
    assert "the target is for 1,000" in third.promise
    lines = "\n".join([*engine_report.alone(own, PLAIN), *engine_report.conclusion({}, own, PLAIN)])
    assert "2.00% of a core" in lines
    assert "FAIL  a waiting run" in lines


def test_tables_have_ratios_and_reasons() -> None:
    row = _row(orchestra=100.0, Burr=50.0)
    row["DBOS"] = Figures(name="DBOS", n=64, missing="not installed")
    text = "\n".join(engine_report.section(64, row, PLAIN))
    assert "50.0  2.00×" in text
    assert "DBOS: not measured: not installed" in text
    assert "Measure again" not in text
    row["Burr"].metrics["file"] = 0.002
    assert "To make a file took 2 ms" in "\n".join(engine_report.section(64, row, PLAIN))


def test_our_engine_is_played(tmp_path: Path) -> None:
    job = Job(name="orchestra", folder=str(tmp_path), result="", at_once=4, least=6)
    figures = engine_worker.work(job, Alone())
    assert figures.metrics["runs"] == 6
    assert all(math.isfinite(value) and value > 0 for value in figures.metrics.values())


@pytest.mark.parametrize(("name", "size", "metric"), [("growth", 40, "last_cpu"), ("wide", 20, "memory")])
def test_ours_alone_is_measured(name: str, size: float, metric: str, tmp_path: Path) -> None:
    figures = engine_worker.work(Job(name=name, folder=str(tmp_path), result="", size=size), Alone())
    assert figures.n == size
    assert figures.metrics[metric] > 0


def test_a_waiting_run_is_answered(tmp_path: Path) -> None:
    figures = engine_worker.work(Job(name="idle", folder=str(tmp_path), result="", size=0.1), Alone())
    assert figures.metrics["share"] >= 0


def test_the_program_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    arguments = ["--quick", "--only", "orchestra", "--at-once", "2", "--seconds", "0.01"]
    assert engine.main([*arguments, "--folder", str(tmp_path), "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "2 runs at once" in printed
    written = json.loads(file.read_text())
    assert written["engines"]["2"]["orchestra"]["metrics"]["runs"] >= 2
