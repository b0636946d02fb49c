"""A run as a story: every event that matters as a sentence, for the lines of `run`, for `log` and `watch`."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import attrs

from orchestra.cli.render.screen import Line, Span, Style
from orchestra.cli.render.text import size
from orchestra.history.describe import figure, headline_text, stack_lines
from orchestra.ids import Instant
from orchestra.model.records import Decision, Failure, Wait
from orchestra.model.snapshot import Headline
from orchestra.model.value import Value

_DIGITS: Final = re.compile(r"\d+")
_STEPS_US: Final = 1_000_000
_REPORTS_US: Final = 10_000_000


class Answers(Protocol):
    """Whoever can open an answer, such as an archive."""

    def value(self, value: Value, /) -> object:
        """The data of a frozen value."""


class ToldEvent(NamedTuple):
    """A sentence: who, what, and how it should look."""

    who: str
    text: str
    style: Style = ""

    @property
    def line(self) -> Line:
        """The sentence as spans."""
        who: list[Span] = [(f"{self.who} ", "accent")] if self.who else []
        return [*who, (self.text, self.style)]


class ProgressFold:
    """Which of the many reports of progress are worth a line.

    An agent's first, every tenth of its work, and another step at most once a second; a step that only
    counts on is the same. Of an agent that reports neither, one in ten seconds.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[int, str, Instant]] = {}

    def is_news(self, run: str, event: Headline, at: Instant) -> bool:
        """Whether an event should be told; everything but progress should."""
        if event.kind != "milestone_reached":
            return True
        key = run, event.who or ""
        tenth, step = int(_figures(event).get("progress", 0) * 10), _DIGITS.sub("#", event.what)
        if (known := self._last.get(key)) is not None:
            last_tenth, last_step, last_at = known
            passed = at - last_at
            news = tenth > last_tenth or passed >= _REPORTS_US or (step != last_step and passed >= _STEPS_US)
            if not news:
                return False
        self._last[key] = tenth, step, at
        return True


def tell_event(event: Headline) -> ToldEvent | None:
    """An event in a sentence; None for those that only the state needs to know."""
    tell = _SENTENCES.get(event.kind)
    if tell is None:
        return None
    text, style = tell(attrs.evolve(event, what=headline_text(event)))
    return ToldEvent(event.who or "", text, style) if text else None


def stack_spans(failure: Failure, indent: int) -> Iterator[Line]:
    """Where an agent failed, to stand below the sentence that says so."""
    for line in stack_lines(failure.stack, str(Path.cwd())):
        yield [(" " * indent + line, "dim")]


def tell_closed_wait(wait: Wait, answers: Answers) -> ToldEvent:
    """The end of a wait: what a person said to what, or that something is there."""
    match wait.kind:
        case "question":
            answer = "nothing" if wait.answer is None else answers.value(wait.answer)
            return ToldEvent("", f"answered: {answer} (to: {wait.text})", "good")
        case "dependency":
            return ToldEvent("", f"{wait.text} is there now", "good")
        case "breakpoint":
            return ToldEvent("", f"goes on from the breakpoint {wait.text}")
        case _:
            return ToldEvent(wait.agent or "", "has waited long enough")


def reason_spans(decision: Decision | None) -> Line:
    """The reason of a decision, to stand behind it."""
    return [(f", because {decision.rationale}", "dim")] if decision is not None and decision.rationale else []


def _figures(event: Headline) -> dict[str, int | float]:
    return dict(event.figures)


def _sure(event: Headline) -> str:
    confidence = _figures(event).get("confidence")
    return "" if confidence is None else f" (confidence {figure(confidence)})"


def _because(event: Headline) -> str:
    return f": {event.what}" if event.what else ""


def _phase_begins(event: Headline) -> tuple[str, Style]:
    visit = _figures(event).get("visit", 1)
    return f"phase {event.what} begins" + (f", visit {visit}" if visit > 1 else ""), "bold"


