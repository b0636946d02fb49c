"""A workflow as a picture for terminals: a box for each phase, and below it an arrow for each transition.

    ╭─ analyse ────────────────────────────────╮
    │ structure   → modules                    │
    │ hotspots    after structure · → findings │
    ╰──────────────────────────────────────────╯
      ├─▶ write    if evaluation.verdict == "accept"
      ╰─↺ analyse  otherwise

`▶` leads on, `↺` leads back (a loop), `■` ends the run.
"""

import textwrap
import unicodedata
from collections.abc import Iterator

from orchestra.config.units import shown_duration
from orchestra.ids import PhaseId
from orchestra.model.workflow import END, Ask, Evaluate, Phase, Reaction, Spawn, Specialist, Workflow

WIDTH = 80
_LEAST = 24


def graph_lines(workflow: Workflow, *, width: int = WIDTH) -> list[str]:
    """The phases of a workflow, drawn; no line is wider than `width` cells (at least 24)."""
    width = max(width, _LEAST)
    order = {phase.id: at for at, phase in enumerate(workflow.phases)}
    lines = [_fit(line, width) for line in _title(workflow)]
    for phase in workflow.phases:
        lines += ["", *_box(phase, width), *(_fit(line, width) for line in _arrows(phase, order))]
    return lines


def _title(workflow: Workflow) -> Iterator[str]:
    yield workflow.name + (f"  {workflow.description}" if workflow.description else "")
    if workflow.inputs:
        shown = (f"{each.name}{' (required)' if each.required else ''}" for each in workflow.inputs)
        yield f"inputs: {', '.join(shown)}"


def _box(phase: Phase, width: int) -> list[str]:
    """A phase with what happens in it."""
    rows = [line for row in _rows(phase) for line in _wrap(row, width - 4)] or ["(nothing to do)"]
    head = _fit(f" {phase.id}{_marks(phase)} ", width - 4)
    inner = min(width - 4, max([_cells(head) + 1, *map(_cells, rows)]))
    body = [f"│ {_pad(_fit(row, inner), inner)} │" for row in rows]
    top = f"╭─{head}{'─' * (inner + 1 - _cells(head))}╮"
    return [top, *body, f"╰{'─' * (inner + 2)}╯"]


def _marks(phase: Phase) -> str:
    marks = [
        f"at most {phase.max_visits} visits" if phase.max_visits is not None else "",
        shown_duration(phase.timeout_us) if phase.timeout_us is not None else "",
        "● breakpoint" if phase.breakpoint else "",
    ]
    said = [mark for mark in marks if mark]
    return f" ({', '.join(said)})" if said else ""


def _rows(phase: Phase) -> Iterator[str]:
    if phase.description:
        yield phase.description
    names = max((len(each.id) for each in phase.specialists), default=0)
    for specialist in phase.specialists:
        yield f"{specialist.id:<{names}}  {' · '.join(_facts(specialist))}".rstrip()
    if phase.evaluate is not None:
        yield f"⚖ {' · '.join(_judgement(phase.evaluate))}"
    if phase.on_low_confidence:
        yield f"when unsure: {', then '.join(map(_reaction, phase.on_low_confidence))}"


def _facts(specialist: Specialist) -> Iterator[str]:
    if specialist.agent != specialist.id:
        yield f"by {specialist.agent}"
    if specialist.needs:
        yield f"after {', '.join(specialist.needs)}"
    if specialist.when is not None:
        yield f"if {specialist.when}"
    if specialist.foreach is not None:
        yield f"for each of {specialist.foreach}"
    if specialist.into is not None:
        yield f"→ {specialist.into}"
    if specialist.outputs:
        yield f"writes {', '.join(specialist.outputs)}"
    if specialist.breakpoint:
        yield "● breakpoint"


def _judgement(evaluate: Evaluate) -> Iterator[str]:
    yield f"{evaluate.agent} accepts from {evaluate.threshold:g}"
    if evaluate.rubric:
        yield ", ".join(f"{each.name} ×{each.weight:g}" for each in evaluate.rubric)
    if evaluate.rounds:
        yield f"{evaluate.rounds} {'round' if evaluate.rounds == 1 else 'rounds'} of feedback"


def _reaction(reaction: Reaction) -> str:
    match reaction:
        case Spawn(specialist=specialist, agent=agent, max=times):
            by = f" by {agent}" if agent is not None else ""
            return f"another {specialist}{by}" + (f" (up to {times})" if times > 1 else "")
        case Ask():
            return "ask"
        case _:
            return reaction.kind


def _arrows(phase: Phase, order: dict[PhaseId, int]) -> Iterator[str]:
    """The transitions, first to last; the last arm is bent."""
    if not phase.next:
        yield "  ╰─■ end"
        return
    names = max(len(each.to) for each in phase.next)
    for at, each in enumerate(phase.next):
        arm = "╰" if at + 1 == len(phase.next) else "├"
        why = f"if {each.when}" if each.when is not None else "otherwise" if at else ""
        yield f"  {arm}─{_sign(each.to, phase, order)} {each.to:<{names}}  {why}".rstrip()


def _sign(to: PhaseId, phase: Phase, order: dict[PhaseId, int]) -> str:
    if to == END:
        return "■"
    return "↺" if order[to] <= order[phase.id] else "▶"


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _fit(text: str, width: int) -> str:
    """`text` on one line, cut where it is too wide."""
    line = " ".join(text.splitlines()) if not text.isprintable() else text
    line = "".join(char if char.isprintable() else " " for char in line)
    if _cells(line) <= width:
        return line
    while _cells(line) > width - 1:
        line = line[: len(line) - max(1, (_cells(line) - width) // 2)]
    return f"{line}…"


def _wrap(row: str, width: int) -> list[str]:
    """A row on as many lines as it needs, the further ones indented."""
    return textwrap.wrap(
        "".join(char if char.isprintable() else " " for char in row),
        width,
        subsequent_indent="    ",
        drop_whitespace=True,
        break_on_hyphens=False,
    )


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _cells(text))
