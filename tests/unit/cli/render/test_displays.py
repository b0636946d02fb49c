"""Displays: lines, JSON and silence; and the story that all of them tell."""

import io
import json
import threading
from typing import Any

import attrs
import pytest

from orchestra.cli.render.displays import BackgroundDisplay, Display, JsonLines, Lines, clock, display_for
from orchestra.cli.render.screen import Screen
from orchestra.cli.render.story import _SENTENCES, TALKS, ProgressFold, tell_event
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.history.describe import sentence as described
from orchestra.ids import Digest, PhaseId, TaskId
from orchestra.limits import HEADLINE_CHARS
from orchestra.model import events as ev
from orchestra.model.headline import headline
from orchestra.model.records import Output
from orchestra.model.snapshot import Headline
from orchestra.ports.sink import CheckpointFailed
from tests.unit.cli import states
from tests.unit.cli.states import BEGINNING, RUN, STARTED, at, state_after, turn

SILENT = {
    "task_planned",
    "text_emitted",
    "confidence_reported",
    "context_contributed",
    "criterion_scored",
    "effect_settled",
    "spent",
    "limit_crossed",  # the decision beside it says it
}
"""Events that the state needs and a reader of the story does not."""


def test_a_line_that_had_to_be_cut_ends_with_a_word() -> None:
    long = ev.RunEnded(at=at(1), outcome="failed", reason="because of that, " * 20)
    cut = headline(long, state_after())
    sentence = tell_event(cut)
    assert sentence is not None
    assert sentence.text.endswith(" because of that, because of that…")
    assert described(cut).endswith(" because of that, because of that…")
    one_word = tell_event(Headline(kind="run_paused", what="x" * HEADLINE_CHARS))
    assert one_word is not None
    assert one_word.text == f"paused: {'x' * HEADLINE_CHARS}…"


def test_every_kind_of_event_is_told_or_left_out_on_purpose() -> None:
    assert set(ev.EVENT_KINDS) - set(_SENTENCES) - TALKS == SILENT


@pytest.mark.parametrize(
    ("kind", "what", "figures", "sentence"),
    [
        (
            "message_posted",
            "assistant streaming openai:gpt-5 p/x#2",
            {"step": 2},
            "asks openai:gpt-5 (step 2)",
        ),
        ("message_posted", "assistant complete a:b p/x y#2", {"step": 1}, "has the answer of a:b (step 1)"),
        ("message_posted", "assistant error a:b p/x#2", {"step": 1}, "got no whole answer from a:b (step 1)"),
        ("message_posted", "user p/x#1", {}, None),
        ("message_posted", "assistant of an old store", {}, None),
        ("message_posted", "", {}, None),
        ("message_streamed", "p/x#2", {"characters": 20}, "is writing"),
        ("tool_call_changed", "note: started", {}, "called note"),
        ("tool_call_changed", "note: started", {"attempt": 2}, "called note (attempt 2)"),
        ("tool_call_changed", "note: done", {}, "note done"),
        ("tool_call_changed", "note: waiting", {}, "wants to call note"),
        ("tool_call_changed", "note: failed: ValueError: a: b", {}, "note failed: ValueError: a: b"),
        ("tool_call_changed", "note: refused", {}, "note was refused"),
    ],
)
def test_what_an_agent_and_a_model_do_is_told(
    kind: str, what: str, figures: dict[str, Any], sentence: str | None
) -> None:
    line = Headline(kind=kind, who="x", what=what, figures=tuple(figures.items()))
    told = tell_event(line)
    assert (told and told.text) == sentence
    if told is not None and kind != "message_streamed":
        assert described(line) == sentence


def test_a_message_that_streams_is_told_at_first_and_now_and_then() -> None:
    fold = ProgressFold()
    first, second = (Headline(kind="message_streamed", who="x", what=f"p/x#{at}") for at in (2, 3))
    told = [
        fold.is_news(RUN, line, at(when))
        for line, when in ((first, 0), (first, 1), (first, 10), (second, 11))
    ]
    assert told == [True, False, True, True]


