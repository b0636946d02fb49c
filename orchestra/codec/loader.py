"""The loader: sealed states as documents, fetched as they are looked at.

A sequence or table in a loaded document stands on `SealedNode`s, each of which fetches, proves and decodes
its items when they are first read; `fetch_all` fetches all of them ahead, level by level. Nodes of one digest
are one object in memory, so comparing two documents skips what they share.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from orchestra.codec import cbor
from orchestra.codec.document import Document
from orchestra.codec.frame import Framer, references
from orchestra.codec.readers import Address
from orchestra.errors import Damaged, MissingObject
from orchestra.ids import Digest
from orchestra.limits import TREE_FANOUT, TREE_ITEMS
from orchestra.model.tree import BITS, Node, Table, Vec, shift_for
from orchestra.model.value import Value

Fetch = Callable[[Collection[Digest]], Mapping[Digest, bytes]]

_NODES_HELD = 50_000
_BRANCH, _LEAF = ("branch",), ("leaf",)
_NO_REFERENCES = b"\x80"  # an empty list, where the reference list of an object begins
_LEAVES = frozenset({str, int, float, bool, type(None), bytes, Value, Address})  # what has nothing inside


class SealedNode(Node):
    """A node known by its digest; its items are fetched when they are first looked at."""

    __slots__ = ("_canonical", "_items", "_loader", "count", "has_inner", "height", "of_table")
    digest: Digest

    def __init__(self, digest: Digest, height: int, count: int, of_table: bool, loader: "Loader") -> None:
        self.digest = digest
        self.height, self.count, self.of_table = height, count, of_table
        self._canonical: bytes | None = None  # proved, not decoded yet
        self.has_inner = False  # whether a leaf's items refer to further objects; its bytes tell
        self._loader = loader
        self._items: tuple[Any, ...] | None = None

    @property
    def items(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The children or items; raises `MissingObject` or `Damaged`."""
        if self._items is None:
            if self._canonical is None:
                self._loader.fill([self])
            assert self._canonical is not None, "BUG: a filled node has its bytes"
            self._items = self._loader.items_of(self, self._canonical)
            self._canonical = None
        return self._items

    def take(self, canonical: bytes) -> None:
        """Keep the bytes, which were proved, until the items are asked for."""
        self._canonical = canonical
        self.has_inner = canonical[1:2] != _NO_REFERENCES

    @property
    def is_fetched(self) -> bool:
        """Whether its bytes are here and proved."""
        return self._items is not None or self._canonical is not None


