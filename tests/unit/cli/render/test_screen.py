"""Lines and tables: colour only where it is wanted, nothing wider than the terminal."""

import fcntl
import io
import os
import struct
import termios
from operator import itemgetter
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.cli.render.screen import Column, Line, Screen, fit, length, print_table, screen


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _screen(
    columns: int | None = 40, *, colour: bool = False, tty: bool = True
) -> tuple[io.StringIO, Screen]:
    out = io.StringIO()
    return out, Screen(out, tty=tty, colour=colour, columns=columns)


def test_a_line_with_and_without_colour() -> None:
    out, plain = _screen()
    plain.line(("bad", "bad"), " end", ("", "good"))
    assert out.getvalue() == "bad end\n"
    out, coloured = _screen(colour=True)
    coloured.line(("bad", "bad"), " end", ("", "good"))
    assert out.getvalue() == "\x1b[31mbad\x1b[0m end\n"


def test_text_is_made_safe_on_its_way_out() -> None:
    out, plain = _screen(colour=True)
    plain.line(("\x1b[2J\nx", ""))
    assert out.getvalue() == "\\x1b[2J\\nx\n"


@pytest.mark.parametrize(
    ("settings", "tty", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_who_gets_colour(
    settings: dict[str, str], tty: bool, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    out: TextIO = _Terminal() if tty else io.StringIO()
    assert screen(out).colour is colour


def test_a_pipe_takes_any_width_and_columns_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert screen(io.StringIO()).columns is None
    monkeypatch.setenv("COLUMNS", "100")
    assert screen(io.StringIO()).columns == 100
    assert screen(_Terminal()).columns == 100


@pytest.mark.parametrize(("told", "columns"), [(0, 80), (8, 20), (100, 100)])
def test_a_terminal_is_as_wide_as_it_says(told: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as out:
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, told, 0, 0))
        assert screen(out).columns == columns
    os.close(ours)


def test_signs_have_ascii_forms_where_the_terminal_has_no_unicode() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="latin-1")
    Screen(out, tty=False, colour=False, columns=None).line("✔ done ×2 … grün 日")
    out.flush()
    assert raw.getvalue() == b"+ done x2 ~ gr\\xfcn \\u65e5\n"


def test_hints_are_for_people_who_look() -> None:
    out, piped = _screen(tty=False)
    piped.hints(("orchestra runs", "all"))
    assert out.getvalue() == ""
    out, looking = _screen()
    looking.hints(("orchestra runs", "all"), ("orchestra show x", "a purpose that is too long to fit"))
    assert out.getvalue() == "\n→ orchestra runs   all\n→ orchestra show x\n"


def test_paragraphs_break_between_words() -> None:
    out, narrow = _screen(20)
    narrow.paragraph([("error: ", "bad"), ("something is not as it should be", "")])
    assert out.getvalue() == "error: something is\nnot as it should be\n"
    out, narrow = _screen(20)
    narrow.paragraph([("it is at /a/path/that/is/wider/than/that", "")], indent=4)
    assert out.getvalue() == "it is at /a/path/that/is/wider/than/that\n"


_spans = st.lists(st.tuples(st.text(max_size=12), st.sampled_from(["", "dim", "bad"])), max_size=6)


@given(_spans, st.integers(min_value=1, max_value=30))
def test_a_fitted_line_fits(line: Line, columns: int) -> None:
    fitted = fit(line, columns)
    assert length(fitted) <= columns
    if length(line) > columns:
        assert fitted[-1][0].endswith("…")


def test_a_line_is_cut_with_a_mark_also_where_a_span_ends_at_the_edge() -> None:
    assert fit([("abc", ""), ("de", ""), ("f", "")], 5) == [("abc", ""), ("d…", "")]


def _table(columns: int | None) -> list[str]:
    out, plain = _screen(columns)
    shape: tuple[Column[list[Line]], ...] = (
        Column("id", itemgetter(0)),
        Column("words", itemgetter(1), least=8),
        Column("extra", itemgetter(2), drop=1),
        Column("n", itemgetter(3), align="right"),
        Column("no", itemgetter(4)),
    )
    rows: list[list[Line]] = [
        [[("run-1", "")], [("some words that are long", "")], [("extra", "")], [("1", "")], []],
        [[("run-2", "")], [("few", "")], [("more extra", "")], [("100", "")], []],
    ]
    print_table(plain, shape, rows)
    return out.getvalue().splitlines()


def test_a_table_with_room_shows_everything_but_empty_columns() -> None:
    assert _table(None) == [
        "id     words                     extra         n",
        "run-1  some words that are long  extra         1",
        "run-2  few                       more extra  100",
    ]


def test_a_narrow_table_shrinks_and_then_leaves_out() -> None:
    assert _table(40)[1].startswith("run-1  some words")
    assert "…" in _table(40)[1]
    assert all(len(line) <= 40 for line in _table(40))
    assert "extra" not in "\n".join(_table(26))
    assert all(len(line) <= 26 for line in _table(26))
