"""The command line. Importing this package costs nothing: what a command needs is loaded when it runs."""


def main() -> None:
    """Run the command line of this process and end it with the exit code of the command."""
    from orchestra.cli.entry import run

    raise SystemExit(run())


def command_names() -> list[str]:
    """The commands people are told about, e.g. `runs` or `store check`."""
    from orchestra.cli.catalog import COMMANDS

    return [command.name for command in COMMANDS if not command.hidden]
