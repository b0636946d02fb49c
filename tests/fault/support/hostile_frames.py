"""Frames and trees that no program of ours wrote, with digests that fit: who writes a store can hash, too."""

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from orchestra.codec.address import KINDS, Addresser
from orchestra.codec.cbor import TAG_TABLE, TAG_TABLE_REF, TAG_VEC, TAG_VEC_REF
from orchestra.codec.frame import FORMAT, Framer, pair_references
from orchestra.codec.header import read_header
from orchestra.codec.loader import Loader
from orchestra.codec.readers import structure
from orchestra.codec.writers import Writer
from orchestra.errors import DamageError
from orchestra.ids import Digest
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.state import State
from orchestra.model.tree import Table
from tests.fault.support.raw import array, data, plain, tag
from tests.property.exact import exact
from tests.property.stories import Story

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Case = tuple[str, Callable[[], object]]
Cases = Iterator[Case]

ADDRESSER: Final = Addresser()
FRAMER: Final = Framer(ADDRESSER)
CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
MB: Final = 1 << 20


def framed(kind: str, canonical: bytes) -> tuple[Digest, bytes]:
    """Digest and frame of any bytes, as if they were what they say."""
    return FRAMER.address(kind, canonical), FRAMER.write(kind, canonical, compress=False)


def open_state(root: Digest, objects: dict[Digest, bytes]) -> object:
    """Load a state and look at all of it, also by key."""
    loader = Loader(lambda digests: {each: objects[each] for each in digests if each in objects}, FRAMER)
    _, document = loader.root(root)
    loader.fetch_all(document)
    state = structure(document, State, what="a hostile state")
    for field in attrs.fields(State):
        held = getattr(state, field.name)
        if isinstance(held, Table):
            held.get("nobody")
    return exact(state)


def open_root(canonical: bytes, objects: dict[Digest, bytes] | None = None) -> object:
    """Load the state whose root has these bytes."""
    digest, frame = framed("root", canonical)
    return open_state(digest, {**(objects or {}), digest: frame})


def open_header(canonical: bytes) -> object:
    """Read the header with these bytes."""
    digest, frame = framed("header", canonical)
    return read_header(digest, frame, FRAMER, what="a hostile header")


def sample_state(turns: int = 60) -> State:
    """A state with something in every field."""
    story = Story(7)
    state = begin(story.opening("sample")[0])
    for _ in range(turns):
        state = apply_all(state, story.turn(state))
    return state


# --- frames


def frames(seed: int) -> Cases:
    """Frames cut off, bent or of the wrong kind."""
    chance = random.Random(seed)
    canonical = pair_references([], Writer().write(sample_state(10)))
    digest = FRAMER.address("root", canonical)
    raw, packed = FRAMER.write("root", canonical, compress=False), FRAMER.write("root", canonical)
    assert len(packed) < len(raw)
    for frame, name in ((raw, "raw"), (packed, "packed")):
        for _ in range(25):
            cut = chance.randrange(len(frame))
            yield f"{name} frame cut at {cut}", _opener(digest, frame[:cut])
        for _ in range(60):
            bit = chance.randrange(len(frame) * 8)
            yield f"{name} frame with bit {bit} turned", _bent(digest, frame, bit, canonical)
        yield f"{name} frame with more behind it", _opener(digest, frame + b"\0")
        yield f"{name} frame twice", _opener(digest, frame + frame)
    for kind in KINDS:
        if kind != "root":
            yield (
                f"a root that says it is a {kind}",
                _opener(digest, bytes((0, CODES[kind], FORMAT)) + canonical),
            )
    for method, code, version in (
        (2, 2, 1),
        (255, 2, 1),
        (0, len(KINDS), 1),
        (0, 255, 1),
        (0, 2, 0),
        (0, 2, 255),
    ):
        yield f"frame {method} {code} {version}", _opener(digest, bytes((method, code, version)) + canonical)
    yield "another's digest", _opener(Digest(bytes(32)), raw)


