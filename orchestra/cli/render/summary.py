"""What a run came to: printed when playing it has ended, and by `orchestra status`."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestra.cli.render.json_text import pick
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Screen, Span, Style, length
from orchestra.cli.render.text import count, size
from orchestra.cli.render.times import duration
from orchestra.cli.store import option, quote
from orchestra.history.describe import stack_lines
from orchestra.history.story import DecisionCount
from orchestra.model.apply.work import is_open_failure
from orchestra.model.records import Failure, Metrics, Wait
from orchestra.model.state import State, skipped_text

if TYPE_CHECKING:
    from orchestra.engine.atlas import Ending

_LABEL: Final = 11
_METRICS: Final = ("elapsed_us", "api_calls", "tokens", "cost_micros", "recoveries", "rollbacks")
_OUTPUTS_SHOWN: Final = 12
_FAILURES_SHOWN: Final = 5


def label_line(label: str, spans: Line) -> Line:
    """A line with a word in front that says what it is about."""
    return [(f"  {label.ljust(_LABEL)}", "dim"), *spans]


def spending(metrics: Metrics) -> str:
    """What was spent, in words; empty when it was nothing."""
    parts = [
        f"{metrics.tokens:,} tokens" if metrics.tokens else "",
        f"{metrics.cost_micros / 1_000_000:.4g} paid" if metrics.cost_micros else "",
        count(metrics.api_calls, "call") if metrics.api_calls else "",
        count(metrics.recoveries, "recovery", "recoveries") if metrics.recoveries else "",
        count(metrics.rollbacks, "rollback") if metrics.rollbacks else "",
    ]
    return ", ".join(part for part in parts if part)


def bar(share: float, width: int = 12) -> Line:
    """A share from 0 to 1 as a bar."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return [("━" * filled, "accent"), ("─" * (width - filled), "dim")]


def path_of(state: State) -> str:
    """The phases a run has been through."""
    names = [visit.phase if visit.visit == 1 else f"{visit.phase}.{visit.visit}" for visit in state.path]
    shown = names if len(names) <= 8 else [*names[:3], f"… {len(names) - 6} more …", *names[-3:]]
    return " → ".join(shown)


def place_of(state: State, outputs: str, path: str) -> str:
    """Where people find an output, as they would type it from here."""
    began, below = Path(state.environment.working_dir), Path(outputs, state.run, path)
    where = began / below
    if not began.is_dir() or (not where.is_file() and below.is_file()):
        where = below.absolute()  # the project was moved here, and its outputs with it
    near = os.path.relpath(where)
    return near if not near.startswith("..") else str(where)


def open_waits(state: State) -> list[tuple[str, Any]]:
    """What a run waits for: nothing once it is over, whatever was asked before."""
    if not state.is_resumable:
        return []
    return [(name, wait) for name, wait in state.waits.items() if wait.status == "open"]


def print_summary(
    out: Screen, ending: "Ending", decided: DecisionCount, *, outputs: str, store: str | None
) -> None:
    """Print what a run came to, and what to type next."""
    state = ending.state
    sign = status_cell(ending.kind, skipped_text(state.skipped_tasks))
    lasted: Span = (f"  {duration(state.metrics.elapsed_us)}", "dim")
    out.print_cut([*sign, ("  ", ""), (state.run, "bold"), lasted])
    for line in facts(state, outputs, store, decided=decided, columns=out.columns):
        out.paragraph(line, indent=_LABEL + 2)
    for command, purpose in next_steps(ending.kind, state, store):
        room = (out.columns or 1000) - len(command) - len(purpose) - _LABEL - 5
        out.line(*label_line("next", [(command, ""), (f"   {purpose}" if room >= 0 else "", "dim")]))


def facts(
    state: State,
    outputs: str,
    store: str | None,
    *,
    decided: DecisionCount | None = None,
    columns: int | None = None,
) -> list[Line]:
    """What is worth knowing of a run, in lines."""
    lines = list(_failures(state))
    if state.path:
        lines.append(label_line("phases", [(path_of(state), "")]))
    if state.confidence.overall is not None:
        overall = state.confidence.overall
        lines.append(label_line("confidence", [*bar(overall), (f" {overall:.2f}", "")]))
    if said := spending(state.metrics):
        lines.append(label_line("spent", [(said, "")]))
    if decided:
        last = state.decisions[len(state.decisions) - 1].description if state.decisions else "undone"
        lines.append(label_line("decisions", [(str(decided), ""), (f", the last: {last}", "dim")]))
    lines += _waiting(state)
    return lines + _outputs(state, outputs, store, columns)


def _failures(state: State) -> Iterator[Line]:
    """What failed: the run, what is to be tried again, whom it went on without; each with where that was."""
    where = state.environment.working_dir
    if state.failure is not None:
        yield from _failure("failed", state.failure, where, "bad")
    elif state.open_failures:
        failing = [name for name, task in state.tasks.items() if is_open_failure(task)]
        yield from _tasks("failing", state, failing, "bad")
    yield from _tasks("skipped", state, state.skipped_tasks, "warn")


