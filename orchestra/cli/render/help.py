"""Help pages: the first, with every command by what it is for, and that of one command."""

from typing import Any

from orchestra.cli.catalog import COMMANDS
from orchestra.cli.render.screen import Screen, screen

_ABOUT = "Runs teams of agents and never loses their work."
_REFERENCES = (
    ("RUN", "", "a run's id, or any beginning of it that fits no other run"),
    ("REF", "", "RUN@12, RUN@-1, RUN@head, RUN@last-good, RUN@phase:NAME, a digest's beginning, a UUID"),
    ("PATH", "", 'a place in a state: status, decisions[-1].rationale, context["a name"]'),
)
_OPTIONS = (
    (
        "--store URL",
        "",
        "sqlite:FILE or files:FOLDER; else ORCHESTRA_STORE, else sqlite:outputs/orchestra.db",
    ),
    ("--json", "", "one JSON document in place of text; see docs/reference/commands.md"),
    ("--help", "", "about orchestra, or after a command about that command"),
    ("--version", "", "which version this is"),
)
_WIDTH = 22
_TITLES = {"Parameters": "Options"}


def print_help(screen: Screen) -> None:
    """Print the first help page."""
    screen.line(_ABOUT)
    screen.line()
    screen.line(("Usage: ", "dim"), "orchestra COMMAND [ARGUMENTS] [OPTIONS]")
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for each in COMMANDS:
        if not each.hidden:
            sections.setdefault(each.section, []).append((each.name, each.arguments, each.summary))
    for title, entries in {**sections, "Arguments": _REFERENCES, "Options": _OPTIONS}.items():
        screen.line()
        screen.line((title, "bold"))
        for entry in entries:
            print_entry(screen, *entry)


def print_entry(screen: Screen, name: str, arguments: str, meaning: str) -> None:
    """A name and what it means; a meaning that is too long goes on below itself."""
    room = max((screen.columns or 80) - _WIDTH - 2, 20)
    gap = " " * max(_WIDTH - len(name) - len(arguments) - bool(arguments), 2)
    lines = [""]
    for word in meaning.split(" "):
        if len(lines[-1]) + len(word) + 1 > room and lines[-1]:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    first, *rest = lines
    screen.line("  ", (name, "accent"), (" " + arguments if arguments else "", "dim"), gap, first)
    for line in rest:
        screen.line(" " * (_WIDTH + 2), line)


class HelpPages:
    """Prints help for cyclopts; it hands over panels of entries."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print one group of commands or options."""
        if not panel.entries:
            return
        out = screen(console.file)
        out.line((_TITLES.get(str(panel.title), str(panel.title)), "bold"))
        for entry in panel.entries:
            metavar = "" if entry.positional_label else entry.metavar or ""
            shown = _plain(entry.default)
            meaning = _plain(entry.description) + (f" [default: {shown}]" if shown else "")
            print_entry(out, ", ".join(entry.display_labels), metavar, meaning)
        out.line()

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print how the command is written."""
        out = screen(console.file)
        out.line(("Usage: ", "dim"), _plain(usage).removeprefix("Usage: "))
        out.line()

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print what the command does."""
        out = screen(console.file)
        for paragraph in _plain(description).split("\n\n"):
            out.paragraph([(" ".join(paragraph.split()), "")])
            out.line()


def _plain(shown: Any) -> str:
    """The text of what cyclopts hands over: a string, or a text wrapped once or twice."""
    inner = getattr(shown, "primary_renderable", shown)
    return "" if inner is None else str(getattr(inner, "plain", inner)).strip()
