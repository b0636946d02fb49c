"""`orchestra watch`: follow a run that another process plays, by looking into the store again and again."""

import sys
from typing import Annotated, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJsonLines, RunArgument, StoreUrl
from orchestra.cli.play.following import code_of, looks
from orchestra.cli.render.displays import STACK_INDENT, clock, line_json
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Screen, json_text, screen
from orchestra.cli.render.story import ProgressFold, reason_spans, stack_spans, tell_closed_wait, tell_event
from orchestra.cli.store import archive
from orchestra.history.archive import Archive
from orchestra.history.references import resolve_run
from orchestra.history.story import Failures, decisions_at, waits_at
from orchestra.ids import Instant, RunId
from orchestra.model.snapshot import Header
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import Row, RowQuery

_TAIL: Final = 10
_PAGE: Final = 200


def watch(
    run: RunArgument,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", help="From the beginning, not only the newest.")] = False,
    store: StoreUrl = None,
    json: AsJsonLines = False,
) -> int:
    """Follow a run that another process plays, until nobody plays it any more; Ctrl-C stops watching only.

    Exits as the run stands then: 0 completed, 1 failed, 3 when it can be resumed.
    """
    with archive(store) as opened:
        name = resolve_run(opened, run)
        out = screen()
        follow = _Follower(opened, name, out, json, opened.run(name).created_at)
        if out.lively and not json:
            return _live(opened, name, store)
        first = 0 if all else max(opened.run(name).head - _TAIL, 0)
        return follow.until_left(first)


class _Follower:
    """Prints what is new in a run."""

    def __init__(self, opened: Archive, run: RunId, out: Screen, as_json: bool, since: Instant) -> None:
        self._opened, self._run, self._out, self._json, self._since = opened, run, out, as_json, since
        self._failures, self._progress = Failures(opened), ProgressFold()

    def until_left(self, first: int) -> int:
        """Print and wait, until nobody plays the run; returns the exit code."""
        for row in looks(self._opened, self._run):
            while first <= row.head and (after := self._print(first)) > first:
                first = after
        if not self._json:
            cell = status_cell(shown_status(self._opened.store, row))
            self._out.line(*cell, ("  nobody plays it now", "dim"))
        return code_of(row)

    def _print(self, first: int) -> int:
        """Print the snapshots from a number on; returns the next number."""
        query = RowQuery(run=self._run, first=first, last=first + _PAGE - 1)
        for row in self._opened.store.rows(query):
            header = self._opened.header(row)
            if self._json:
                sys.stdout.writelines(
                    json_text(line_json(header, event, header.at)) for event in header.events
                )
            else:
                self._lines(row, header)
            first = row.seq + 1
        sys.stdout.flush()
        return first

    def _lines(self, row: Row, header: Header) -> None:
        decisions = decisions_at(self._opened, row, header.events)
        for event, decision in zip(header.events, decisions, strict=True):
            if not self._progress.is_news(self._run, event, header.at):
                continue
            wait = waits_at(self._opened, row).get(event.what) if event.kind == "wait_closed" else None
            sentence = tell_event(event) if wait is None else tell_closed_wait(wait, self._opened.value)
            if sentence is not None:
                passed = clock(header.at - self._since)
                self._out.line((f"{passed}  ", "dim"), *sentence.line, *reason_spans(decision))
            if (failure := self._failures.of(row, event)) is not None:
                self._out.lines(stack_spans(failure, STACK_INDENT))


def _live(opened: Archive, run: RunId, store: str | None) -> int:
    """The picture of the run, as in `orchestra run`."""
    from orchestra.cli.render.live import LiveDisplay
    from orchestra.cli.render.summary import print_status
    from orchestra.engine.start import read_definition

    display = LiveDisplay(store=store)
    held = opened.snapshot(opened.newest(run)).state.workflow.definition
    if held is not None:
        display.expect(read_definition(opened.loader.value(held)))
    with display:
        seen = -1
        for row in looks(opened, run):
            if row.head != seen:
                seen = row.head
                display.states[run] = opened.snapshot(opened.newest(run)).state
    print_status(screen(), opened, row, display.states[run], store)
    return code_of(row)