def _launched(event: Headline) -> tuple[str, Style]:
    attempt = _figures(event).get("attempt", 1)
    return ("begins", "") if attempt == 1 else (f"begins again (attempt {attempt})", "warn")


def _milestone(event: Headline) -> tuple[str, Style]:
    progress = _figures(event).get("progress")
    share = "" if progress is None else f"{progress:.0%}"
    if event.what:
        return f"is at {event.what}" + (f" ({share})" if share else ""), "dim"
    return (f"is at {share}" if share else "saved its progress"), "dim"


def _failed(event: Headline) -> tuple[str, Style]:
    _, _, error = event.what.partition(": ")
    return f"failed: {error or event.what}", "bad"


def _retired(event: Headline) -> tuple[str, Style]:
    return f"is {event.what.rpartition(': ')[2]}", "dim"


def _judged(event: Headline) -> tuple[str, Style]:
    score = _figures(event).get("score")
    style: Style = "good" if event.what == "accept" else "warn"
    return f"says {event.what}" + ("" if score is None else f" (score {figure(score)})"), style


_WAITS: Final = {
    "question": "asks",
    "dependency": "needs",
    "rate_limit": "has to wait",
    "breakpoint": "stops at a breakpoint",
    "timer": "waits",
}


def _waits(event: Headline) -> tuple[str, Style]:
    kind, _, text = event.what.partition(": ")
    return f"{_WAITS.get(kind, 'waits')}: {text}", "warn"


def _wrote(event: Headline) -> tuple[str, Style]:
    return f"wrote {event.what} ({size(int(_figures(event).get('bytes', 0)))})", ""


def _rolled_back(event: Headline) -> tuple[str, Style]:
    figures = _figures(event)
    return f"rolled back from @{figures.get('from')} to @{figures.get('to')}{_because(event)}", "warn"


def _ended(event: Headline) -> tuple[str, Style]:
    outcome, _, reason = event.what.partition(": ")
    styles: dict[str, Style] = {"completed": "good", "failed": "bad"}
    word = "stopped" if outcome == "shutdown" else outcome
    return word + (f": {reason}" if reason else ""), styles.get(outcome, "warn")


def _snapshot(event: Headline) -> tuple[str, Style]:
    why, _, note = event.what.partition(": ")
    if why == "periodic":
        return "", ""
    return f"snapshot taken ({why.replace('_', ' ')})" + (f": {note}" if note else ""), "dim"


_SENTENCES: Final[dict[str, Callable[[Headline], tuple[str, Style]]]] = {
    "run_started": lambda event: (f"started {event.what}", "bold"),
    "phase_started": _phase_begins,
    "phase_completed": lambda event: (f"phase {event.what} is done", "good"),
    "round_started": lambda event: (f"round {_figures(event).get('round')} of {event.what} begins", "warn"),
    "agent_launched": _launched,
    "milestone_reached": _milestone,
    "task_completed": lambda event: (f"finished{_sure(event)}", "good"),
    "task_failed": _failed,
    "task_retired": _retired,
    "decision_made": lambda event: (f"decided: {event.what}", ""),
    "evaluation_completed": _judged,
    "wait_opened": _waits,
    "wait_closed": lambda event: (f"wait over: {event.what}", ""),
    "output_written": _wrote,
    "effect_intended": lambda event: (f"is about to: {event.what}", ""),
    "run_paused": lambda event: (f"paused{_because(event)}", "warn"),
    "run_waiting": lambda event: (f"waits for somebody{_because(event)}", "warn"),
    "run_resumed": lambda event: (f"resumed{_because(event)}", "warn"),
    "rolled_back": _rolled_back,
    "forked": lambda event: (f"forked from {event.what}", "warn"),
    "definition_accepted": lambda event: ("goes on with a changed workflow", "warn"),
    "state_edited": lambda event: (f"{event.what} was set by hand", "warn"),
    "snapshot_requested": _snapshot,
    "run_ended": _ended,
}
