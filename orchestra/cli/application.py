"""The door to cyclopts: the application with all commands, none of them loaded before it is used."""

from cyclopts import App, Parameter

from orchestra.cli.catalog import COMMANDS, GROUPS
from orchestra.cli.render.help import HelpPages
from orchestra.version import VERSION


def application() -> App:
    """The application."""
    app = App(
        name="orchestra",
        help="Runs teams of agents and never loses their work.",
        version=VERSION,
        help_format="plaintext",
        help_formatter=HelpPages(),
        # Of defaults numbers are worth saying; that a flag is off is not.
        default_parameter=Parameter(
            negative="", show_default=lambda default: str(default) if type(default) is int and default else ""
        ),
        suppress_keyboard_interrupt=False,
    )
    groups = {name: App(name=name, help=about, version_flags=()) for name, about in GROUPS.items()}
    for group in groups.values():
        app.command(group)
    for command in COMMANDS:
        group_name, _, name = command.name.rpartition(" ")
        arguments = f" {command.arguments}" if command.arguments else ""
        (groups[group_name] if group_name else app).command(
            f"orchestra.cli.commands.{command.target}",
            name=name,
            usage=f"orchestra {command.name}{arguments} [OPTIONS]",
            show=not command.hidden,
            help=command.summary if group_name or command.hidden else None,
            version_flags=(),
        )
    return app
