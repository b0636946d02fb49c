"""Seals: a whole state as a Merkle tree of objects, of which only changed nodes are written.

    root     the state's fields; sequences and tables of more than eight items are references to nodes
    branch   up to 32 references to branches or leaves
    leaf     up to 32 items

A sequence or table is written as `[count, tree, tail]`: the digest of the tree of full leaves (or null) and
the digest of the last leaf. Its shape follows from the count. `orchestra.codec.loader` reads it.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from orchestra.codec import cbor
from orchestra.codec.frame import Framer, pair_references
from orchestra.codec.writers import Write, Writer
from orchestra.ids import Digest
from orchestra.limits import INLINE_ITEMS
from orchestra.model.state import State
from orchestra.model.tree import BITS, Node, Table, Vec

_VEC_REF: Final = cbor.tag(cbor.TAG_VEC_REF)
_TABLE_REF: Final = cbor.tag(cbor.TAG_TABLE_REF)


@attrs.frozen
class Seal:
    """A sealed state: its root, the objects that must be written, the nodes to mark once they are."""

    root: Digest
    objects: list[tuple[Digest, bytes]]
    nodes: list[tuple[Node, Digest]]

    def mark(self) -> None:
        """Note that the objects were seen in the store."""
        for node, digest in self.nodes:
            node.digest = digest


class Sealer(Writer):
    """Writes states as trees of objects."""

    def __init__(self, framer: Framer) -> None:
        super().__init__()
        self._framer = framer
        self._objects: dict[Digest, bytes] = {}
        self._nodes: list[tuple[Node, Digest]] = []

    def seal(self, state: State) -> Seal:
        """The seal of `state`. Large values it refers to are listed in `large`, not written."""
        self._objects, self._nodes, self.references, self.large = {}, [], [], []
        root = self._object("root", lambda: self.write(state))
        return Seal(root, list(self._objects.items()), self._nodes)

    def vec(self, vec: Vec[Any], item: Write) -> bytes:
        """A sequence, inline when short."""
        return super().vec(vec, item) if len(vec) <= INLINE_ITEMS else _VEC_REF + self._tree(vec, item)

    def table(self, table: Table[Any], item: Write) -> bytes:
        """A table, inline when short."""
        if len(table) <= INLINE_ITEMS:
            return super().table(table, item)
        return _TABLE_REF + self._tree(table.pairs, lambda pair, sink: sink.pair(pair, item))

    def _tree(self, vec: Vec[Any], item: Write) -> bytes:
        tree = cbor.NOTHING if vec.root is None else cbor.DIGEST + self._node(vec.root, vec.shift, item)
        tail = cbor.DIGEST + self._node(vec.tail, 0, item)
        return cbor.array([cbor.integer(len(vec)), tree, tail])

    def _node(self, node: Node, shift: int, item: Write) -> Digest:
        digest = Digest(node.digest) if node.digest is not None else None
        if digest is None:
            if shift == 0:
                digest = self._object("leaf", lambda: cbor.array([item(each, self) for each in node.items]))
            else:
                digest = self._object("branch", lambda: self._children(node, shift, item))
            self._nodes.append((node, digest))
        self.references.append(digest)
        return digest

    def _children(self, node: Node, shift: int, item: Write) -> bytes:
        for child in node.items:
            self._node(child, shift - BITS, item)
        return cbor.NOTHING

    def _object(self, kind: str, body: Callable[[], bytes]) -> Digest:
        outer, self.references = self.references, []
        written = body()
        canonical = pair_references(self.references, written, repeated=kind == "branch")
        self.references = outer
        digest = self._framer.address(kind, canonical)
        self._objects[digest] = self._framer.write(kind, canonical)
        return digest
