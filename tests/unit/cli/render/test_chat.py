"""A conversation that grows: what was printed is not printed again."""

import io

import pytest

from orchestra.cli.render.chat import ChatPrinter, Said, rest_of, shorten
from orchestra.cli.render.screen import Screen
from orchestra.history.conversation import AskedCall, SpokenMessage, SpokenPart
from orchestra.ids import Instant
from orchestra.model.records import Message, MessageStatus, ToolCall, ToolStatus


def _answer(
    *parts: SpokenPart, status: MessageStatus = "complete", superseded: bool = False
) -> SpokenMessage:
    held = Message(role="assistant", status=status, created_at=Instant(1), updated_at=Instant(2))
    return SpokenMessage(name="t#1", held=held, parts=parts, superseded=superseded)


def _call(status: ToolStatus | None) -> SpokenPart:
    record = None if status is None else ToolCall(tool="note", status=status)
    call = AskedCall(id="c", tool="note", arguments={"a": 1}, record=record, result="there")
    return SpokenPart(kind="tool_call", path=(), call=call)


def _text(text: str, kind: str = "text") -> SpokenPart:
    return SpokenPart(kind=kind, path=(), text=text)  # type: ignore[arg-type]


def _shown(*stages: SpokenMessage, colour: bool = False) -> str:
    out = io.StringIO()
    printer = ChatPrinter(Screen(out, tty=False, colour=colour, columns=None), whole=False)
    for stage in stages:
        printer.show([stage], {})
    printer.finish([stages[-1]], {})
    return out.getvalue()


def test_text_is_printed_as_it_grows() -> None:
    grown = [
        _answer(status="streaming"),
        _answer(_text("Let ", "reasoning"), status="streaming"),
        _answer(_text("Let me see.", "reasoning"), _text("# It\n\n"), status="streaming"),
        _answer(_text("Let me see.", "reasoning"), _text("# It\n\nis so."), _call(None)),
        _answer(_text("Let me see.", "reasoning"), _text("# It\n\nis so."), _call("done")),
    ]
    expected = 'assistant\n  Let me see.\n  # It\n\n  is so.\n  → note  {"a": 1}\n  ← note  there\n'
    assert _shown(*grown) == expected
    assert _shown(grown[-1]) == expected


def test_what_was_kept_otherwise_is_printed_anew() -> None:
    shown = _shown(_answer(_text("One"), status="streaming"), _answer(_text("Two")))
    assert shown == "assistant\n  One\n  … it was kept as:\n  Two\n"


@pytest.mark.parametrize(
    ("status", "superseded", "foot"),
    [
        ("streaming", False, "streaming"),
        ("interrupted", True, "interrupted · superseded"),
        ("error", True, "error · superseded"),
        ("complete", True, "superseded"),
    ],
)
def test_how_a_message_ended_is_said(status: MessageStatus, superseded: bool, foot: str) -> None:
    assert _shown(_answer(_text("One"), status=status, superseded=superseded)).endswith(f"One\n  {foot}\n")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, "is not called yet"),
        ("waiting", "waits for approval"),
        ("started", "is at work"),
        ("refused", "was refused"),
    ],
)
def test_how_a_call_stands_is_said(status: ToolStatus | None, said: str) -> None:
    assert _shown(_answer(_call(status))).endswith(f"← note  {said}\n")


def test_reasoning_is_dim_and_nothing_reaches_the_terminal() -> None:
    shown = _shown(_answer(_text("Hm", "reasoning"), _text("\x1b[31mred\r")), colour=True)
    assert "\x1b[2mHm\x1b[0m" in shown
    assert "\x1b[31m" not in shown
    assert "\\x1b[31mred\\r" in shown


@pytest.mark.parametrize(
    ("before", "now", "rest"),
    [
        ([], [("text", "a")], [("text", "a")]),
        ([("text", "a")], [("text", "ab")], [("text", "b")]),
        ([("text", "a")], [("text", "a"), ("reasoning", "b")], [("reasoning", "b")]),
        ([("text", "a")], [("text", "b")], None),
        ([("text", "a")], [], None),
        ([("reasoning", "a"), ("text", "b")], [("text", "b")], None),
    ],
)
def test_the_rest(before: Said, now: Said, rest: Said | None) -> None:
    assert rest_of(before, now) == rest


def test_long_texts_are_cut_and_counted() -> None:
    assert shorten("short\n") == "short"
    assert shorten("x" * 5000).endswith("x… (5,000 characters; --full shows all)")
    assert shorten("x\n" * 50).splitlines()[-1] == "… (50 lines; --full shows all)"
