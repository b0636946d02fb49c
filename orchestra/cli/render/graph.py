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
from collections.abc import Iterator

from orchestra.cli.render.text import count
from orchestra.cli.render.text import width as cells
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
    wrap = textwrap.TextWrapper(width - 4, subsequent_indent="    ", break_on_hyphens=False).wrap
    rows = [line for row in _rows(phase) for line in wrap(_printable(row))] or ["(nothing to do)"]
    head = _fit(f" {phase.id}{_marks(phase)} ", width - 4)
    inner = min(width - 4, max([cells(head) + 1, *map(cells, rows)]))
    fitted = [_fit(row, inner) for row in rows]
    body = [f"│ {row}{' ' * (inner - cells(row))} │" for row in fitted]
    top = f"╭─{head}{'─' * (inner + 1 - cells(head))}╮"
    return [top, *body, f"╰{'─' * (inner + 2)}╯"]


def _marks(phase: Phase) -> str:
    visits = f"at most {phase.max_visits} visits" if phase.max_visits is not None else ""
    limit = shown_duration(phase.timeout_us) if phase.timeout_us is not None else ""
    said = ", ".join(filter(None, (visits, limit, "● breakpoint" if phase.breakpoint else "")))
    return f" ({said})" if said else ""


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
        yield f"{count(evaluate.rounds, 'round')} of feedback"


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
        sign = "■" if each.to == END else "↺" if order[each.to] <= order[phase.id] else "▶"
        yield f"  {arm}─{sign} {each.to:<{names}}  {why}".rstrip()


def _fit(text: str, width: int) -> str:
    """`text` on one line, cut where it is too wide."""
    line = _printable(" ".join(text.splitlines()))
    if cells(line) <= width:
        return line
    while cells(line) > width - 1:
        line = line[: len(line) - max(1, (cells(line) - width) // 2)]
    return f"{line}…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
