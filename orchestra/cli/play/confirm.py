"""Asking before something is done that cannot simply be undone."""

import sys

from orchestra.cli.render.screen import screen
from orchestra.errors import UsageError


class NotConfirmed(UsageError):
    """Something that cannot simply be undone was asked for, and nobody said yes."""

    template = "{what} was not confirmed. Repeat it with --yes."


def confirm(question: str, what: str, yes: bool) -> None:
    """Go on when somebody says yes, on the command line or at the terminal; raises `NotConfirmed`."""
    if yes:
        return
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise NotConfirmed(what=what)
    out = screen()
    out.out.write(out.render([(question, "bold"), (" [y/N]", "dim")]) + " ")
    out.out.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed(what=what)