class Loader:
    """Reads sealed states as documents."""

    def __init__(self, fetch: Fetch, framer: Framer) -> None:
        self._fetch, self._framer = fetch, framer
        self._nodes: dict[tuple[Digest, int, int, bool], SealedNode] = {}
        self._decode = cbor.make_decoder(
            {
                cbor.TAG_DIGEST: lambda digest, _: Address(cbor.check_digest(digest)),
                cbor.TAG_VALUE_REF: _value_reference,
                cbor.TAG_VEC: lambda items, _: Vec(_check_list(items)),
                cbor.TAG_TABLE: lambda items, _: Table(_pairs(items)),
                cbor.TAG_VEC_REF: lambda parts, _: self._vec(parts, False),
                cbor.TAG_TABLE_REF: lambda parts, _: Table.of_pairs(self._vec(parts, True)),
            }
        )

    def forget(self) -> None:
        """Drop every node held in memory."""
        self._nodes = {}

    def decode(self, canonical: bytes, *, what: str) -> tuple[list[Digest], Any]:
        """References and body of an object; raises `Damaged`."""
        pair = self._decode(canonical, what)
        try:
            return references(pair), pair[1]
        except ValueError as error:
            raise Damaged(what=what, reason=str(error)) from None

    def root(self, digest: Digest) -> tuple[int, Document]:
        """The format version and the document of a sealed state; raises `MissingObject` or `Damaged`."""
        what = f"seal {digest.hex()[:16]}"
        framed = self._framer.open(digest, self._one(digest), what=what, kinds=("root",))
        _, body = self.decode(framed.canonical, what=what)
        if not isinstance(body, dict):
            raise Damaged(what=what, reason="it is not a state")
        return framed.version, body

    def value(self, value: Value) -> Value:
        """The value with its bytes; raises `MissingObject` or `Damaged`."""
        if value.encoded is not None or value.digest is None:
            return value
        framed = self._framer.open(value.digest, self._one(value.digest), kinds=("value",))
        return Value(framed.canonical, digest=value.digest)

    def fetch_all(self, document: Document) -> None:
        """Fetch every node of a document, level by level; raises `MissingObject` or `Damaged`."""
        level = list(_nodes_in(document))
        while level:
            self.fill([node for node in level if not node.is_fetched])
            level = list({id(each): each for node in level for each in _below(node)}.values())

    def fill(self, nodes: list[SealedNode]) -> None:
        """Fetch and prove the bytes of these nodes; raises `MissingObject` or `Damaged`."""
        frames = self._fetch([node.digest for node in nodes]) if nodes else {}
        for node in nodes:
            frame = _present(node.digest, frames)
            kinds = _BRANCH if node.height else _LEAF
            node.take(self._framer.open(node.digest, frame, kinds=kinds).canonical)

    def items_of(self, node: SealedNode, canonical: bytes) -> tuple[Any, ...]:
        """Decode the items of a node from its bytes; raises `Damaged`."""
        what = f"object {node.digest.hex()[:16]}"
        refs, body = self.decode(canonical, what=what)
        if node.height:
            return self._children(node, refs, what)
        if not isinstance(body, list) or len(body) != node.count:
            raise Damaged(what=what, reason=f"it is not a leaf of {node.count} items")
        if not node.of_table:
            return tuple(body)
        try:
            return tuple(_pairs(body))
        except cbor.Refused as refused:
            raise cbor.damage_error(what, refused) from None

    def _children(self, node: SealedNode, refs: list[Digest], what: str) -> tuple[SealedNode, ...]:
        below = TREE_FANOUT**node.height  # how many items a full child has
        last = node.count - below * (len(refs) - 1)
        if not 0 < last <= below or len(refs) > TREE_FANOUT:
            raise Damaged(what=what, reason=f"it is not a branch over {node.count} items")
        counts = [below] * (len(refs) - 1) + [last]
        return tuple(
            [self._node(ref, node.height - 1, n, node.of_table) for ref, n in zip(refs, counts, strict=True)]
        )

    def _vec(self, parts: Any, of_table: bool) -> Vec[Any]:
        match parts:
            case [int(count), tree, tail] if 0 < count <= TREE_ITEMS and (tree is None) == (count <= 32):
                shift, in_tail = shift_for(count), (count - 1) % TREE_FANOUT + 1
                root = None
                if tree is not None:
                    root = self._node(cbor.check_digest(tree), shift // BITS, count - in_tail, of_table)
                return Vec.of_nodes(
                    count, shift, root, self._node(cbor.check_digest(tail), 0, in_tail, of_table)
                )
            case _:
                raise cbor.Refused("a sequence is not [count, tree, tail]")

    def _node(self, digest: Digest, height: int, count: int, of_table: bool) -> SealedNode:
        key = (digest, height, count, of_table)
        node = self._nodes.get(key)
        if node is None:
            if len(self._nodes) >= _NODES_HELD:
                self.forget()
            node = self._nodes[key] = SealedNode(digest, height, count, of_table, self)
        return node

    def _one(self, digest: Digest) -> bytes:
        return _present(digest, self._fetch((digest,)))


def _present(digest: Digest, frames: Mapping[Digest, bytes]) -> bytes:
    frame = frames.get(digest)
    if frame is None:
        raise MissingObject(what=f"object {digest.hex()[:16]}")
    return frame


def _nodes_in(thing: Any) -> Iterator[SealedNode]:
    """The topmost sealed nodes of a document or a part of one."""
    kind = type(thing)
    if kind is SealedNode:
        yield thing
    elif kind is Table or kind is Vec:
        pairs = thing.pairs if kind is Table else thing
        yield from _nodes_in([node for node in (pairs.root, pairs.tail) if node is not None])
    elif isinstance(thing, Node):
        yield from _nodes_in(thing.items)
    elif kind is dict or kind is list or kind is tuple:
        for each in thing.values() if kind is dict else thing:
            if type(each) not in _LEAVES:
                yield from _nodes_in(each)


def _below(node: SealedNode) -> Iterator[SealedNode]:
    if node.height:
        yield from node.items
    elif node.has_inner:
        yield from _nodes_in(node.items)


def _value_reference(parts: Any, _key: bool) -> Value:
    match parts:
        case [bytes(digest), int(size)] if size >= 0:
            return Value(None, digest=cbor.check_digest(digest), size=size)
        case _:
            raise cbor.Refused("a value reference is not [digest, size]")


def _check_list(items: Any) -> list[Any]:
    if not isinstance(items, list):
        raise cbor.Refused("a sequence is not a list")
    return items


def _pairs(items: Any) -> list[tuple[str, Any]]:
    for item in _check_list(items):
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise cbor.Refused("a table entry is not a key and a value")
    if len({item[0] for item in items}) != len(items):
        raise cbor.Refused("a table has two entries of one key")
    return [(item[0], item[1]) for item in items]
