"""The progress line: only on a terminal, only for long work, and gone afterwards."""

import io
import sys

import pytest

from orchestra.cli.render import screen
from orchestra.cli.render.screen import Progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _printed(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, patience: float) -> str:
    monkeypatch.setattr(screen, "_SECONDS_BEFORE", patience)
    monkeypatch.setattr(screen, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("verifying") as step:
        step(1, 4)
        step(2, 4)
    return stream.getvalue()


def test_long_work_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _printed(monkeypatch, _Terminal(), patience=0.0)
    assert "verifying  ━━━━━━──────────────────  1 of 4" in shown
    assert shown.endswith("2 of 4\r\x1b[2K")


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _printed(monkeypatch, _Terminal(), patience=1000.0) == ""


def test_a_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _printed(monkeypatch, io.StringIO(), patience=0.0) == ""
