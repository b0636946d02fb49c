"""Every command: its name, where its code lives, and a line about it.

The table is the only list of commands. The first help page is printed from it alone, so that looking for a
command loads none of them.
"""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command. `a b` is the command `b` of the group `a`."""

    name: str
    target: str  # module below orchestra.cli, and the function in it
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
    Command("run", "run:run", "FILE…", "Start workflows and play them.", PLAY),
    Command("resume", "resume:resume", "RUN | --all", "Go on with runs where they were.", PLAY),
    Command("status", "status:status", "RUN", "Show where a run stands.", PLAY),
    Command("log", "log:log", "RUN", "Tell a run as a story: what was decided, and why.", PLAY),
    Command("watch", "watch:watch", "RUN", "Follow a run that another process plays.", PLAY),
    Command("outputs", "outputs:outputs", "REF", "List the files a run made, or get them back.", PLAY),
    Command("questions", "questions:questions", "[RUN]", "List what runs wait for.", ASK),
    Command("answer", "questions:answer", "RUN [VALUE]", "Answer a question of a run.", ASK),
    Command("provide", "questions:provide", "RUN NAME", "Say that something it needs is there.", ASK),
    Command("pause", "orders:pause", "RUN", "Pause a run after what is under way.", ASK),
    Command("cancel", "orders:cancel", "RUN", "Cancel a run for good.", ASK),
    Command("snapshot", "orders:snapshot", "RUN [NOTE]", "Take a snapshot of a run now.", ASK),
    Command("retry", "orders:retry", "RUN ASSIGNMENT", "Try an assignment again.", ASK),
    Command("rollback", "rollback:rollback", "REF", "Go back to an earlier snapshot.", TRAVEL),
    Command("fork", "fork:fork", "REF", "Begin a new run at a snapshot of another.", TRAVEL),
    Command("replay", "fork:replay", "REF", "Fork a run and play it.", TRAVEL),
    Command("init", "init:init", "DIR", "Make a new project that runs at once.", WRITE),
    Command("check", "check:check", "FILE…", "Check workflow files and draw them.", WRITE),
    Command("agents", "cast:agents", "[FOLDER]", "List the agents in a folder.", WRITE),
    Command("schema", "check:schema", "", "Print the JSON Schema of workflow files.", WRITE),
    Command("config", "config:config", "", "Print every setting and where it came from.", WRITE),
    Command("runs", "runs:runs", "", "List the runs of a store, newest first.", LOOK),
    Command("browse", "browse:browse", "[RUN]", "Open a page to look at runs and go back in time.", LOOK),
    Command("snapshots", "snapshots:snapshots", "RUN", "List the snapshots of a run.", LOOK),
    Command("show", "show:show", "REF [PATH]", "Show a snapshot and its state, or one value of it.", LOOK),
    Command("diff", "diff:diff", "REF [REF]", "Show what differs between two snapshots.", LOOK),
    Command("blame", "blame:blame", "REF PATH", "Say which snapshot and which agent last set a value.", LOOK),
    Command("bisect", "bisect:bisect", "RUN EXPR", "Find the first snapshot where a condition holds.", LOOK),
    Command("stats", "stats:stats", "", "Say how runs went, what they spent and take up.", LOOK),
    Command("verify", "verify:verify", "[RUN]", "Prove every digest, link and reference.", KEEP),
    Command("audit", "audit:audit", "[RUN]", "List who read or removed snapshots.", KEEP),
    Command("pin", "marks:pin", "REF", "Keep a snapshot for good, whatever retention says.", KEEP),
    Command("note", "marks:note", "REF [TEXT]", "Write a note on a snapshot, or read it.", KEEP),
    Command("prune", "removal:prune", "[RUN]", "Remove what retention no longer keeps, and garbage.", KEEP),
    Command("delete", "removal:delete", "RUN", "Delete a run with all its snapshots.", KEEP),
    Command("export", "transfer:export", "RUN [FILE]", "Write a run to a file, or as readable JSON.", CARRY),
    Command("import", "transfer:import_", "FILE", "Read an exported run into a store.", CARRY),
    Command("doctor", "doctor:doctor", "", "Look for what is wrong, and say what to do.", STORE),
    Command("store info", "stores:info", "", "Say where a store is and how much it holds.", STORE),
    Command("store check", "stores:check", "", "Let a store look for damage in itself.", STORE),
    Command("store compact", "stores:compact", "", "Give free space back to the filesystem.", STORE),
    Command("store accept-loss", "stores:accept_loss", "", "Go on with a store that lost commits.", STORE),
    Command("completion", "completion:completion", "SHELL", "Print completions: bash, zsh or fish.", SHELL),
    # The names of the source documents.
    Command("list-checkpoints", "aliases:list_checkpoints", "", "The same as snapshots.", LOOK, hidden=True),
    Command(
        "validate-checkpoint",
        "aliases:validate_checkpoint",
        "",
        "The same as verify --file.",
        KEEP,
        hidden=True,
    ),
    Command("diff-checkpoints", "aliases:diff_checkpoints", "", "The same as diff.", LOOK, hidden=True),
)

GROUPS: Final = {"store": "Look after a store."}
"""What is said about the commands that have commands of their own."""
