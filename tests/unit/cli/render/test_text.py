"""Text from runs cannot do anything to a terminal."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.cli.render.text import count, cut, safe, safe_json, size, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("grün ✔ 日本", "grün ✔ 日本"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2066\u2069\u200f\u061c", "\\u2066\\u2069\\u200f\\u061c"),
        ("\u200b\ufeff", "\\u200b\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\x7f\x00", "\\x7f\\x00"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_kept_characters_stay() -> None:
    assert safe("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"


@given(st.text())
def test_safe_text_has_no_control_or_format_characters(text: str) -> None:
    categories = {unicodedata.category(char) for char in safe(text)}
    assert categories.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@given(
    st.recursive(
        st.text() | st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_safe_json_means_the_same(value: object) -> None:
    text = safe_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert {unicodedata.category(char) for char in text.replace("\n", "")}.isdisjoint(
        {"Cc", "Cf", "Zl", "Zp"}
    )


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("✔", 1), ("", 0)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "abc…"),
        ("日本語", 4, "日…"),
        ("ab cd", 4, "ab…"),
        ("abc", 0, ""),
    ],
)
def test_cut(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_cut_text_fits(text: str, columns: int) -> None:
    assert width(cut(text, columns)) <= columns


@pytest.mark.parametrize(
    ("bytes_", "shown"),
    [(0, "0 B"), (999, "999 B"), (1536, "1.5 KB"), (300 * 1024, "300 KB"), (5 * 1024**2, "5.0 MB")],
)
def test_size(bytes_: int, shown: str) -> None:
    assert size(bytes_) == shown


def test_count() -> None:
    assert count(1, "run") == "1 run"
    assert count(1200, "run") == "1,200 runs"
    assert count(2, "entry", "entries") == "2 entries"
