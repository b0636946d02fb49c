"""A run as a story: every event that matters as a sentence, for the lines of `run`, for `log` and `watch`."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from orchestra.cli.render.screen import Line, Span, Style
from orchestra.cli.render.text import size
from orchestra.history.describe import figure, headline_text, stack_lines, talk_of
from orchestra.ids import Instant
from orchestra.model.records import Decision, Failure, Wait
from orchestra.model.snapshot import Headline
from orchestra.model.value import Value

_DIGITS: Final = re.compile(r"\d+")
_STEPS_US: Final = 1_000_000
_REPORTS_US: Final = 10_000_000
TALKS: Final = frozenset({"message_posted", "message_streamed", "tool_call_changed"})
"""Events of conversations with models."""
_AMISS: Final = frozenset({"interrupted", "error", "failed", "refused"})


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
    counts on is the same. Of an agent that reports neither, or of a message that streams, one in ten seconds.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[int, str, Instant]] = {}
        self._streamed: dict[tuple[str, str], tuple[str, Instant]] = {}

    def is_news(self, run: str, event: Headline, at: Instant) -> bool:
        """Whether an event should be told; everything but progress should."""
        key = run, event.who or ""
        if event.kind == "message_streamed":
            return self._is_new_stream(key, event.what, at)
        if event.kind != "milestone_reached":
            return True
        tenth, step = int(dict(event.figures).get("progress", 0) * 10), _DIGITS.sub("#", event.what)
        if (known := self._last.get(key)) is not None:
            last_tenth, last_step, last_at = known
            passed = at - last_at
            if tenth <= last_tenth and passed < (_REPORTS_US if step == last_step else _STEPS_US):
                return False
        self._last[key] = tenth, step, at
        return True

    def _is_new_stream(self, key: tuple[str, str], message: str, at: Instant) -> bool:
        name, last_at = self._streamed.get(key, ("", at))
        if name == message and at - last_at < _REPORTS_US:
            return False
        self._streamed[key] = message, at
        return True


def tell_event(event: Headline) -> ToldEvent | None:
    """An event in a sentence; None for those that only the state needs to know."""
    if event.kind in TALKS:
        return _tell_talk(event)
    if (tell := _SENTENCES.get(event.kind)) is None:
        return None
    text, style = tell(headline_text(event), dict(event.figures))
    return ToldEvent(event.who or "", text, style) if text else None


def _tell_talk(event: Headline) -> ToldEvent | None:
    """What an agent and a model do together; what is only said to the model is not told."""
    if event.who is None or (talk := talk_of(event)) is None:
        return None
    text, status = talk
    figures = dict(event.figures)
    notes = f"{_note('step', figures)}{_note('attempt', figures)}"
    text = "is writing" if event.kind == "message_streamed" else text
    return ToldEvent(event.who, text + notes, "warn" if status in _AMISS else "dim")


def stack_spans(failure: Failure, indent: int) -> Iterator[Line]:
    """Where an agent failed, to stand below the sentence that says so."""
    for line in stack_lines(failure.stack, str(Path.cwd())):
        yield [(" " * indent + line, "dim")]


def tell_closed_wait(wait: Wait, value: Callable[[Value], object]) -> ToldEvent:
    """The end of a wait: what a person said to what, or that something is there; `value` opens an answer."""
    match wait.kind:
        case "question":
            answer = "nothing" if wait.answer is None else value(wait.answer)
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


_Figures: TypeAlias = Mapping[str, int | float]


def _note(name: str, figures: _Figures) -> str:
    return f" ({name} {figure(figures[name])})" if name in figures else ""


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _phase_begins(what: str, figures: _Figures) -> tuple[str, Style]:
    visit = figures.get("visit", 1)
    return f"phase {what} begins" + (f", visit {visit}" if visit > 1 else ""), "bold"


def _launched(_: str, figures: _Figures) -> tuple[str, Style]:
    attempt = figures.get("attempt", 1)
    return ("begins", "") if attempt == 1 else (f"begins again (attempt {attempt})", "warn")


def _milestone(what: str, figures: _Figures) -> tuple[str, Style]:
    share = f"{figures['progress']:.0%}" if "progress" in figures else ""
    if what:
        return f"is at {what}" + (f" ({share})" if share else ""), "dim"
    return (f"is at {share}" if share else "saved its progress"), "dim"


def _waits(what: str, _figures: _Figures) -> tuple[str, Style]:
    kind, _, text = what.partition(": ")
    verbs = {"question": "asks", "dependency": "needs", "rate_limit": "has to wait"}
    return f"{(verbs | {'breakpoint': 'stops at a breakpoint'}).get(kind, 'waits')}: {text}", "warn"


def _ended(what: str, _figures: _Figures) -> tuple[str, Style]:
    outcome, _, reason = what.partition(": ")
    styles: dict[str, Style] = {"completed": "good", "failed": "bad"}
    word = "stopped" if outcome == "shutdown" else outcome
    return word + _because(reason), styles.get(outcome, "warn")


def _snapshot(what: str, _figures: _Figures) -> tuple[str, Style]:
    why, _, note = what.partition(": ")
    return "" if why == "periodic" else f"snapshot taken ({why.replace('_', ' ')}){_because(note)}", "dim"


_SENTENCES: Final[dict[str, Callable[[str, _Figures], tuple[str, Style]]]] = {
    "run_started": lambda what, _: (f"started {what}", "bold"),
    "phase_started": _phase_begins,
    "phase_completed": lambda what, _: (f"phase {what} is done", "good"),
    "round_started": lambda what, figures: (f"round {figures.get('round')} of {what} begins", "warn"),
    "agent_launched": _launched,
    "milestone_reached": _milestone,
    "task_completed": lambda _, figures: (f"finished{_note('confidence', figures)}", "good"),
    "task_failed": lambda what, _: (f"failed: {what.partition(': ')[2] or what}", "bad"),
    "task_retired": lambda what, _: (f"is {what.rpartition(': ')[2]}", "dim"),
    "decision_made": lambda what, _: (f"decided: {what}", ""),
    "evaluation_completed": lambda what, figures: (
        f"says {what}{_note('score', figures)}",
        "good" if what == "accept" else "warn",
    ),
    "wait_opened": _waits,
    "wait_closed": lambda what, _: (f"wait over: {what}", ""),
    "output_written": lambda what, figures: (f"wrote {what} ({size(int(figures.get('bytes', 0)))})", ""),
    "effect_intended": lambda what, _: (f"is about to: {what}", ""),
    "run_paused": lambda what, _: (f"paused{_because(what)}", "warn"),
    "run_waiting": lambda what, _: (f"waits for somebody{_because(what)}", "warn"),
    "run_resumed": lambda what, _: (f"resumed{_because(what)}", "warn"),
    "rolled_back": lambda what, figures: (
        f"rolled back from @{figures.get('from')} to @{figures.get('to')}{_because(what)}",
        "warn",
    ),
    "forked": lambda what, _: (f"forked from {what}", "warn"),
    "definition_accepted": lambda _, __: ("goes on with a changed workflow", "warn"),
    "state_edited": lambda what, _: (f"{what} was set by hand", "warn"),
    "snapshot_requested": _snapshot,
    "run_ended": _ended,
}
