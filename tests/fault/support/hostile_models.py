"""States, headers and patches with the wrong things in the right places."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from orchestra.codec import cbor
from orchestra.codec.cbor import TAG_DIGEST, TAG_TABLE, TAG_VEC, Tag
from orchestra.codec.document import BadPatch, apply_patch
from orchestra.codec.frame import pair_references
from orchestra.codec.loader import Loader
from orchestra.codec.readers import structure
from orchestra.codec.values import thaw_bytes
from orchestra.codec.writers import Writer
from orchestra.errors import Damaged
from orchestra.ids import Digest, Instant, run_id
from orchestra.model.snapshot import Header, Headline
from orchestra.model.state import State
from tests.fault.support.hostile_bytes import anywhere, values
from tests.fault.support.hostile_frames import (
    FRAMER,
    Cases,
    bombs,
    frames,
    open_header,
    open_root,
    sample_state,
    trees,
)
from tests.fault.support.raw import plain, text
from tests.property.exact import exact
from tests.unit.codec.plain import plain_of

Path = tuple[Any, ...]


def _wrong(held: Any) -> list[Any]:
    """What must not stand where `held` stands."""
    if isinstance(held, bool):
        return [1, 0, "true", []]
    if isinstance(held, str):
        return [5, 1.5, True, [], {}, b"text"]
    if isinstance(held, int):
        return ["5", True, [], {}, b"5"]
    if isinstance(held, float):
        return ["0.5", True, [], {}, b"0.5"]
    if isinstance(held, bytes):
        return [5, "text", [], {}, True]
    if isinstance(held, dict):
        return [5, "text", [], True, Tag(TAG_TABLE, []), Tag(TAG_VEC, []), {**held, "nonsense": 1}]
    if isinstance(held, list | tuple):
        return [5, "text", {}, True, Tag(TAG_VEC, [])]
    assert isinstance(held, Tag)
    other = TAG_TABLE if held.tag == TAG_VEC else TAG_VEC
    bare = [held.value] if held.tag == TAG_DIGEST else []
    return [5, "text", [], {}, True, Tag(other, []), *bare]


def _places(thing: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in plain data; what stands in a tag is reached through the step "tag"."""
    if path:
        yield path
    if isinstance(thing, dict):
        for key, item in thing.items():
            yield from _places(item, (*path, key))
    elif isinstance(thing, list | tuple):
        for at, item in enumerate(thing):
            yield from _places(item, (*path, at))
    elif isinstance(thing, Tag) and thing.tag in (TAG_VEC, TAG_TABLE):
        yield from _places(thing.value, (*path, "tag"))


def _with(thing: Any, path: Path, other: Any) -> Any:
    """A copy of plain data in which something else stands at one place."""
    if not path:
        return other
    if isinstance(thing, Tag):
        return Tag(thing.tag, _with(thing.value, path[1:], other))
    copy: Any = dict(thing) if isinstance(thing, dict) else list(thing)
    copy[path[0]] = _with(thing[path[0]], path[1:], other)
    return copy


def _at(thing: Any, path: Path) -> Any:
    for step in path:
        thing = thing.value if step == "tag" else thing[step]
    return thing


def fields(seed: int, count: int) -> Cases:
    """Something of the wrong type somewhere in a state, or something that must not be missing."""
    chance = random.Random(seed)
    document = plain_of(sample_state())
    places = list(_places(document))
    for path in chance.sample(places, count):
        odd = chance.choice(_wrong(_at(document, path)))
        yield f"{_named(path)} is {odd!r:.20}", _root(_with(document, path, odd))
    for field in ("run", "family", "workflow", "created_at", "updated_at"):
        yield f"no {field}", _root({key: item for key, item in document.items() if key != field})
    for field, word in (("status", "asleep"), ("status", ""), ("nonsense", 1), ("", 1), ("run\0", "r")):
        yield f"{field!r} is {word!r}", _root({**document, field: word})
    for field in ("metrics", "cursor", "workflow", "confidence"):
        table = Tag(TAG_TABLE, [[key, item] for key, item in document[field].items()])
        yield f"{field} is a table", _root({**document, field: table})


def _named(path: Path) -> str:
    return ".".join(str(step) for step in path if step != "tag")


def _root(document: Any) -> Callable[[], object]:
    canonical = cbor.encode([[], document])
    return lambda: open_root(canonical)


def headers() -> Cases:
    """The wrong things in a header."""
    digest = Digest(bytes(32))
    header = Header(
        run=run_id("r"),
        seq=1,
        parent=digest,
        at=Instant(1),
        triggers=("decision",),
        marked=True,
        events=(Headline(kind="decision_made", who="atlas", what="x", figures=(("confidence", 0.5),)),),
        status="running",
        phase="p",
        ordinal=1,
        generation=0,
        confidence=0.5,
        open_failure=False,
        patch=digest,
        seal=digest,
        sealed_at=0,
    )
    document = plain_of(header)
    for path in _places(document):
        odd = _wrong(_at(document, path))[0]
        changed = _with(document, path, odd)
        yield f"header: {_named(path)} is {odd!r:.20}", _header(cbor.encode(changed))
    for field in document:
        less = {key: item for key, item in document.items() if key != field}
        yield f"header without {field}", _header(cbor.encode(less))
    for name, content in (
        ("a list", b"\x80"),
        ("a number", b"\x01"),
        ("text", text("x")),
        ("nothing", b"\xa0"),
    ):
        yield f"header: {name}", _header(content)
    for length in (0, 31, 33):
        short = cbor.encode({**document, "patch": Tag(TAG_DIGEST, bytes(length))})
        yield f"header: a digest of {length} bytes", _header(short)


