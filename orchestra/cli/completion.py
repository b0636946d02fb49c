"""`orchestra completion`: a script that completes commands and options in a shell."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish.")], /
) -> None:
    """Print a script that completes commands and options in a shell.

    For bash: orchestra completion bash > ~/.local/share/bash-completion/completions/orchestra
    """
    from orchestra.cli.commands import application

    sys.stdout.write(application().generate_completion(prog_name="orchestra", shell=shell))
