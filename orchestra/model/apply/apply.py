"""`apply(state, event)`: the next state. Pure: no clock, no chance, no input or output.

An event that does not fit the state raises `IllegalEvent` and changes nothing, as a late result does.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from orchestra.model import events as ev
from orchestra.model.apply import content, work
from orchestra.model.apply import run as apply_run
from orchestra.model.apply.checks import WITH_TEXTS, check_event, check_texts, illegal, misfit_of
from orchestra.model.draft import Draft
from orchestra.model.state import State


def begin(event: ev.RunStarted) -> State:
    """The first state of a run."""
    check_event(event, event.run)
    return apply_run.start_state(event)


def apply(state: State, event: ev.Event) -> State:
    """The state after `event`; raises `IllegalEvent`."""
    return apply_all(state, (event,))


def apply_all(state: State, events: Iterable[ev.Event]) -> State:
    """The state after all `events`, in order; raises `IllegalEvent`."""
    draft = Draft.of(state)
    change(draft, events)
    return draft.freeze()


def change(draft: Draft, events: Iterable[ev.Event]) -> None:
    """Let all `events` happen to a draft, in order; raises `IllegalEvent` and leaves it as it was."""
    before = vars(draft).copy()
    at = draft.updated_at
    planned: ev.TaskPlanned | None = None  # waits to be looked at together with its launch
    try:
        for event in events:
            kind: Any = type(event)
            if misfit_of(kind)(event) is not None:
                check_event(event, draft.run)  # which says what is wrong
            at = event.at
            if planned is not None:
                first, planned = planned, None
                if kind is ev.AgentLaunched and work.plan_and_launch(draft, first, event):  # type: ignore[arg-type]
                    continue
                work.apply_plan(draft, first)
            if kind in WITH_TEXTS:
                check_texts(draft, event)
            if kind is ev.TaskPlanned:
                planned = event  # type: ignore[assignment]
            else:
                _HANDLERS[kind](draft, event)
        if planned is not None:
            work.apply_plan(draft, planned)
    except BaseException:
        draft.change(**before)
        raise
    draft.change(updated_at=at)


def _refuse_second_start(draft: Draft, event: ev.RunStarted) -> None:
    raise illegal(event, draft.run, "the run has started already")


_HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    **work.HANDLERS,
    **content.HANDLERS,
    **apply_run.HANDLERS,
    ev.RunStarted: _refuse_second_start,
}
"""What each kind of event does to a draft."""
