"""Events in one line each."""

from typing import Any

import pytest

from orchestra.ids import AgentId, Digest, Instant, RunId, TaskId
from orchestra.limits import HEADLINE_CHARS, HEADLINE_EVENTS
from orchestra.model import events as ev
from orchestra.model.headline import headline, headlines
from orchestra.model.records import Decision, Output, ToolCall
from orchestra.model.snapshot import Headline
from tests.unit.model.states import AGENT, AT, FAILED, LAUNCHED, PHASE, PLANNED, RUN, TASK, started

STATE = started(PLANNED, LAUNCHED)


def _decided(description: str) -> ev.Event:
    decision = Decision(at=AT, agent=AGENT, kind="k", description=description, confidence=0.5)
    return ev.DecisionMade(at=AT, decision=decision)


@pytest.mark.parametrize(
    ("event", "who", "what", "figures"),
    [
        (_decided("this"), AGENT, "this", {"confidence": 0.5}),
        (LAUNCHED, AGENT, TASK, {"attempt": 1}),
        (FAILED, AGENT, f"{TASK}: ValueError: no", {}),
        (ev.TaskRetired(at=AT, task=TASK, outcome="skipped"), AGENT, f"{TASK}: skipped", {}),
        (ev.MilestoneReached(at=AT, agent=AGENT, progress=0.5), AGENT, "", {"progress": 0.5}),
        (ev.TextEmitted(at=AT, agent=AGENT, text="hello"), AGENT, "", {"characters": 5}),
        (ev.Spent(at=AT, tokens_in=2, tokens_out=3), None, "", {"tokens": 5, "api_calls": 0}),
        (ev.WaitOpened(at=AT, wait="w", waits_for="question", text="Go on?"), None, "question: Go on?", {}),
        (ev.SnapshotRequested(at=AT, why="periodic"), None, "periodic", {}),
        (ev.SnapshotRequested(at=AT, why="user_requested", note="n"), None, "user_requested: n", {}),
        (
            ev.RolledBack(at=AT, from_seq=9, to_seq=4, reason="r", generation=1),
            None,
            "r",
            {"from": 9, "to": 4},
        ),
        (
            ev.Forked(at=AT, run=RunId("s"), from_run=RUN, from_seq=3, from_digest=Digest(bytes(32))),
            None,
            "r@3",
            {},
        ),
        (ev.RunEnded(at=AT, outcome="failed", reason="why"), None, "failed: why", {}),
        (ev.PhaseStarted(at=AT, phase=PHASE), None, PHASE, {}),
    ],
    ids=range(14),
)
def test_lines(event: ev.Event, who: str | None, what: str, figures: dict[str, float]) -> None:
    line = headline(event, STATE)
    assert (line.kind, line.who, line.what, dict(line.figures)) == (event.kind, who, what, figures)


def test_an_output_says_how_large_it_is() -> None:
    output = Output(digest=Digest(bytes(32)), media_type="text/plain", size=12, agent=AGENT, at=AT)
    line = headline(ev.OutputWritten(at=AT, path="a.md", output=output), STATE)
    assert (line.who, line.what, line.figures) == (AGENT, "a.md", (("bytes", 12),))


def test_long_ones_are_cut() -> None:
    assert len(headline(_decided("x" * 1000), STATE).what) == HEADLINE_CHARS


def test_a_turn_of_many_events_counts_the_rest() -> None:
    spent = ev.Spent(at=Instant(1), agent=AgentId("a"))
    assert len(headlines((spent,) * HEADLINE_EVENTS, STATE)) == HEADLINE_EVENTS
    lines = headlines((spent,) * (HEADLINE_EVENTS + 5), STATE)
    assert lines[-1] == Headline(kind="more", figures=(("events", 5),))
    assert len(lines) == HEADLINE_EVENTS + 1


def test_a_task_that_nobody_knows_is_still_a_line() -> None:
    line = headline(ev.TaskCompleted(at=AT, task=TaskId("unknown")), STATE)
    assert line.what == "unknown"


def _posted(**fields: Any) -> ev.MessagePosted:
    return ev.MessagePosted(at=AT, message=f"{TASK}#2", agent=AGENT, task=TASK, **fields)


def test_a_message_says_who_asks_which_model() -> None:
    asks = _posted(role="assistant", status="streaming", model="openai:gpt-5", step_number=2)
    line = headline(asks, STATE)
    assert (line.who, line.what) == (AGENT, f"assistant streaming openai:gpt-5 {TASK}#2")
    assert line.figures == (("step", 2),)
    said = headline(_posted(role="user", step_number=2), STATE)
    assert (said.who, said.what, said.figures) == (AGENT, f"user {TASK}#2", ())
    grown = headline(
        ev.MessageStreamed(at=AT, message=f"{TASK}#2", text="abc"), started(PLANNED, LAUNCHED, asks)
    )
    assert (grown.who, grown.figures) == (AGENT, (("characters", 3),))


def test_a_tool_call_says_what_went_wrong_in_bounds() -> None:
    record = ToolCall(tool="note", agent=AGENT, status="failed", attempts=2, error="x" * 1000)
    line = headline(ev.ToolCallChanged(at=AT, call=f"{TASK}#c", record=record), STATE)
    assert line.what.startswith("note: failed: xxx")
    assert len(line.what) == HEADLINE_CHARS
    assert line.figures == (("attempt", 2),)