def _opener(digest: Digest, frame: bytes) -> Callable[[], object]:
    return lambda: FRAMER.open(digest, frame)


def _bent(digest: Digest, frame: bytes, bit: int, canonical: bytes) -> Callable[[], object]:
    bent = bytearray(frame)
    bent[bit // 8] ^= 1 << bit % 8

    def check() -> object:
        found = FRAMER.open(digest, bytes(bent))
        assert found.canonical == canonical, "BUG: other content under the same digest"
        raise _Harmless  # a bit of the packing that says nothing about the content

    return check


class _Harmless(DamageError):
    """The flip changed no data."""

    template = "It says the same."


# --- bombs


def bombs() -> Cases:
    """A little that becomes a lot."""
    large = {size: _packed(bytes(size)) for size in (17 * MB, 500 * MB)}
    for kind in ("header", "patch", "root", "branch", "leaf", "value", "definition", "blob"):
        head = bytes((1, CODES[kind], FORMAT))
        for size, packed in large.items():
            if kind not in ("value", "blob") or size > 100 * MB:
                yield f"a {kind} of {size // MB} MB", _opener(Digest(bytes(32)), head + packed)
        yield f"a {kind} of untold size", _opener(Digest(bytes(32)), head + _untold(500))
        yield f"a {kind} that is no zstd", _opener(Digest(bytes(32)), head + b"\x28\xb5\x2f\xfd" + bytes(40))
        yield f"a {kind} that is empty", _opener(Digest(bytes(32)), head)
    yield (
        "a window of 2 GB",
        _opener(Digest(bytes(32)), bytes((1, 2, 1)) + b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\0\0"),
    )
    skippable = b"\x50\x2a\x4d\x18" + (8).to_bytes(4, "little") + bytes(8)
    yield "a frame to be skipped", _opener(Digest(bytes(32)), bytes((1, 2, 1)) + skippable)


def _packed(content: bytes) -> bytes:
    return zstd.compress(content, 19)


def _untold(megabytes: int) -> bytes:
    """Compressed zeros that do not say beforehand how many they are."""
    compressor = zstd.ZstdCompressor(level=19)
    return b"".join(compressor.compress(bytes(MB)) for _ in range(megabytes)) + compressor.flush()


# --- trees


def trees() -> Cases:
    """Sequences and tables that do not hold what they say."""
    digest = data(bytes(32))
    for name, parts in {
        "no parts": array(),
        "two parts": array(plain(9), digest),
        "four parts": array(plain(9), plain(None), digest, digest),
        "no items": array(plain(0), plain(None), digest),
        "fewer than no items": array(plain(-9), plain(None), digest),
        "half an item": array(plain(9.5), plain(None), digest),
        "true items": array(plain(True), plain(None), digest),
        "a tree where none is": array(plain(9), digest, digest),
        "no tree where one is": array(plain(33), plain(None), digest),
        "a short digest": array(plain(9), plain(None), data(bytes(31))),
        "a digest of text": array(plain(9), plain(None), plain("x" * 32)),
        "a map": plain({"count": 9}),
    }.items():
        for number, field in ((TAG_VEC_REF, "decisions"), (TAG_TABLE_REF, "tasks")):
            yield f"{field} of {name}", _root_with(field, tag(number, parts))
    yield from _counts()
    yield "a tree of nothing but itself", _laughing(4)
    yield "a tree of more than the stars", _laughing(11)
    yield "a branch for a leaf", _root_with("decisions", _vec(9, None, _node("branch", [], None)))
    yield "a leaf for a branch", _root_with("decisions", _vec(1057, _leaf(32), _leaf(1)))
    yield "a leaf that is a map", _root_with("decisions", _vec(9, None, _node("leaf", [], {"a": 1})))
    yield "a leaf of a table without pairs", _table_with([1, 2, 3, 4, 5, 6, 7, 8, 9])
    yield "a leaf of a table with long pairs", _table_with([["a", 1, 2]] * 9)
    yield "a leaf of a table with odd keys", _table_with([[n, {}] for n in range(9)])
    yield (
        "a key twice in a leaf",
        _visits(_vec(9, None, _node("leaf", [], [["a", n] for n in range(9)]), TAG_TABLE_REF)),
    )
    yield "a key twice in a table", _visits((tag(TAG_TABLE, plain([["a", 1], ["a", 2]])), {}))
    yield "a sequence for a table", _visits((tag(TAG_VEC, plain([["a", 1]])), {}))


Parts = tuple[bytes, dict[Digest, bytes]]


def _node(kind: str, references: list[bytes], body: Any, below: dict[Digest, bytes] | None = None) -> Parts:
    digest, frame = framed(kind, plain([references, body]))
    return digest, {**(below or {}), digest: frame}


def _leaf(count: int) -> Parts:
    return _node("leaf", [], [plain_visit(n) for n in range(count)])


def plain_visit(number: int) -> dict[str, Any]:
    """One visit of a phase as plain data."""
    return {"phase": "p", "visit": number, "started_at": number}


def _branch(children: list[Parts]) -> Parts:
    below = {digest: frame for _, objects in children for digest, frame in objects.items()}
    return _node("branch", [child for child, _ in children], None, below)


def _vec(count: int, tree: Parts | None, tail: Parts, number: int = TAG_VEC_REF) -> Parts:
    root = plain(None) if tree is None else data(tree[0])
    objects = {**(tree[1] if tree else {}), **tail[1]}
    return tag(number, array(plain(count), root, data(tail[0]))), objects


def _counts() -> Cases:
    """The path of a run, said to be longer or shorter than it is."""
    tree = _branch([_leaf(32), _leaf(32)])
    shapes: list[tuple[int, Parts | None, Parts]] = [
        (9, None, _leaf(10)),
        (10, None, _leaf(9)),
        (32, None, _leaf(31)),
        (9, None, _leaf(33)),
        (33, _leaf(32), _leaf(2)),
        (40, _leaf(32), _leaf(7)),
        (40, _leaf(31), _leaf(8)),
        (40, _leaf(33), _leaf(8)),
        (70, tree, _leaf(5)),
        (70, tree, _leaf(7)),
        (102, tree, _leaf(6)),
        (70, _branch([_leaf(32)]), _leaf(6)),
        (70, _branch([_leaf(32), _leaf(31)]), _leaf(6)),
        (70, _branch([_leaf(32)] * 3), _leaf(6)),
        (70, _branch([_leaf(32)] * 40), _leaf(6)),
    ]
    for number, (count, root, tail) in enumerate(shapes):
        yield f"a path of {count} that is none ({number})", _root_with("path", _vec(count, root, tail))


def _laughing(levels: int) -> Callable[[], object]:
    """A few objects that stand for 32**levels leaves."""
    tree = _leaf(32)
    for _ in range(levels):
        tree = _branch([tree] * 32)
    return _root_with("path", _vec(32 ** (levels + 1) + 1, tree, _leaf(1)))


def _table_with(items: list[Any]) -> Callable[[], object]:
    return _root_with("tasks", _vec(9, None, _node("leaf", [], items), TAG_TABLE_REF))


def _visits(parts: Parts) -> Callable[[], object]:
    return _root_with("visits", parts)


def _root_with(field: str, encoded: bytes | Parts) -> Callable[[], object]:
    """A state that is right but for one field."""
    content, objects = encoded if isinstance(encoded, tuple) else (encoded, {})
    required = {"run": "r", "family": "r", "workflow": {"name": "w"}, "created_at": 1, "updated_at": 1}
    pairs = [plain(key) + plain(value) for key, value in required.items()] + [plain(field) + content]
    body = bytes([0xA0 | len(pairs)]) + b"".join(pairs)
    references = plain(list(objects))
    return lambda: open_root(b"\x82" + references + body, objects)
