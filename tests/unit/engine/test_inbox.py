"""What has arrived is taken in order, and a flood of small things is few."""

from typing import Any

import pytest

from orchestra.engine.inbox import Due, Inbox, Ordered, Said
from orchestra.limits import TEXT_CHARS
from orchestra.ports.agent import Confident, Emitted, Report

ONE, OTHER = object(), object()


def _left(*said: tuple[Any, Report]) -> list[Any]:
    inbox = Inbox()
    for attempt, report in said:
        inbox.leave(Said(attempt, report))
    return inbox.take()


def _text(text: str) -> Emitted:
    return Emitted(text=text)


def test_text_that_goes_on_is_one_text() -> None:
    found = _left(
        (ONE, _text("a")), (ONE, _text("b")), (ONE, _text("c")), (OTHER, _text("d")), (ONE, _text("e"))
    )
    assert found == [Said(ONE, _text("abc")), Said(OTHER, _text("d")), Said(ONE, _text("e"))]


def test_text_ends_where_something_else_arrives() -> None:
    inbox = Inbox()
    inbox.leave(Said(ONE, _text("a")))
    inbox.leave(Said(ONE, _text("b")))
    inbox.post(Due("periodic"))
    inbox.leave(Said(ONE, _text("c")))
    assert inbox.take() == [Said(ONE, _text("ab")), Due("periodic"), Said(ONE, _text("c"))]
    assert inbox.take() == []


def test_of_a_flood_of_text_not_more_is_held_than_can_be_kept() -> None:
    (found,) = _left(*[(ONE, _text("x" * 1000))] * 1000)
    assert TEXT_CHARS < len(found.report.text) < 3 * TEXT_CHARS


def test_pieces_of_text_are_put_together_once() -> None:
    class Piece(str):
        __slots__ = ()
        copies = 0

        def __add__(self, other: str) -> "Piece":
            Piece.copies += 1
            return Piece(str(self) + other)

    _left(*[(ONE, _text(Piece("x")))] * 100)
    assert Piece.copies == 1


def test_of_confidences_in_a_row_the_last_counts() -> None:
    def sure(value: float) -> Confident:
        return Confident(value=value)

    found = _left((ONE, sure(0.1)), (ONE, sure(0.2)), (OTHER, sure(0.3)), (ONE, sure(0.4)), (ONE, _text("a")))
    assert found == [
        Said(ONE, sure(0.2)),
        Said(OTHER, sure(0.3)),
        Said(ONE, sure(0.4)),
        Said(ONE, _text("a")),
    ]


@pytest.mark.anyio
async def test_a_command_of_the_store_has_a_turn_of_its_own() -> None:
    """What came before goes first, and what came after is taken without waiting."""
    inbox, here = Inbox(), Ordered(None, "pause")
    inbox.leave(Said(ONE, _text("a")))
    for arrival in (here, Ordered(1, "cancel"), Ordered(2, "pause"), Due("periodic")):
        inbox.post(arrival)
    inbox.leave(Said(ONE, _text("b")))
    inbox.leave(Said(ONE, _text("c")))
    turns = []
    while inbox:
        await inbox.wait()
        turns.append(inbox.take_turn())
    assert turns == [
        [Said(ONE, _text("a")), here],
        [Ordered(1, "cancel")],
        [Ordered(2, "pause")],
        [Due("periodic"), Said(ONE, _text("bc"))],
    ]
    assert inbox.take_turn() == []
