"""Measuring, on a small scale and without a clock to satisfy: every figure is there and nothing is lost."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import checkpoint, figures, measure_ours, measure_peer
from benchmarks.figures import Figures, from_json, joined, percentiles
from benchmarks.ours import OURS, Ours
from benchmarks.peers.base import Counts, Item, Peer, Unsupported

N = 70


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is measured once: the whole heap is collected before, and that of tests is large."""
    monkeypatch.setattr(measure_ours, "REPEATS", 1)
    monkeypatch.setattr(figures, "LEAST_REPEATS", 1)
    monkeypatch.setattr(figures, "BUDGET_SECONDS", 0.0)


@pytest.mark.parametrize("contestant", OURS, ids=lambda ours: ours.name)
def test_our_stores_are_measured_whole(contestant: Ours, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    figures = measure_ours.measure(contestant, folder, N)
    wanted = {"save_p50", "save_p95", "save_p99", "resume", "resume_all", "load", "list", "diff", "diff_step"}
    assert wanted <= figures.metrics.keys()
    assert ("bytes" in figures.metrics) == (not contestant.in_memory)
    assert ("bare_p50" in figures.metrics) == contestant.bare
    assert all(math.isfinite(value) and value >= 0 for value in figures.metrics.values())
    assert figures.windows[-1][0] == N
    assert not figures.unsupported


class ListPeer(Peer):
    """A peer that keeps whole states in a list."""

    name = "list"
    durable = False
    grows = True

    def __init__(self, folder: Path) -> None:
        self.state: list[tuple[Item, Item]] = []
        self.saved: dict[int, int] = {}

    @staticmethod
    def probe() -> None:
        return None

    def save(self, step: int, task: Item, decision: Item) -> None:
        assert step == len(self.state), "steps come in order"
        self.state.append((task, decision))
        self.saved[step] = len(self.state)

    def seed(self, tasks: Sequence[Item], decisions: Sequence[Item]) -> None:
        self.state.extend(zip(tasks, decisions, strict=True))

    def resume(self) -> Counts:
        return (len(self.state), len(self.state))

    def load(self, step: int) -> Counts:
        return (self.saved[step], self.saved[step])

    def list(self) -> int:
        return len(self.saved)


class BareListPeer(ListPeer):
    """The same, without a way to list."""

    name = "bare list"

    def list(self) -> int:
        raise Unsupported("it cannot list")


class AbsentPeer(ListPeer):
    """One whose library is not there."""

    name = "absent"

    @staticmethod
    def probe() -> None:
        raise ModuleNotFoundError("No module named 'absent'")


def test_a_small_run_of_a_peer_is_saved_step_by_step(tmp_path: Path) -> None:
    figures = measure_peer.measure(ListPeer, tmp_path, 50, 20)
    assert figures.estimated == []
    assert {"save_p50", "resume", "load", "list"} <= figures.metrics.keys()


def test_a_large_run_of_a_growing_peer_is_sampled(tmp_path: Path) -> None:
    figures = measure_peer.measure(ListPeer, tmp_path, 3000, 40)
    assert "save_p50" in figures.estimated
    assert figures.notes == ["40 saves spread over 3000 steps"]


def test_samples_are_spread_evenly() -> None:
    blocks = measure_peer.planned(10_000, 200)
    assert len(blocks) == measure_peer.BLOCKS
    assert sum(last - first for first, last in blocks) == 200
    mean = sum(first + last for first, last in blocks) / 2 / len(blocks)
    assert mean == 5000
    assert measure_peer.planned(1000, 200) == [(0, 1000)]


def test_what_a_peer_lacks_is_said(tmp_path: Path) -> None:
    figures = measure_peer.measure(BareListPeer, tmp_path, 10, 10)
    assert figures.unsupported == {"list": "it cannot list"}
    assert "list" not in figures.metrics


def test_a_peer_that_is_not_there_is_named(tmp_path: Path) -> None:
    figures = measure_peer.measure(AbsentPeer, tmp_path, 10, 10)
    assert figures.missing == "ModuleNotFoundError: No module named 'absent'"


def test_percentiles_are_measured_values() -> None:
    assert percentiles([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0)
    assert percentiles([float(value) for value in range(1, 101)]) == (51.0, 96.0, 100.0)


def test_rounds_are_joined_by_their_median() -> None:
    rounds = [Figures(name="x", n=1, metrics={"save_p50": value}) for value in (9.0, 1.0, 2.0)]
    assert joined(rounds).metrics == {"save_p50": 2.0}
    assert joined([Figures(name="x", n=1, missing="gone"), rounds[1]]).metrics == {"save_p50": 1.0}


def test_the_command_prints_a_table_and_writes_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures.json"
    words = ["--only", "orchestra memory", "--n", "20", "--ours", "", "--rounds", "1"]
    assert checkpoint.main([*words, "--folder", str(tmp_path), "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "N = 20" in printed
    assert "\x1b" not in printed
    data = json.loads(path.read_text())["figures"]["20"]["orchestra memory"]
    metrics = from_json(data).metrics
    assert metrics["save_p50"] > 0
    assert "machine_load" in metrics
    assert metrics["load"] != metrics["machine_load"], "loading a step is not the load of the machine"
    assert [each.name for each in tmp_path.iterdir()] == ["figures.json"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match="No contestant is called that"):
        checkpoint.main(["--only", "nobody"])
