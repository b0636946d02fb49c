"""`apply` is a function: it leaves what it was given alone, and gives the same for the same."""

import pytest

from orchestra.codec.writers import Writer
from orchestra.model.apply.apply import apply, apply_all, begin
from orchestra.model.events import Event
from orchestra.model.headline import headline, headlines
from orchestra.model.state import State
from tests.property.stories import Story


def _bytes(state: State) -> bytes:
    return Writer().write(state)


@pytest.mark.parametrize("seed", range(12))
def test_states_never_change(seed: int) -> None:
    story = Story(seed)
    states = [begin(story.opening()[0])]
    kept = [_bytes(states[0])]
    for turn in range(60):
        origin = (
            states[-1] if turn % 7 else states[turn // 2]
        )  # at times from an earlier state, as a fork would
        states.append(apply_all(origin, story.turn(origin)))
        kept.append(_bytes(states[-1]))
    assert [_bytes(state) for state in states] == kept


@pytest.mark.parametrize("seed", range(10))
def test_the_same_events_give_the_same_state(seed: int) -> None:
    story = Story(seed)
    first = state = begin(story.opening()[0])
    events: list[Event] = []
    for _ in range(60):
        turn = story.turn(state)
        events.extend(turn)
        state = apply_all(state, turn)
    one_by_one = first
    for event in events:
        one_by_one = apply(one_by_one, event)
    assert _bytes(one_by_one) == _bytes(state) == _bytes(apply_all(first, events))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_counted_can_be_counted_again(seed: int) -> None:
    story = Story(seed)
    state = begin(story.opening()[0])
    for _ in range(80):
        state = apply_all(state, story.turn(state))
        tasks = list(state.tasks.values())
        failing = [task for task in tasks if task.failure and task.status in ("pending", "running", "failed")]
        assert state.completed_tasks == sum(task.status == "completed" for task in tasks)
        assert state.open_failures == len(failing)
        assert state.cursor.ordinal == len(state.path)


@pytest.mark.parametrize("seed", range(10))
def test_every_event_has_a_headline(seed: int) -> None:
    story = Story(seed)
    state = begin(story.opening()[0])
    for _ in range(60):
        turn = story.turn(state)
        state = apply_all(state, turn)
        assert [line.kind for line in headlines(turn, state)] == [event.kind for event in turn]
        assert all(len(headline(event, state).what) <= 200 for event in turn)
