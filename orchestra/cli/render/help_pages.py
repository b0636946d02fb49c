"""The help page of one command, in the look of the first help page."""

from typing import Any

from orchestra.cli.render.help import print_entry
from orchestra.cli.render.screen import Screen, screen

_TITLES = {"Parameters": "Options"}


class HelpPages:
    """Prints help for cyclopts; it hands over panels of entries."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print one group of commands or options."""
        if not panel.entries:
            return
        out = _screen(console)
        out.line((_TITLES.get(str(panel.title), str(panel.title)), "bold"))
        for entry in panel.entries:
            names = ", ".join(entry.display_labels)
            print_entry(out, names, _metavar(entry), _plain(entry.description) + _default(entry))
        out.line()

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print how the command is written."""
        out = _screen(console)
        out.line(("Usage: ", "dim"), _plain(usage).removeprefix("Usage: "))
        out.line()

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print what the command does."""
        out = _screen(console)
        for paragraph in _plain(description).split("\n\n"):
            out.paragraph([(" ".join(paragraph.split()), "")])
            out.line()


def _screen(console: Any) -> Screen:
    return screen(console.file)


def _plain(shown: Any) -> str:
    """The text of what cyclopts hands over: a string, or a text wrapped once or twice."""
    inner = getattr(shown, "primary_renderable", shown)
    return "" if inner is None else str(getattr(inner, "plain", inner)).strip()


def _metavar(entry: Any) -> str:
    return "" if entry.positional_label else entry.metavar or ""


def _default(entry: Any) -> str:
    shown = _plain(entry.default)
    return f" [default: {shown}]" if shown else ""
