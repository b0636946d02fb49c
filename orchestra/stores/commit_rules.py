"""The rules by which every store refuses a commit before it writes anything."""

from collections.abc import Callable

from orchestra.errors import CommandGone, FenceLost, HeadMoved, OrchestraError, RunExists
from orchestra.ids import Digest, RunId
from orchestra.ports.store import Commit


def refuse_first(commit: Commit) -> OrchestraError | None:
    """Why a commit cannot begin a run; None when it can."""
    run = commit.row.run
    if commit.expected is not None or commit.row.seq != 0:
        return HeadMoved(run=run, current="nothing", expected=commit.expected)
    if commit.fence != 1:
        return FenceLost(run=run, fence=commit.fence, current=0)
    return None


def refuse_next(commit: Commit, run: RunId, fence: int, head: Digest, seq: int) -> OrchestraError | None:
    """Why a commit cannot follow a head with that digest and number; None when it can."""
    if commit.expected is None:
        return RunExists(run=run)
    if commit.fence != fence:
        return FenceLost(run=run, fence=commit.fence, current=fence)
    if commit.expected != head or commit.row.seq != seq + 1:
        return HeadMoved(run=run, current=head, expected=commit.expected)
    return None


def refuse_gone(commit: Commit, waits: Callable[[int], bool]) -> OrchestraError | None:
    """Why a commit cannot consume what it wants to; None when every command still waits."""
    for command in commit.consumed:
        if not waits(command):
            return CommandGone(run=commit.row.run, command=command, reason="it is not there any more")
    return None
