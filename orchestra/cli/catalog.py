"""Every command: its name, where its code lives, and a line about it.

The table is the only list of commands. The first help page is printed from it alone, so that looking for a
command loads none of them.
"""

from typing import Final, NamedTuple


class CommandEntry(NamedTuple):
    """One command. `a b` is the command `b` of the group `a`."""

    name: str
    target: str  # module below orchestra.cli.commands, and the function in it
    arguments: str
    summary: str
    section: str
    hidden: bool = False


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
    CommandEntry("run", "run:run", "FILE…", "Start workflows and play them.", PLAY),
    CommandEntry("resume", "resume:resume", "RUN | --all", "Go on with runs where they were.", PLAY),
    CommandEntry("status", "status:status", "RUN", "Show where a run stands.", PLAY),
    CommandEntry("log", "log:log", "RUN", "Tell a run as a story: what was decided, and why.", PLAY),
    CommandEntry("watch", "watch:watch", "RUN", "Follow a run that another process plays.", PLAY),
    CommandEntry("outputs", "outputs:outputs", "REF", "List the files a run made, or get them back.", PLAY),
    CommandEntry("questions", "questions:questions", "[RUN]", "List what runs wait for.", ASK),
    CommandEntry("answer", "answer:answer", "RUN [VALUE]", "Answer a question of a run.", ASK),
    CommandEntry("provide", "provide:provide", "RUN NAME", "Say that something it needs is there.", ASK),
    CommandEntry("pause", "pause:pause", "RUN", "Pause a run after what is under way.", ASK),
    CommandEntry("cancel", "cancel:cancel", "RUN", "Cancel a run for good.", ASK),
    CommandEntry("snapshot", "snapshot:snapshot", "RUN [NOTE]", "Take a snapshot of a run now.", ASK),
    CommandEntry("retry", "retry:retry", "RUN ASSIGNMENT", "Try an assignment again.", ASK),
    CommandEntry("rollback", "rollback:rollback", "REF", "Go back to an earlier snapshot.", TRAVEL),
    CommandEntry("fork", "fork:fork", "REF", "Begin a new run at a snapshot of another.", TRAVEL),
    CommandEntry("replay", "fork:replay", "REF", "Fork a run and play it.", TRAVEL),
    CommandEntry("init", "init:init", "DIR", "Make a new project that runs at once.", WRITE),
    CommandEntry("check", "check:check", "FILE…", "Check workflow files and draw them.", WRITE),
    CommandEntry("agents", "agents:agents", "[FOLDER]", "List the agents in a folder.", WRITE),
    CommandEntry("schema", "check:schema", "", "Print the JSON Schema of workflow files.", WRITE),
    CommandEntry("config", "config:config", "", "Print every setting and where it came from.", WRITE),
    CommandEntry("runs", "runs:runs", "", "List the runs of a store, newest first.", LOOK),
    CommandEntry(
        "browse", "browse:browse", "[RUN]", "Open a page to look at runs and go back in time.", LOOK
    ),
    CommandEntry("snapshots", "snapshots:snapshots", "RUN", "List the snapshots of a run.", LOOK),
    CommandEntry(
        "show", "show:show", "REF [PATH]", "Show a snapshot and its state, or one value of it.", LOOK
    ),
    CommandEntry("diff", "diff:diff", "REF [REF]", "Show what differs between two snapshots.", LOOK),
    CommandEntry(
        "blame", "blame:blame", "REF PATH", "Say which snapshot and which agent last set a value.", LOOK
    ),
    CommandEntry(
        "bisect", "bisect:bisect", "RUN EXPR", "Find the first snapshot where a condition holds.", LOOK
    ),
    CommandEntry("stats", "stats:stats", "", "Say how runs went, what they spent and take up.", LOOK),
    CommandEntry("verify", "verify:verify", "[RUN]", "Prove every digest, link and reference.", KEEP),
    CommandEntry("audit", "audit:audit", "[RUN]", "List who read or removed snapshots.", KEEP),
    CommandEntry("pin", "pin:pin", "REF", "Keep a snapshot for good, whatever retention says.", KEEP),
    CommandEntry("note", "note:note", "REF [TEXT]", "Write a note on a snapshot, or read it.", KEEP),
    CommandEntry(
        "prune", "prune:prune", "[RUN]", "Remove what retention no longer keeps, and garbage.", KEEP
    ),
    CommandEntry("delete", "delete:delete", "RUN", "Delete a run with all its snapshots.", KEEP),
    CommandEntry(
        "export", "export:export", "RUN [FILE]", "Write a run to a file, or as readable JSON.", CARRY
    ),
    CommandEntry("import", "import_:import_", "FILE", "Read an exported run into a store.", CARRY),
    CommandEntry("doctor", "doctor:doctor", "", "Look for what is wrong, and say what to do.", STORE),
    CommandEntry("store info", "store:info", "", "Say where a store is and how much it holds.", STORE),
    CommandEntry("store check", "store:check", "", "Let a store look for damage in itself.", STORE),
    CommandEntry("store compact", "store:compact", "", "Give free space back to the filesystem.", STORE),
    CommandEntry(
        "store accept-loss", "store:accept_loss", "", "Go on with a store that lost commits.", STORE
    ),
    CommandEntry(
        "completion", "completion:completion", "SHELL", "Print completions: bash, zsh or fish.", SHELL
    ),
    # The names of the source documents.
    CommandEntry(
        "list-checkpoints", "aliases:list_checkpoints", "", "The same as snapshots.", LOOK, hidden=True
    ),
    CommandEntry(
        "validate-checkpoint",
        "aliases:validate_checkpoint",
        "",
        "The same as verify --file.",
        KEEP,
        hidden=True,
    ),
    CommandEntry("diff-checkpoints", "aliases:diff_checkpoints", "", "The same as diff.", LOOK, hidden=True),
)

GROUPS: Final = {"store": "Look after a store."}
"""What is said about the commands that have commands of their own."""