@pytest.mark.parametrize(
    ("kind", "what", "figures", "sentence"),
    [
        ("agent_launched", "p/x", {"attempt": 1}, "begins"),
        ("agent_launched", "p/x", {"attempt": 2}, "begins again (attempt 2)"),
        ("milestone_reached", "step", {"progress": 0.4}, "is at step (40%)"),
        ("milestone_reached", "", {"progress": 0.4}, "is at 40%"),
        ("milestone_reached", "", {}, "saved its progress"),
        ("task_completed", "p/x", {"confidence": 0.9}, "finished (confidence 0.9)"),
        ("task_failed", "p/x: ValueError: boom", {}, "failed: ValueError: boom"),
        ("task_retired", "p/x: skipped", {}, "is skipped"),
        ("evaluation_completed", "revise", {"score": 0.5}, "says revise (score 0.5)"),
        ("wait_opened", "dependency: KEY", {}, "needs: KEY"),
        ("output_written", "p/x.md", {"bytes": 2048}, "wrote p/x.md (2.0 KB)"),
        ("rolled_back", "why", {"from": 9, "to": 4}, "rolled back from @9 to @4: why"),
        ("run_ended", "shutdown: asked to", {}, "stopped: asked to"),
        ("run_ended", "completed", {}, "completed"),
        ("snapshot_requested", "user_requested: note", {}, "snapshot taken (user requested): note"),
        ("phase_started", "p", {}, "phase p begins"),
        ("phase_started", "p", {"visit": 2}, "phase p begins, visit 2"),
        ("round_started", "p", {"round": 2}, "round 2 of p begins"),
        ("state_edited", "inputs.x", {}, "inputs.x was set by hand"),
    ],
)
def test_sentences(kind: str, what: str, figures: dict[str, Any], sentence: str) -> None:
    found = tell_event(Headline(kind=kind, who="x", what=what, figures=tuple(figures.items())))
    assert found is not None
    assert found.text == sentence


def test_periodic_snapshots_are_not_told() -> None:
    assert tell_event(Headline(kind="snapshot_requested", what="periodic")) is None


def _lines(named: bool = False) -> tuple[Lines, io.StringIO]:
    out = io.StringIO()
    return Lines(Screen(out, tty=False, colour=False, columns=None), named=named), out


def test_an_answer_is_told_with_its_question() -> None:
    display, out = _lines()
    asked = states.asked("Publish?", ("yes", "no"))
    over = ev.WaitClosed(at=at(2), wait=asked.wait, answer=freeze("yes", Addresser()))
    display.notice(turn(state_after(*BEGINNING, asked, over), over))
    assert out.getvalue().endswith("answered: yes (to: Publish?)\n")


def test_lines_have_the_time_since_the_run_began() -> None:
    display, out = _lines()
    display.notice(turn(state_after(*BEGINNING), STARTED, *BEGINNING))
    decided = states.decided("Go on", "there is more")
    display.notice(turn(state_after(*BEGINNING, decided), decided, seq=1))
    assert out.getvalue().splitlines() == [
        "00:00.0  started tiny",
        "00:00.0  phase find begins",
        "00:00.0  one begins",
        "00:01.0  atlas decided: Go on, because there is more",
    ]
    assert display.runs == [RUN]


def test_lines_of_several_runs_say_whose_they_are() -> None:
    display, out = _lines(named=True)
    display.notice(turn(state_after(), STARTED))
    assert out.getvalue() == f"00:00.0  {RUN}  started tiny\n"


def _progress(*reports: tuple[float, str, float]) -> list[str]:
    """What is told of progress, each with the step and the second of its report."""
    display, out = _lines()
    state = state_after(*BEGINNING)
    for seq, (share, step, second) in enumerate(reports):
        display.notice(turn(state, states.progress("one", share, step, second), seq=seq))
    return [line.partition(" is at ")[2] for line in out.getvalue().splitlines()]


def test_progress_is_told_in_tenths() -> None:
    reports = [(at / 100, f"file {at} of 100", at / 1000) for at in range(100)]
    assert _progress(*reports) == [f"file {at} of 100" + f" ({at}%)" for at in range(0, 100, 10)]


