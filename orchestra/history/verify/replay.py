"""Whether patches lead to what the next seal says, and whether a header and a state agree.

What two documents share is not compared. A replayed node that equals a sealed one takes over its digest, so
the next comparison skips it too.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from orchestra.codec.document import Document
from orchestra.codec.loader import SealedNode
from orchestra.codec.patch import Operation
from orchestra.codec.readers import structure
from orchestra.errors import Damaged
from orchestra.history.archive import operations_on
from orchestra.history.verify.ledger import ATOMS
from orchestra.model.snapshot import Header
from orchestra.model.state import State
from orchestra.model.tree import Node, Table, Vec, is_same_node


def difference(mine: Any, theirs: Any, path: str = "") -> str | None:
    """The first place where two parts of documents differ, or None when they are equal."""
    if mine is theirs:
        return None
    if type(mine) is not type(theirs):
        return path or "/"
    if isinstance(mine, dict):
        if mine.keys() != theirs.keys():
            return f"{path}/{min(mine.keys() ^ theirs.keys())}"
        found = (difference(mine[name], theirs[name], f"{path}/{name}") for name in mine)
        return next((place for place in found if place is not None), None)
    if isinstance(mine, Table):
        return difference(mine.pairs, theirs.pairs, path)
    if isinstance(mine, Vec):
        return _in_sequence(mine, theirs, path)
    if isinstance(mine, list | tuple):
        return _in_items(mine, theirs, path)
    both_nan = isinstance(mine, float) and mine != mine and theirs != theirs
    return None if mine == theirs or both_nan else path or "/"


def _in_items(mine: Sequence[Any], theirs: Sequence[Any], path: str) -> str | None:
    if len(mine) != len(theirs):
        return path
    pairs = zip(mine, theirs, strict=True)
    found = (difference(one, other, f"{path}/{at}") for at, (one, other) in enumerate(pairs))
    return next((place for place in found if place is not None), None)


def _in_sequence(mine: Vec[Any], theirs: Vec[Any], path: str) -> str | None:
    if len(mine) != len(theirs) or (mine.root is None) != (theirs.root is None):
        return path
    found = None
    if mine.root is not None and theirs.root is not None:
        found = _in_nodes(mine.root, theirs.root, mine.shift, path)
    return found or _in_nodes(mine.tail, theirs.tail, 0, path)


def _in_nodes(mine: Node, theirs: Node, shift: int, path: str) -> str | None:
    if is_same_node(mine, theirs):
        return None
    if shift == 0:
        found = _in_items(mine.items, theirs.items, path)
    elif len(mine.items) != len(theirs.items):
        found = path
    else:
        pairs = zip(mine.items, theirs.items, strict=True)
        found = next((wrong for a, b in pairs if (wrong := _in_nodes(a, b, shift - 5, path))), None)
    if found is None and mine.digest is None and isinstance(theirs, SealedNode):
        mine.digest = theirs.digest
    return found


def contradiction(header: Header, document: Document) -> str | None:
    """The first thing that a header says otherwise than the state it heads, or None."""
    cursor = document.get("cursor", {})
    if not isinstance(cursor, dict):
        return "phase"
    pairs: dict[str, tuple[Any, Any]] = {
        "run": (header.run, document.get("run")),
        "status": (header.status, document.get("status", "pending")),
        "phase": (header.phase, cursor.get("phase")),
        "phase number": (header.ordinal, cursor.get("ordinal", 0)),
        "generation": (header.generation, document.get("generation", 0)),
    }
    if header.counts is not None:
        pairs["number of tasks"] = (header.counts.tasks, len(document.get("tasks", ())))
        pairs["number of decisions"] = (header.counts.decisions, len(document.get("decisions", ())))
    return next((name for name, (said, held) in pairs.items() if said != held), None)


def workflow_name(document: Document) -> str | None:
    """What the workflow of a state is called, or None when the state does not say."""
    workflow = document.get("workflow")
    name = workflow.get("name") if isinstance(workflow, dict) else None
    return name if isinstance(name, str) else None


def misstates_decision(header: Header, operations: Sequence[Operation]) -> bool:
    """Whether a header says wrongly that its own patch brought the last decision, or that it did not."""
    ago = None if header.counts is None else header.counts.ago
    if ago is None or (operations and operations[0][:1] == ["reset"]):
        return False
    return bool(operations_on(operations, ("decisions",))) != (ago == 0)


def read_whole(document: Document, what: str) -> State:
    """The state of a document, every part of it read; raises `Damaged` or `MissingObject`."""
    state = structure(document, State, what=what)
    waiting: list[Any] = [state]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Vec | tuple):
            waiting.extend(part)
        elif isinstance(part, Table):
            try:
                part.position("")  # the first question makes the index, and finds keys that are there twice
            except ValueError as error:
                raise Damaged(what=what, reason=str(error)) from None
            waiting.append(part.pairs)
        elif type(part) not in ATOMS and attrs.has(type(part)):
            waiting.extend(getattr(part, field.name) for field in attrs.fields(type(part)))
    return state
