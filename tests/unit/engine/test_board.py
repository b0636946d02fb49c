"""The board, kept up event by event, is the board worked out anew."""

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra.engine.board import Board
from tests.unit.engine.simulation import Play


def facts(board: Board) -> tuple[object, ...]:
    """Everything on a board, to compare."""
    groups = [
        (
            each.id,
            each.unmet,
            each.total,
            each.next,
            each.extras,
            each.done,
            sorted(each.waiting),
            each.skipped,
        )
        for each in board.all_groups()
    ]
    running, callers = sorted(board.running.items()), sorted(board.callers.items())
    return groups, running, callers, sorted(board.open_waits), board.unfinished


def _compare(play: Play) -> None:
    view, anew = play.view, Board()
    play.board.refresh(view)
    play.board.open_all(view)
    anew.refresh(view)
    assert facts(play.board) == facts(anew)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
@example(386682)  # planned again while what it needs is under way
def test_following_events_and_looking_anew_agree(seed: int) -> None:
    play = Play(seed)
    for _ in range(120):
        play.decided()
        _compare(play)
        if play.state.status not in ("running", "waiting") or not play.happened():
            break
        _compare(play)


def test_the_simulation_reaches_everything() -> None:
    """A property that is never put to the test proves nothing."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        play = Play(seed)
        for _ in range(120):
            play.decided()
            if play.state.status not in ("running", "waiting") or not play.happened():
                break
        seen.update(task.status for task in play.state.tasks.values())
        seen.update(made.description.split(" ", 1)[0] for made in play.state.decisions)
        seen[f"run {play.state.status}"] += 1
        seen["extra"] += any("+" in name for name in play.state.tasks)
        seen["round"] += any("~" in name for name in play.state.tasks)
        seen["errand"] += any(":" in name for name in play.state.tasks)
        seen["errand of an errand"] += any(name.count(":") > 1 for name in play.state.tasks)
        seen["loop"] += any(visit.visit > 1 for visit in play.state.path)
    wanted = {"completed", "skipped", "Spawn", "Let", "Ask", "Revise", "run completed", "run failed"}
    assert wanted | {"extra", "round", "loop", "errand", "errand of an errand"} <= {
        name for name, count in seen.items() if count
    }


def test_nothing_stands_still_without_a_reason() -> None:
    """Whenever nothing is under way, nothing waits and the run is not over, there was something to decide."""
    for seed in range(300):
        play = Play(seed)
        for _ in range(200):
            play.decided()
            if play.state.status != "running":
                break
            if not play.board.running and not play.board.open_waits:
                waits = [group.waiting for group in play.board.all_groups() if group.waiting]
                assert waits, f"seed {seed}: nothing can go on"
            play.happened()