def test_another_step_is_told_once_a_second() -> None:
    reports = [(0.5, f"step {'abcdefghijklmnopqrstuvwxy'[at]}", at / 10) for at in range(25)]
    assert _progress(*reports) == ["step a (50%)", "step k (50%)", "step u (50%)"]


def test_a_step_that_only_counts_on_is_told_every_ten_seconds() -> None:
    reports = [(0.5, f"step {second}", second) for second in range(25)]
    assert _progress(*reports) == ["step 0 (50%)", "step 10 (50%)", "step 20 (50%)"]


def test_agents_and_runs_do_not_fold_one_another() -> None:
    fold, event = ProgressFold(), Headline(kind="milestone_reached", who="a", what="step")
    assert fold.is_news("r1", event, at(0))
    assert not fold.is_news("r1", event, at(0))
    assert fold.is_news("r2", event, at(0))
    assert fold.is_news("r1", attrs.evolve(event, who="b"), at(0))


def test_a_snapshot_that_was_not_saved_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    notice = CheckpointFailed(run=RUN, seq=3, at=at(0), error="the disk is full", unsaved=1)
    display, out = _lines()
    display.notice(notice)
    assert "the disk is full" in out.getvalue()
    Display().notice(notice)
    assert "the disk is full" in capsys.readouterr().err
    JsonLines().notice(notice)
    assert json.loads(capsys.readouterr().out)["kind"] == "checkpoint_failed"


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    written = Output(digest=Digest(b"\1" * 32), media_type="text/plain", size=3, at=at(1))
    events = (
        *BEGINNING,
        states.asked("Sure?", ("yes", "no")),
        states.failed("one", "boom"),
        ev.OutputWritten(at=at(1), path="find/x.txt", output=written),
    )
    JsonLines().notice(turn(state_after(*events), STARTED, *events))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    details = {line["kind"]: line["details"] for line in lines}
    assert details["task_planned"] == {"task": "find/one"}
    assert details["wait_opened"]["choices"] == ["yes", "no"]
    assert details["task_failed"]["message"] == "boom"
    assert details["output_written"] == {"path": "find/x.txt", "digest": "01" * 32, "size": 3}
    assert {line["run"] for line in lines} == {RUN}


def test_the_clock_is_always_as_wide() -> None:
    assert clock(0) == "00:00.0"
    assert clock(-5) == "00:00.0"
    assert clock(3_450_000) == "00:03.4"
    assert clock(12 * 60_000_000) == "12:00.0"
    assert clock(3_723_000_000) == "1:02:03"


def test_which_display() -> None:
    assert type(display_for(as_json=True, quiet=True, several=False)) is BackgroundDisplay
    assert type(display_for(as_json=False, quiet=True, several=False)) is Display
    assert type(display_for(as_json=False, quiet=False, several=True)) is BackgroundDisplay


def test_a_display_in_the_background_shows_all_in_order() -> None:
    inner, out = _lines()
    with BackgroundDisplay(inner) as display:
        for number in range(200):
            display.say(f"line {number}")
        display.notice(turn(state_after(), STARTED))
    assert out.getvalue().splitlines()[:200] == [f"line {number}" for number in range(200)]
    assert display.runs == inner.runs == [RUN]


class _Stuck(Display):
    """A reader that does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()

    def say(self, text: str) -> None:
        self.reads.wait()


def test_a_reader_that_does_not_read_holds_nobody_up() -> None:
    stuck = _Stuck()
    with BackgroundDisplay(stuck) as display:
        for _ in range(1000):
            display.say("nobody reads this")
        stuck.reads.set()


class _Gone(Display):
    """A reader that went away."""

    def say(self, text: str) -> None:
        raise BrokenPipeError


def test_a_reader_that_went_away_is_forgotten() -> None:
    with BackgroundDisplay(_Gone()) as display:
        for _ in range(10):
            display.say("nobody reads this")


def test_quiet_remembers_the_newest_state() -> None:
    display = Display()
    display.notice(turn(state_after(), STARTED))
    done = (*BEGINNING, ev.TaskCompleted(at=at(1), task=TaskId("find/one")))
    display.notice(turn(state_after(*done), done[-1], seq=1))
    assert display.states[RUN].completed_tasks == 1
    assert display.states[RUN].cursor.phase == PhaseId("find")