def _tasks(label: str, state: State, names: Sequence[str], style: Style) -> Iterator[Line]:
    for name in names[:_FAILURES_SHOWN]:
        failure = state.tasks[name].failure
        assert failure is not None, "BUG: only tasks that failed are named"
        yield from _failure(label, failure, state.environment.working_dir, style, f"{name}: ")
    if len(names) > _FAILURES_SHOWN:
        yield label_line("", [(f"and {len(names) - _FAILURES_SHOWN} more", "dim")])


def _failure(label: str, failure: Failure, where: str, style: Style, who: str = "") -> Iterator[Line]:
    yield label_line(label, [(f"{who}{failure.error}: {failure.message}", style)])
    yield from (label_line("", [(line, "dim")]) for line in stack_lines(failure.stack, where))


def _waiting(state: State) -> list[Line]:
    lines: list[Line] = []
    for _, wait in open_waits(state):
        choices = f" [{', '.join(wait.choices)}]" if wait.choices else ""
        lines.append(label_line("waits for", [(f"{wait.kind}: {wait.text}", "warn"), (choices, "dim")]))
    return lines


def _outputs(state: State, outputs: str, store: str | None, columns: int | None) -> list[Line]:
    """The files a run has made; where there is no room for their sizes, their paths alone."""
    lines: list[Line] = []
    command = f"orchestra outputs {state.run}{option(store)}"
    for path, output in list(state.outputs.items())[:_OUTPUTS_SHOWN]:
        where = place_of(state, outputs, path)
        missing = "" if Path(where).is_file() else f"  in the store only: {command}"
        line = label_line(
            "" if lines else "outputs", [(where, ""), (f"  {size(output.size)}{missing}", "dim")]
        )
        narrow = not missing and columns is not None and length(line) > columns
        lines.append(line[:-1] if narrow else line)
    if len(state.outputs) > _OUTPUTS_SHOWN:
        more = len(state.outputs) - _OUTPUTS_SHOWN
        lines.append(label_line("", [(f"and {more} more: {command}", "dim")]))
    return lines


def answer_arguments(wait: Wait, *, alone: bool) -> str:
    """What follows the run in a command that answers this question: which one, if there are others."""
    answer = quote(wait.choices[0]) if wait.choices else "VALUE"
    return answer if alone else f"{answer} --question {quote(wait.text)}"


def next_steps(kind: str, state: State, store: str | None) -> list[tuple[str, str]]:
    """What to type next, and what for."""
    at, run = option(store), state.run
    if store == "memory:":
        return []  # nothing is left of it
    if kind == "completed":
        return [
            (f"orchestra log {run}{at}", "what was decided, and why"),
            (f"orchestra browse {run}{at}", "every moment of it, on a page"),
        ]
    if kind == "cancelled":
        return [(f"orchestra fork {run}@last-good --run{at}", "begins again from there")]
    if kind == "failed":
        return [
            (f"orchestra log {run}{at}", "what led to it"),
            (f"orchestra browse {run}{at}", "every moment of it, on a page"),
            (f"orchestra resume {run}{at}", "tries again what failed"),
        ]
    waits = [wait for _, wait in open_waits(state)]
    if questions := [wait for wait in waits if wait.kind == "question"]:
        which = answer_arguments(questions[0], alone=len(questions) == 1)
        return [(f"orchestra answer {run} {which} --resume{at}", "answers, and goes on")]
    if needs := [wait for wait in waits if wait.kind == "dependency"]:
        return [(f"orchestra provide {run} {needs[0].text} --resume{at}", "once it is set")]
    return [(f"orchestra resume {run}{at}", "goes on where it stopped")]


def summary_json(ending: "Ending", decided: DecisionCount, outputs: str, store: str | None) -> dict[str, Any]:
    """What a run came to, as JSON."""
    state = ending.state
    return {
        "kind": "ending",
        "run": state.run,
        "ending": ending.kind,
        **state_json(state, decided, outputs),
        "next": [command for command, _ in next_steps(ending.kind, state, store)],
    }


def state_json(state: State, decided: DecisionCount, outputs: str) -> dict[str, Any]:
    """Where a run stands, as JSON."""
    return {
        "status": state.status,
        "phases": [visit.phase for visit in state.path],
        "confidence": state.confidence.overall,
        "decisions": decided.told,
        "undone_decisions": decided.undone,
        "failure": _failure_json(state.failure),
        "skipped": [
            {"task": task, **(_failure_json(state.tasks[task].failure) or {})} for task in state.skipped_tasks
        ],
        "metrics": pick(state.metrics, *_METRICS),
        "outputs": [
            {"path": path, "file": place_of(state, outputs, path), "size": output.size}
            for path, output in state.outputs.items()
        ],
        "waits": [
            {"wait": name, "kind": wait.kind, "text": wait.text, "choices": list(wait.choices)}
            for name, wait in open_waits(state)
        ],
    }


def _failure_json(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else pick(failure, "error", "message", "stack")
