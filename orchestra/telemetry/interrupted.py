"""What a process that died left open, read from the headers of the snapshots it saved.

Whoever takes the run over tells these spans as interrupted, under the ids that spans below them refer to.
"""

from collections.abc import Iterator

import attrs

from orchestra.history.archive import Archive
from orchestra.ids import Instant, RunId
from orchestra.limits import INTERRUPTED_ROWS, PAGE_ROWS
from orchestra.model.snapshot import Header, Headline
from orchestra.ports.store import RowQuery
from orchestra.telemetry import names
from orchestra.telemetry.records import Attributes, Span, span_id, trace_id
from orchestra.telemetry.tracing import leg_id

_BEGINNINGS = frozenset({"run_started", "forked", "run_resumed"})
_ENDINGS = frozenset({"task_completed", "task_failed", "task_retired"})


@attrs.frozen
class _Begun:
    """Something that began: where, when, and what its headline said."""

    seq: int
    at: Instant
    line: Headline
    place: int = 0


def interrupted_spans(archive: Archive, run: RunId, workflow: str, before: int) -> list[Span]:
    """The spans that were open when the process died whose last snapshot came before that number."""
    headers = list(_leg(archive, run, before - 1))
    if not headers:
        return []
    headers.reverse()
    first, end = headers[0], headers[-1].at
    leg = _span(run, workflow, f"{names.INVOKE_WORKFLOW} {workflow}", leg_id(run, first.seq), first, end)
    leg.attributes |= {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW_NAME: workflow}
    spans = [leg]
    phase, attempts = _open_work(headers)
    if phase is not None:
        spans.append(_phase(run, workflow, phase, leg.id, end))
    parent = spans[-1].id
    return [*spans, *[_attempt(run, workflow, each, parent, end) for each in attempts]]


def _leg(archive: Archive, run: RunId, last: int) -> Iterator[Header]:
    """The headers of the last leg, newest first, back to the one it began with."""
    for top in range(last, max(last - INTERRUPTED_ROWS, -1), -PAGE_ROWS):
        low = max(top - PAGE_ROWS + 1, 0)
        for row in archive.store.rows(RowQuery(run=run, first=low, last=top, newest_first=True)):
            header = archive.header(row)
            yield header
            if any(line.kind in _BEGINNINGS for line in header.events):
                return


def _open_work(headers: list[Header]) -> tuple[_Begun | None, list[_Begun]]:
    phase = _phase_at(headers[0])
    attempts: dict[str, _Begun] = {}
    for header in headers:
        for line in header.events:
            if line.kind == "phase_started":
                phase = _Begun(header.seq, header.at, line, _place(header, line))
            elif line.kind in ("phase_completed", "rolled_back"):
                phase = None if line.kind == "phase_completed" else _phase_at(header)
                attempts.clear()
            elif line.kind == "agent_launched":
                attempts[line.what] = _Begun(header.seq, header.at, line)
            elif line.kind in _ENDINGS:
                attempts.pop(line.what.partition(": ")[0], None)
    return phase, list(attempts.values())


def _phase_at(header: Header) -> _Begun | None:
    """The phase that a run taken up again stands in, when it did not just start it."""
    if header.phase is None or any(line.kind == "phase_started" for line in header.events):
        return None
    return _Begun(header.seq, header.at, Headline(kind="phase_started", what=header.phase))


def _place(header: Header, line: Headline) -> int:
    """How many starts of the same phase came before this one in one turn."""
    same = [each for each in header.events if each.kind == line.kind and each.what == line.what]
    return next(at for at, each in enumerate(same) if each is line)


def _phase(run: RunId, workflow: str, opened: _Begun, parent: str, end: Instant) -> Span:
    name = opened.line.what
    identity = span_id(run, names.PHASE, f"{name}/{opened.place}", opened.seq)
    span = _span(run, workflow, f"{names.PHASE} {name}", identity, opened, end)
    span.parent = parent
    span.attributes[names.PHASE_ID] = name
    return span


def _attempt(run: RunId, workflow: str, opened: _Begun, parent: str, end: Instant) -> Span:
    agent, task = opened.line.who or "", opened.line.what
    attempt = int(dict(opened.line.figures).get("attempt", 1))
    identity = span_id(run, "attempt", f"{task}/{attempt}", opened.seq)
    span = _span(run, workflow, f"{names.INVOKE_AGENT} {agent}", identity, opened, end)
    span.parent = parent
    about: Attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT_NAME: agent}
    span.attributes |= {**about, names.TASK: task, names.ATTEMPT: attempt}
    return span


def _span(run: RunId, workflow: str, name: str, identity: str, began: Header | _Begun, end: Instant) -> Span:
    return Span(
        run=run,
        trace=trace_id(run),
        id=identity,
        name=name,
        start=began.at,
        end=max(began.at, end),
        seq=began.seq,
        status="interrupted",
        attributes={names.WORKFLOW: workflow},
        error="interrupted: its process ended before it was done",
    )
