"""The picture of a run: what it shows, and that it always fits."""

import pytest

from orchestra.cli.render.live import LiveRun, frame
from orchestra.cli.render.screen import length
from orchestra.ids import AgentId, PhaseId, TaskId
from orchestra.model import events as ev
from orchestra.model.state import State
from tests.unit.cli import states
from tests.unit.cli.states import BEGINNING, WORKFLOW, at, state_after


def _drawn(state: State, *, columns: int = 80, rows: int = 30, known: bool = True) -> list[str]:
    shown = LiveRun(state=state, workflow=WORKFLOW if known else None, passed="00:03.4", now=at(3.4))
    lines = frame(shown, columns=columns, rows=rows)
    assert len(lines) <= rows
    assert all(length(line) <= columns for line in lines)
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def test_the_beginning() -> None:
    assert _drawn(state_after(*BEGINNING)) == [
        "⠋ running  tiny_20261116_120000_ab                                       00:03.4",
        "  ● find                                                                   3.4 s",
        "    ⠋ one",
        "    ○ two                 after one",
        "  ○ tell",
    ]


def test_progress_confidence_spending_and_decisions() -> None:
    lines = _drawn(
        state_after(
            *BEGINNING,
            states.progress("one", 0.5, "half of it"),
            ev.ConfidenceReported(at=at(1), value=0.81, agent=AgentId("one")),
            ev.ConfidenceReported(at=at(1), value=0.81),
            ev.Spent(at=at(1), tokens_in=1000, tokens_out=500, api_calls=2, cost_micros=120_000),
            states.decided("Go on"),
        )
    )
    assert lines[2].split() == ["⠋", "one", "━━━━━━──────", "50%", "half", "of", "it", "0.81"]
    assert len(lines[2]) == 80
    assert "  confidence  ━━━━━━━━━━── 0.81    1,000 tokens in, 500 out, 0.12 paid, 2 calls" in lines
    assert "  decided     atlas: Go on" in lines


def test_failures_and_further_attempts() -> None:
    events = (*BEGINNING, states.failed("one", "not yet"))
    assert any("failed 1×: ValueError: not yet" in line for line in _drawn(state_after(*events)))
    again = _drawn(state_after(*events, states.launched("one", attempt=2)))
    assert any("attempt 2" in line for line in again)


def test_what_is_done_and_what_comes() -> None:
    lines = _drawn(
        state_after(
            *BEGINNING,
            ev.TaskCompleted(at=at(1.5), task=TaskId("find/one"), confidence=0.9),
            ev.PhaseCompleted(at=at(2), phase=PhaseId("find")),
            ev.PhaseStarted(at=at(2), phase=PhaseId("tell")),
        )
    )
    assert lines[1].split() == ["✔", "find", "2.0", "s"]
    assert lines[2].split() == ["●", "tell", "1.4", "s"]


def test_a_question_says_how_to_answer_it() -> None:
    lines = _drawn(state_after(*BEGINNING, states.asked("Publish?", ("yes", "no"))))
    assert "  waits for   Publish? [yes, no]" in lines
    assert "              orchestra answer tiny_20261116_120000_ab yes" in lines
    assert any(line.startswith("    ? one") for line in lines)


def test_the_answer_goes_to_the_store_that_was_given() -> None:
    state = state_after(*BEGINNING, states.asked("Publish?", ("yes", "no")))
    shown = LiveRun(state=state, workflow=None, passed="00:03.4", now=at(3.4), store="sqlite:other.db")
    lines = ["".join(text for text, _ in line).strip() for line in frame(shown, columns=120, rows=24)]
    assert f"orchestra answer {state.run} yes --store sqlite:other.db" in lines


def test_without_the_workflow_only_what_was_visited_is_known() -> None:
    lines = _drawn(state_after(*BEGINNING), known=False)
    assert not any("tell" in line for line in lines)


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 8, 12, 40])
@pytest.mark.parametrize("columns", [30, 80, 200])
def test_it_always_fits(rows: int, columns: int) -> None:
    many = [event for n in range(60) for event in (states.planned(f"s{n}"), states.launched(f"s{n}"))]
    state = state_after(
        *BEGINNING, *many, states.asked("A long question? " * 20), states.decided("Much to say " * 30)
    )
    lines = _drawn(state, rows=rows, columns=columns)
    assert len(lines) == 1 if rows < 6 else lines


def test_of_many_assignments_those_under_way_are_shown() -> None:
    events: list[ev.Event] = []
    for number in range(40):
        events += [states.planned(f"s{number}"), states.launched(f"s{number}")]
        if number < 39:
            events.append(ev.TaskCompleted(at=at(1), task=TaskId(f"find/s{number}")))
    lines = _drawn(state_after(BEGINNING[0], *events), rows=14)
    assert any(line.startswith("    ⠋ s39") for line in lines)
    assert any("39 of 40 done" in line for line in lines)


def test_text_of_agents_cannot_reach_the_terminal() -> None:
    lines = _drawn(state_after(*BEGINNING, states.progress("one", 0.1, "\x1b[31mred\x07")))
    assert not any("\x1b" in line or "\x07" in line for line in lines)


def test_an_answer_that_streams_shows_its_end() -> None:
    asks = ev.MessagePosted(
        at=at(1),
        message="find/one#1",
        role="assistant",
        agent=AgentId("one"),
        status="streaming",
        model="openai:gpt-5",
        step_number=2,
    )
    asked = state_after(*BEGINNING, asks)
    assert any("asks openai:gpt-5 (step 2)" in line for line in _drawn(asked))
    grown = state_after(
        *BEGINNING, asks, ev.MessageStreamed(at=at(2), message="find/one#1", text="# A\nso it is")
    )
    (line,) = [line for line in _drawn(grown) if "so it is" in line]
    assert "# A" not in line
