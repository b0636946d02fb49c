"""`orchestra completion`: a script that completes commands, options and runs in a shell.

The script for commands and options is made by cyclopts. Names of runs are what `orchestra completion --runs`
prints when they are asked for, which `orchestra.cli.dispatch` answers without loading anything of this.
"""

import sys
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from orchestra.cli.catalog import COMMANDS

_NAMES: Final = "orchestra completion --runs 2>/dev/null"
_BASH: Final = """
_orchestra_and_runs() {
  _orchestra "$@"
  local cur="${COMP_WORDS[COMP_CWORD]}"
  if [[ $COMP_CWORD -eq 2 && "$cur" != -* && " @COMMANDS@ " == *" ${COMP_WORDS[1]} "* ]]; then
    COMPREPLY=($(compgen -W "$(@NAMES@)" -- "$cur"))
  fi
}

complete -F _orchestra_and_runs orchestra
"""
_ZSH: Final = """
_orchestra() {
  if [[ $CURRENT -eq 3 && "$words[3]" != -* && " @COMMANDS@ " == *" $words[2] "* ]]; then
    compadd -- ${(f)"$(@NAMES@)"}
  else
    _cyclopts_orchestra "$@"
  fi
}

compdef _orchestra orchestra
if [[ "$funcstack[1]" == (_orchestra|_cyclopts_orchestra) ]]; then
  _orchestra "$@"
fi
"""
_FISH: Final = "complete -c orchestra -n '__fish_orchestra_using_command @COMMAND@' -f -a '(@NAMES@)'\n"


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish.")], /
) -> None:
    """Print a script that completes commands, options and runs in a shell.

    For bash: orchestra completion bash > ~/.local/share/bash-completion/completions/orchestra
    """
    from orchestra.cli.application import application

    sys.stdout.write(application().generate_completion(prog_name="orchestra", shell=shell) + _of_runs(shell))


def _of_runs(shell: str) -> str:
    """What is added to the script so that the first argument of a command is completed where it is a run."""
    commands = [each.name for each in COMMANDS if each.arguments.lstrip("[").startswith(("RUN", "REF"))]
    if shell == "fish":
        added = "".join(_FISH.replace("@COMMAND@", each) for each in commands)
    else:
        added = (_BASH if shell == "bash" else _ZSH).replace("@COMMANDS@", " ".join(commands))
    return added.replace("@NAMES@", _NAMES)
