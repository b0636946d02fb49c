"""The benchmark of conversations: who holds them says all of it, and the verdicts follow from the figures."""

import gc
import math
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import streaming, streaming_report
from benchmarks.figures import Figures
from benchmarks.flows import Alone
from benchmarks.streaming_report import BARE, OFF, OURS, PACED, TALK
from benchmarks.streaming_worker import WARM_STEPS, Job, step_figures, work
from benchmarks.table import Paint
from benchmarks.talks import STREAMS, TALKS, Talk
from benchmarks.talks.script import Ticks, line, tokens

PLAIN = Paint(enabled=False)
STEPS = 12


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What libraries are told by variables, and how the heap is set, is for workers alone."""
    held, threshold = dict(os.environ), gc.get_threshold()
    yield
    os.environ.clear()
    os.environ.update(held)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def _marked(talk: type[Talk]) -> object:
    away = any(find_spec(each) is None for each in ("langgraph", "dbos") if each in talk.distributions)
    return pytest.param(talk, marks=pytest.mark.skipif(away, reason="the extra bench is not installed"))


@pytest.mark.parametrize("talk", [_marked(each) for each in TALKS], ids=[each.name for each in TALKS])
def test_everybody_holds_the_whole_conversation(talk: type[Talk], tmp_path: Path) -> None:
    figures = work(Job(name=talk.name, folder=str(tmp_path), result="", steps=STEPS), Alone(1))
    assert {"p50", "p95", "first", "last", "first_cpu", "last_cpu", "bytes"} <= figures.metrics.keys()
    assert all(math.isfinite(value) and value >= 0 for value in figures.metrics.values())
    said = sum(len(line(number).said) + len(line(number).found) for number in range(1, STEPS))
    saved = talk.unsaved is not None
    assert (figures.metrics["bytes"] > said / 3) == saved, "what says that it saves has it on disk"
    assert figures.version


@pytest.mark.parametrize("talk", STREAMS, ids=lambda talk: talk.name)
def test_a_stream_comes_whole(talk: type[Talk], tmp_path: Path) -> None:
    figures = work(Job(name=talk.name, folder=str(tmp_path), result="", tokens=2000), Alone(1))
    assert figures.metrics["rate"] > 0
    assert (figures.metrics["bytes"] > 2000) == (talk.unsaved is not None)


def test_a_conversation_that_lost_a_step_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ticks, "tick", lambda self: None)
    with pytest.raises(AssertionError, match="0 steps"):
        work(Job(name=BARE, folder=str(tmp_path), result="", steps=WARM_STEPS), Alone(1))


def test_the_script_is_the_same_every_time() -> None:
    assert tokens(500) == tokens(600)[:500]
    assert line(3) == line(3) != line(4)


def test_the_very_first_step_counts_neither_as_first_nor_as_last() -> None:
    steps = [(100.0, 100.0), *((float(number), float(number)) for number in range(1, 31))]
    found = step_figures([steps])
    assert (found["first"], found["last"]) == (5.5, 25.5)


def _figures(name: str, **metrics: float) -> Figures:
    return Figures(name=name, n=100, metrics={"machine_load": 0.1, "memory": 1.0, "bytes": 1.0, **metrics})


def test_the_verdicts_follow_from_the_figures() -> None:
    slow = {OURS: _figures(OURS, rate=80.0), OFF: _figures(OFF, rate=100.0)}
    steps = {"first": 2.0, "last": 3.9, "first_cpu": 2.0, "last_cpu": 3.0}
    talk = {OURS: _figures(OURS, **steps), BARE: _figures(BARE, first_cpu=1.0, last_cpu=1.9)}
    rate, growth = streaming_report.verdicts({PACED: slow, TALK: talk})
    assert (rate.kept, growth.kept) == (False, True)
    assert "0.80×" in rate.measured
    assert "by CPU 1.50×, of which pydantic-ai alone 1.90× and the rest 1.10×" in growth.measured
    assert not streaming_report.verdicts({TALK: {OURS: Figures(name=OURS, n=1, missing="gone")}})


def test_who_is_missing_is_named_in_the_table() -> None:
    row = {OURS: Figures(name=OURS, n=9, missing="gone"), OFF: _figures(OFF, rate=5.0, cpu=1.0)}
    text = "\n".join(streaming_report.section(PACED, row, PLAIN))
    assert "orchestra: not measured: gone" in text


def test_the_command_measures_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "not saved", "--rounds", "1", "--turns", "1", "--messages", "24", "--seconds", "0.01"]
    file = tmp_path / "figures.json"
    assert streaming.main([*words, "--folder", str(tmp_path), "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "A conversation   (12 steps" in printed
    assert "\x1b" not in printed
    assert "pydantic-ai-slim" in printed
    assert [each.name for each in tmp_path.iterdir()] == ["figures.json"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match="No contestant is called that"):
        streaming.main(["--only", "nobody"])
