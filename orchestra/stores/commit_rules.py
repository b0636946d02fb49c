"""The rules by which every store refuses a commit before it writes anything."""

from collections.abc import Callable

from orchestra import errors
from orchestra.errors import FenceLost, HeadMoved, OrchestraError
from orchestra.ids import Digest, RunId
from orchestra.ports.store import Commit


def refuse_first(commit: Commit) -> OrchestraError | None:
    """Why a commit cannot begin a run; None when it can."""
    run = commit.row.run
    if commit.expected is not None or commit.row.seq != 0:
        return HeadMoved(run=run, current="nothing", expected=commit.expected)
    return FenceLost(run=run, fence=commit.fence, current=0) if commit.fence != 1 else None


def refuse_next(commit: Commit, fence: int, head: Digest, seq: int) -> OrchestraError | None:
    """Why a commit cannot follow a head with that digest and number; None when it can."""
    run = commit.row.run
    if commit.expected is None:
        return errors.RunExists(run=run)
    if commit.fence != fence:
        return FenceLost(run=run, fence=commit.fence, current=fence)
    if commit.expected != head or commit.row.seq != seq + 1:
        return HeadMoved(run=run, current=head, expected=commit.expected)
    return None


def refuse_content(
    commit: Commit,
    nearest: Callable[[RunId, int], str],
    there: Callable[[Digest], bool],
    waits: Callable[[int], bool],
) -> OrchestraError | None:
    """Why a commit cannot have what it needs; None when all of that is there.

    `nearest` names the kept snapshots around one that was pruned, is empty for one that was not, and raises
    `LookupError` where there is none; `there` knows stored objects, and `waits` commands.
    """
    if commit.whole is not None:
        run, seq = commit.whole
        try:
            near = nearest(run, seq)
        except LookupError:
            return errors.UnknownSnapshot(run=run, reference=seq, reason="it was deleted, or never was")
        if near:
            return errors.PrunedSnapshot(run=run, seq=seq, nearest=near)
    own = {digest for digest, _ in commit.objects}
    for digest in commit.requires:
        if digest not in own and not there(digest):
            return errors.MissingObject(what=f"object {digest.hex()[:16]}")
    for command in commit.consumed:
        if not waits(command):
            reason = "it is not there any more"
            return errors.CommandGone(run=commit.row.run, command=command, reason=reason)
    return None
