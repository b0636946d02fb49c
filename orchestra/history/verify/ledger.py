"""The ledger of a verification: every object that snapshots need, proved once.

For each object it keeps which damaged or missing objects lie at or below it; never the content. A state also
*names* digests (its definition, its outputs): such an object may be absent; it is proved if present.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import attrs

from orchestra.codec.frame import Framer
from orchestra.codec.loader import Loader, SealedNode
from orchestra.codec.readers import Address
from orchestra.errors import DamageError, OrchestraError
from orchestra.history.verify.report import Case, Finding
from orchestra.ids import Digest, RunId
from orchestra.limits import TREE_FANOUT
from orchestra.model.tree import Node, Table, Vec, shift_for
from orchestra.model.value import Value
from orchestra.ports.store import Store

_BATCH: Final = 128
_OPAQUE: Final = ("value", "blob")
ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})
_NODES: Final = ("root", "branch", "leaf")


@attrs.frozen
class LedgerEntry:
    """What is known of one object."""

    kind: str
    bad: frozenset[Digest]  # damaged or missing objects at or below it
    height: int = -1  # of a node above its leaves
    count: int = 0  # items of a node
    full: bool = False  # whether every leaf of a node has all the items it can have


@attrs.define
class _Opened:
    """An object as it was read, before what lies below it is known."""

    kind: str = ""
    problem: str | None = None
    others: tuple[Digest, ...] = ()
    children: tuple[Digest, ...] = ()
    used: "UsedDigests" = attrs.field(factory=lambda: UsedDigests())
    items: int = 0

    def below(self) -> Iterator[Digest]:
        yield from self.others
        yield from self.children
        yield from self.used.references


class ObjectLedger:
    """Proves objects and remembers what it found."""

    def __init__(self, store: Store, framer: Framer) -> None:
        self._store, self._framer = store, framer
        self._loader = Loader(store.get_objects, framer)
        self.entries: dict[Digest, LedgerEntry] = {}
        self.cases: dict[Digest, Case] = {}
        self.named: set[Digest] = set()

    def learn(self, digests: Iterable[Digest]) -> None:
        """Read and prove these objects and everything below them that is not known yet."""
        found: dict[Digest, _Opened] = {}
        level = self._unknown(digests, found)
        while level:
            for digest, frame in self._frames(level):
                opened = found[digest] = self._open(digest, frame)
                self.named.update(opened.used.named)
            level = self._unknown((below for each in level for below in found[each].below()), found)
        self._loader.forget()
        self._settle(found)

    def learn_named(self) -> None:
        """Prove the objects that states name, as far as they are there."""
        asked = [digest for digest in self.named if digest not in self.entries]
        self.learn([digest for digest, frame in self._frames(asked) if frame is not None])

    def bad(self, digest: Digest) -> frozenset[Digest]:
        """The damaged or missing objects at or below a known object."""
        return self.entries[digest].bad if digest in self.entries else frozenset()

    def bad_in(self, thing: Any) -> frozenset[Digest]:
        """The damaged or missing objects that a document needs; fetches nothing."""
        found: set[Digest] = set()
        waiting = [thing]
        while waiting:
            part = waiting.pop()
            digest = part.digest if isinstance(part, Value | Node) else None
            if digest is not None and digest in self.entries:
                found |= self.entries[Digest(digest)].bad
            elif not isinstance(part, SealedNode):
                waiting.extend(_parts(part))
        return frozenset(found)

    def blame(self, digests: Iterable[Digest], run: RunId, seq: int) -> None:
        """Note that a snapshot cannot be read because of these objects."""
        for digest in digests:
            self.cases[digest].spans.add(run, seq)

    def findings(self) -> list[Finding]:
        """The damaged and missing objects, each with the snapshots that need it."""
        return [case.finding() for digest, case in self.cases.items() if digest in self.entries]

    @property
    def present(self) -> int:
        """How many distinct objects are needed and there."""
        return sum(entry.kind != "" for entry in self.entries.values())

    def find_damage(self, digests: Sequence[Digest]) -> Iterator[tuple[Digest, str]]:
        """Those of these objects that are not what they say; what they refer to is not looked at."""
        for digest, frame in self._frames(digests):
            problem = None if frame is None else self._open(digest, frame).problem
            if problem is not None:
                yield digest, problem
        self._loader.forget()

    def forget(self, run: RunId) -> None:
        """Drop what was found wrong, and which snapshots of a run it touched, to look again."""
        for case in self.cases.values():
            case.spans.forget(run)
        self.entries = {digest: entry for digest, entry in self.entries.items() if not entry.bad}

    def _unknown(self, digests: Iterable[Digest], found: Mapping[Digest, _Opened]) -> list[Digest]:
        unique = dict.fromkeys(digests)
        return [digest for digest in unique if digest not in self.entries and digest not in found]

    def _frames(self, digests: Sequence[Digest]) -> Iterator[tuple[Digest, bytes | DamageError | None]]:
        rest = iter(digests)
        while batch := list(islice(rest, _BATCH)):
            try:
                frames = self._store.get_objects(batch)
                yield from ((digest, frames.get(digest)) for digest in batch)
            except DamageError as error:
                if len(batch) == 1:
                    yield batch[0], error
                else:
                    for digest in batch:
                        yield from self._frames((digest,))

    def _open(self, digest: Digest, frame: bytes | DamageError | None) -> _Opened:
        if frame is None:
            return _Opened(problem="it is missing")
        if isinstance(frame, DamageError):
            return _Opened(problem=reason_of(frame))
        try:
            framed = self._framer.open(digest, frame)
            if framed.kind in _OPAQUE:
                return _Opened(kind=framed.kind)
            references, body = self._loader.decode(framed.canonical, what=f"object {digest.hex()[:16]}")
        except DamageError as error:
            return _Opened(problem=reason_of(error))
        return _describe(framed.kind, references, body)

    def _settle(self, found: Mapping[Digest, _Opened]) -> None:
        """Work out the entries from the bottom up; proved digests cannot form a circle."""
        for start in found:
            stack = [start]
            while stack:
                digest = stack[-1]
                opened = found.get(digest)
                pending = [] if opened is None else [d for d in opened.below() if d not in self.entries]
                if pending and digest not in self.entries:
                    stack.extend(pending)
                    continue
                stack.pop()
                if opened is not None and digest not in self.entries:
                    self.entries[digest] = self._judge(digest, opened)

    def _judge(self, digest: Digest, opened: _Opened) -> LedgerEntry:
        bad = frozenset[Digest]().union(*(self.entries[each].bad for each in opened.below()))
        problem = opened.problem or (None if bad else self._misfit(opened))
        if problem is not None:
            what = f"object {digest.hex()[:16]}"
            case = self.cases.setdefault(digest, Case(what=what, reason=problem, digest=digest))
            case.reason = problem
            bad |= {digest}
        nodes = [self.entries[each] for each in opened.children]
        if opened.kind != "branch":
            height = 0 if opened.kind == "leaf" else -1
            return LedgerEntry(opened.kind, bad, height, opened.items, opened.items == TREE_FANOUT)
        height = 1 + max((node.height for node in nodes), default=0)
        return LedgerEntry("branch", bad, height, sum(n.count for n in nodes), all(n.full for n in nodes))

    def _misfit(self, opened: _Opened) -> str | None:
        """Why an object that is what was written still cannot be right, or None."""
        if any(self.entries[value].kind != "value" for value in opened.used.values):
            return "it refers to something that is no value as if it were one"
        heights = {self.entries[child].height for child in opened.children}
        if -1 in heights or len(heights) > 1:
            return "it refers to things that are no nodes, or of different heights"
        return next((wrong for vec in opened.used.trees if (wrong := self._misshapen(vec))), None)

    def _misshapen(self, vec: Vec[Any]) -> str | None:
        count, shift = len(vec), shift_for(len(vec))
        in_tree = (count - 1) // TREE_FANOUT * TREE_FANOUT
        ends = [self.entries[digest] for digest in _ends(vec)]
        tail, trees = ends[-1], ends[:-1]
        wrong = (tail.height, tail.count) != (0, count - in_tree) or bool(trees) != bool(in_tree)
        for tree in trees:
            wrong |= (tree.height, tree.count) != (shift // 5, in_tree) or not tree.full
        return f"a sequence in it does not have the {count} items it says" if wrong else None


def reason_of(error: OrchestraError) -> str:
    """What is wrong, without the advice that the whole sentence ends with."""
    return str(error.data.get("reason", error))


@attrs.define
class UsedDigests:
    """The digests that a decoded body uses."""

    values: list[Digest] = attrs.field(factory=list)  # large values
    trees: list[Vec[Any]] = attrs.field(factory=list)  # sequences that are trees of their own
    named: list[Digest] = attrs.field(factory=list)  # what may be an object

    @property
    def references(self) -> list[Digest]:
        """What its list of references must name."""
        return [*self.values, *(end for vec in self.trees for end in _ends(vec))]


def digests_used(body: Any) -> UsedDigests:
    """The digests that a decoded body uses."""
    found = UsedDigests()
    waiting = [body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Value):
            found.values += [] if part.digest is None else [part.digest]
        elif isinstance(part, Address):
            found.named.append(Digest(part.digest))
        elif isinstance(part, Vec) and isinstance(part.tail, SealedNode):
            found.trees.append(part)
        else:
            waiting.extend(_parts(part))
    return found


def _describe(kind: str, references: list[Digest], body: Any) -> _Opened:
    if kind not in _NODES:
        return _Opened(kind=kind, others=tuple(references))
    if kind == "branch":
        wrong = body is not None or not 1 <= len(references) <= TREE_FANOUT
        problem = "it is not a branch" if wrong else None
        return _Opened(kind=kind, children=tuple(references), problem=problem)
    if not isinstance(body, dict if kind == "root" else list):
        return _Opened(kind=kind, problem=f"it is not a {kind}")
    uses, listed = digests_used(body), set(references)
    if listed != set(uses.references) or len(listed) != len(references):
        return _Opened(kind=kind, problem="its list of references is not what its content refers to")
    items = len(body) if kind == "leaf" else 0
    if kind == "leaf" and not 1 <= items <= TREE_FANOUT:
        return _Opened(kind=kind, problem="it is not a leaf")
    return _Opened(kind=kind, used=uses, items=items)


def _ends(vec: Vec[Any]) -> list[Digest]:
    """The digests of the tree, if there is one, and of the last leaf of a sealed sequence."""
    nodes = (vec.root, vec.tail)
    return [Digest(node.digest) for node in nodes if node is not None and node.digest is not None]


def _parts(thing: Any) -> Iterable[Any]:
    """What a part of a document is made of, atoms left out."""
    if isinstance(thing, dict):
        return [part for part in thing.values() if type(part) not in ATOMS]
    if isinstance(thing, list | tuple):
        return [part for part in thing if type(part) not in ATOMS]
    if isinstance(thing, Table):
        return (thing.pairs,)
    if isinstance(thing, Vec):
        return (thing.tail,) if thing.root is None else (thing.root, thing.tail)
    return thing.items if isinstance(thing, Node) else ()
