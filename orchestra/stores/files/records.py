"""The records of a run's log: rows, claims, commands and annotations, each the columns and body of a frame.

A run is read from its records, first to last. A record that does not fit what came before it is damage, like
one whose check fails.
"""

from collections.abc import Mapping
from typing import Any

from orchestra.ids import Digest, Fence, Instant, RunId
from orchestra.ports.store import Annotation, Claim, Command, Commit, Row
from orchestra.stores.files.frames import pack
from orchestra.stores.run_index import IndexedRun

Columns = Mapping[str, Any]

_PLAIN = ("seq", "at", "status", "phase", "marked", "sealed_at", "size", "pruned", "no")
_LISTS = ("triggers", "agents")


class MisplacedRecord(Exception):
    """A record that is whole but does not fit what came before it."""


def row_frame(commit: Commit, row: Row, owner: str | None) -> bytes:
    """The record of a commit; `row` is its row with number and contents."""
    columns = {name: getattr(row, name) for name in (*_PLAIN, *_LISTS)}
    columns |= {
        "kind": "row",
        "run": row.run,
        "digest": row.digest.hex(),
        "parent": row.parent.hex() if row.parent is not None else None,
        "seal": row.seal.hex(),
        "header": len(row.header),
        "fence": commit.fence,
        "owner": owner,
        "family": commit.family,
        "workflow": commit.workflow,
        "consumed": commit.consumed,
    }
    return pack(columns, row.header + (row.patch or b""))


def pruned_frame(columns: Columns, body: bytes) -> bytes:
    """The record of a row without its patch."""
    return pack({**columns, "pruned": True}, body[: columns["header"]])


def claim_frame(claim: Claim) -> bytes:
    """The record of a claim on an existing run."""
    return pack({"kind": "claim", "fence": claim.fence, "owner": claim.owner})


def command_frame(command: Command) -> bytes:
    """The record of a command that was sent."""
    return pack({"kind": "command", "id": command.id, "at": command.at}, command.body)


def withdrawal_frame(command: int) -> bytes:
    """The record of a command that was taken back."""
    return pack({"kind": "taken_back", "id": command})


def annotation_frame(annotation: Annotation) -> bytes:
    """The record of an annotation that was set or, with an empty body, removed."""
    return pack({"kind": "annotation", "seq": annotation.seq, "of": annotation.kind}, annotation.body)


def replay_row(run: RunId, entry: IndexedRun | None, columns: Columns) -> IndexedRun:
    """Enter a row; the first one makes the run."""
    row = _row(columns)
    if row.run != run or row.seq != (len(entry.rows) if entry else 0):
        raise MisplacedRecord(f"a row of {row.run}@{row.seq} stands where another belongs")
    if entry is None:
        family, workflow = RunId(columns["family"]), columns["workflow"]
        entry = IndexedRun(run=run, family=family, workflow=workflow, fence=Fence(0), owner=None)
    elif row.no <= entry.head.no:
        raise MisplacedRecord(f"row {row.seq} has a number below the row before it")
    entry.rows.append(row)
    if columns["fence"] != entry.fence:  # the claim of a run that was new; later ones have records
        entry.fence, entry.owner = Fence(columns["fence"]), columns["owner"]
    for id in columns["consumed"]:
        entry.commands.pop(id, None)
    return entry


def replay_other(entry: IndexedRun, columns: Columns, body: bytes) -> None:
    """Enter anything but a row."""
    kind = columns.get("kind")
    if kind == "claim":
        entry.fence, entry.owner = Fence(columns["fence"]), columns["owner"]
    elif kind == "command":
        at = Instant(columns["at"])
        entry.add_command(Command(id=columns["id"], run=entry.run, at=at, body=body))
    elif kind == "taken_back":
        entry.commands.pop(columns["id"], None)
    elif kind == "annotation":
        entry.set_annotation(Annotation(run=entry.run, seq=columns["seq"], kind=columns["of"], body=body))
    else:
        raise MisplacedRecord(f"a record is of the unknown kind {kind!r}")


def _row(columns: Columns) -> Row:
    try:
        plain: dict[str, Any] = {name: columns[name] for name in _PLAIN}
        lists: dict[str, Any] = {name: tuple(columns[name]) for name in _LISTS}
        parent = columns["parent"]
        return Row(
            run=RunId(columns["run"]),
            digest=Digest(bytes.fromhex(columns["digest"])),
            parent=Digest(bytes.fromhex(parent)) if parent is not None else None,
            seal=Digest(bytes.fromhex(columns["seal"])),
            **plain,
            **lists,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MisplacedRecord(f"a row cannot be read: {error}") from None
