"""Every command: its name, where its code lives, and a line about it.

The table is the only list of commands. The first help page is printed from it alone, so that looking for a
command loads none of them.
"""

from typing import Final, NamedTuple


class CommandEntry(NamedTuple):
    """One command. `a b` is the command `b` of the group `a`."""

    name: str
    arguments: str
    summary: str
    section: str
    place: str = ""  # where it is not in a module of its name: the module, and the function in it
    hidden: bool = False

    @property
    def target(self) -> str:
        """The module below orchestra.cli.commands, and the function in it."""
        return self.place or f"{self.name}:{self.name}"


def _alias(name: str, command: str, place: str, section: str) -> CommandEntry:
    return CommandEntry(name, "", f"The same as {command}.", section, place, hidden=True)


PLAY: Final = "Play"
ASK: Final = "Take part"
TRAVEL: Final = "Go back and branch off"
WRITE: Final = "Write"
LOOK: Final = "Look"
KEEP: Final = "Keep"
CARRY: Final = "Carry"
STORE: Final = "Store"
SHELL: Final = "Shell"

COMMANDS: Final = (
    CommandEntry("run", "FILE…", "Start workflows and play them.", PLAY),
    CommandEntry("resume", "RUN | --all", "Go on with runs where they were.", PLAY),
    CommandEntry("status", "RUN", "Show where a run stands.", PLAY),
    CommandEntry("log", "RUN", "Tell a run as a story: what was decided, and why.", PLAY),
    CommandEntry("watch", "RUN", "Follow a run that another process plays.", PLAY),
    CommandEntry("chat", "REF [AGENT]", "Show what an agent and its language model say.", PLAY),
    CommandEntry("outputs", "REF", "List the files a run made, or get them back.", PLAY),
    CommandEntry("questions", "[RUN]", "List what runs wait for.", ASK),
    CommandEntry("answer", "RUN [VALUE]", "Answer a question of a run.", ASK),
    CommandEntry("provide", "RUN NAME", "Say that something it needs is there.", ASK),
    CommandEntry("pause", "RUN", "Pause a run after what is under way.", ASK),
    CommandEntry("cancel", "RUN", "Cancel a run for good.", ASK),
    CommandEntry("snapshot", "RUN [NOTE]", "Take a snapshot of a run now.", ASK),
    CommandEntry("retry", "RUN ASSIGNMENT", "Try an assignment again.", ASK),
    CommandEntry("rollback", "REF", "Go back to an earlier snapshot.", TRAVEL),
    CommandEntry("fork", "REF", "Begin a new run at a snapshot of another.", TRAVEL),
    CommandEntry("replay", "REF", "Fork a run and play it.", TRAVEL, "fork:replay"),
    CommandEntry("init", "DIR", "Make a new project that runs at once.", WRITE),
    CommandEntry("check", "FILE…", "Check workflow files and draw them.", WRITE),
    CommandEntry("agents", "[FOLDER]", "List the agents in a folder.", WRITE),
    CommandEntry("schema", "", "Print the JSON Schema of workflow files.", WRITE, "check:schema"),
    CommandEntry("config", "", "Print every setting and where it came from.", WRITE),
    CommandEntry("runs", "", "List the runs of a store, newest first.", LOOK),
    CommandEntry("browse", "[RUN]", "Open a page to look at runs and go back in time.", LOOK),
    CommandEntry("snapshots", "RUN", "List the snapshots of a run.", LOOK),
    CommandEntry("show", "REF [PATH]", "Show a snapshot and its state, or one value of it.", LOOK),
    CommandEntry("diff", "REF [REF]", "Show what differs between two snapshots.", LOOK),
    CommandEntry("blame", "REF PATH", "Say which snapshot and which agent last set a value.", LOOK),
    CommandEntry("bisect", "RUN EXPR", "Find the first snapshot where a condition holds.", LOOK),
    CommandEntry("stats", "", "Say how runs went, what they spent and take up.", LOOK),
    CommandEntry("verify", "[RUN]", "Prove every digest, link and reference.", KEEP),
    CommandEntry("audit", "[RUN]", "List who read or removed snapshots.", KEEP),
    CommandEntry("pin", "REF", "Keep a snapshot for good, whatever retention says.", KEEP),
    CommandEntry("note", "REF [TEXT]", "Write a note on a snapshot, or read it.", KEEP),
    CommandEntry("prune", "[RUN]", "Remove what retention no longer keeps, and garbage.", KEEP),
    CommandEntry("delete", "RUN", "Delete a run with all its snapshots.", KEEP),
    CommandEntry("export", "RUN [FILE]", "Write a run to a file, or as readable JSON.", CARRY),
    CommandEntry("import", "FILE", "Read an exported run into a store.", CARRY, "import_:import_"),
    CommandEntry("doctor", "", "Look for what is wrong, and say what to do.", STORE),
    CommandEntry("store info", "", "Say where a store is and how much it holds.", STORE, "store:info"),
    CommandEntry("store check", "", "Let a store look for damage in itself.", STORE, "store:check"),
    CommandEntry("store compact", "", "Give free space back to the filesystem.", STORE, "store:compact"),
    CommandEntry(
        "store accept-loss", "", "Go on with a store that lost commits.", STORE, "store:accept_loss"
    ),
    CommandEntry("completion", "SHELL", "Print completions: bash, zsh or fish.", SHELL),
    # The names of the source documents, for scripts that use them.
    _alias("list-checkpoints", "snapshots", "snapshots:list_checkpoints", LOOK),
    _alias("validate-checkpoint", "verify --file", "verify:validate_checkpoint", KEEP),
    _alias("diff-checkpoints", "diff", "diff:diff_checkpoints", LOOK),
)

GROUPS: Final = {"store": "Look after a store."}
"""What is said about the commands that have commands of their own."""