def _header(canonical: bytes) -> Callable[[], object]:
    return lambda: open_header(canonical)


def patches() -> Cases:
    """Operations that are none, or that do not fit."""
    for operation in _OPERATIONS:
        yield f"operation {operation!r:.60}", _patch([operation])
    yield "an operation at the end of a long path", _patch([["set", ["a"] * 100_000, 1]])
    yield "a path that gets longer and longer", _deeper()
    yield "no list of operations", _patch(None)
    yield "a map of operations", _patch({})


_OPERATIONS: list[Any] = [
    [],
    ["set"],
    ["set", ["status"]],
    ["set", "status", "failed"],
    ["set", ["nonsense"], 1],
    ["set", ["tasks", "nobody", "status"], "failed"],
    ["set", ["decisions", 10_000], {}],
    ["set", ["decisions", -1, "kind"], 5],
    ["set", ["decisions", "first"], {}],
    ["set", ["decisions", 0, "kind", "deeper"], 1],
    ["set", [["run"]], 1],
    ["set", [None], 1],
    ["set", [], {}],
    ["set", [], None],
    ["unset", []],
    ["unset", ["run"]],
    ["unset", ["tasks", "task-1"]],
    ["unset", ["decisions", 0]],
    ["unset", ["run"], 1],
    ["append", ["run"], [1]],
    ["append", ["run"], None],
    ["append", ["decisions"], [1]],
    ["append", ["workflow"], {}],
    ["append", ["nowhere"], 5],
    ["splice", ["run"], 0, 1000, "x"],
    ["splice", ["run"], -1, 1, "x"],
    ["splice", ["run"], 1, -1, "x"],
    ["splice", ["run"], 0, 1, ["x"]],
    ["splice", ["run"], "0", 1, "x"],
    ["splice", ["metrics"], 0, 0, "x"],
    ["splice", ["decisions"], 0, 1, []],
    ["push", ["tasks"], [1]],
    ["push", ["run"], [1]],
    ["push", ["decisions"], 1],
    ["push", ["decisions"], [1]],
    ["push", ["nowhere"], [1]],
    ["put", ["decisions"], [["a", 1]]],
    ["put", ["tasks"], [1]],
    ["put", ["tasks"], [["a"]]],
    ["put", ["tasks"], [["a", 1]]],
    ["put", ["tasks"], [[5, {}]]],
    ["put", ["tasks"], [["a", {}, 1]]],
    ["reset", bytes(32)],
    ["reset"],
    ["delete", ["run"]],
    [1, ["run"], 2],
    [["set"], ["run"], "r"],
    {"set": "run"},
    "set",
    None,
]


def _patch(operations: Any) -> Callable[[], object]:
    canonical = plain([[], operations])
    return lambda: _patched(canonical)


def _patched(canonical: bytes) -> object:
    """What the archive does with the patch of a row."""
    loader = Loader(lambda _: {}, FRAMER)
    _, operations = loader.decode(canonical, what="a hostile patch")
    if not isinstance(operations, list) or not all(isinstance(each, list) for each in operations):
        raise Damaged(what="a hostile patch", reason="it is not a list of operations")
    _, document = loader.decode(pair_references([], Writer().write(sample_state(20))), what="a state")
    return _structured(_applied(document, operations))


def _applied(document: Any, operations: Any) -> Any:
    try:
        return apply_patch(document, operations)
    except BadPatch as bad:
        raise Damaged(what="a hostile patch", reason=str(bad)) from None


def _structured(document: Any) -> object:
    return exact(structure(document, State, what="a hostile state"))


def _deeper() -> Callable[[], object]:
    def check() -> object:
        document: Any = {"a": {}}
        nest: Any = {}
        for _ in range(80):
            nest = {"a": nest}
        for turn in range(60):
            document = _applied(document, [["set", ["a"] * (1 + turn * 80), nest]])
        return _structured(document)

    return check


def corpus() -> Cases:
    """Every case, the same each time."""
    for name, content in anywhere():
        yield f"root: {name}", _raw_root(content)
        yield f"header: {name}", _header(content)
    for name, content in (*anywhere(), *values()):
        yield f"value: {name}", _value(content)
    yield from frames(seed=1)
    yield from bombs()
    yield from trees()
    yield from fields(seed=2, count=250)
    yield from headers()
    yield from patches()


def _raw_root(content: bytes) -> Callable[[], object]:
    return lambda: open_root(b"\x82\x80" + content)


def _value(content: bytes) -> Callable[[], object]:
    return lambda: thaw_bytes(content)
