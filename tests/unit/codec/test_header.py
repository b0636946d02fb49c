"""A header's bytes are those of its fields as a map, though they are put together by hand."""

from typing import Any

import attrs
import pytest

from orchestra.codec import cbor
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.header import canonical_header, read_header, write_header
from orchestra.errors import Damaged
from orchestra.ids import Digest, Instant, RunId
from orchestra.model.snapshot import Counts, Header, Headline

FRAMER = Framer(Addresser())
LINES = tuple(
    Headline(kind="decision_made", who=None if at % 2 else "atlas", what="ü" * at, figures=(("n", at),))
    for at in range(40)
)
BASE = Header(
    run=RunId("r"),
    seq=3,
    parent=None,
    at=Instant(5),
    triggers=(),
    marked=False,
    events=(),
    status="running",
    phase=None,
    ordinal=0,
    patch=Digest(bytes(32)),
    seal=Digest(b"s" * 32),
    sealed_at=0,
)
CASES: dict[str, dict[str, Any]] = {
    "the least": {},
    "a parent and a phase": {"parent": Digest(b"p" * 32), "phase": "Prüfung", "marked": True},
    "large numbers": {"seq": 1 << 40, "at": Instant(-1), "sealed_at": 1 << 33, "ordinal": 300},
    "all that may be left out": {"confidence": 0.25, "generation": 2, "open_failure": True},
    "counts": {"counts": Counts(tasks=0, decisions=7, ago=300), "phase": "p", "confidence": 0.5},
    "some counts": {"counts": Counts(tasks=70_000, decisions=0)},
    "triggers": {"triggers": ("decision", "completed")},
    "many lines": {"events": LINES},
    "many figures": {"events": (Headline(kind="k", figures=tuple((str(at), at / 3) for at in range(200))),)},
}


def plain(header: Header) -> dict[str, Any]:
    """The fields of a header as a map, its keys in order."""
    left_out = {"confidence": None, "generation": 0, "open_failure": False, "counts": None}
    held = {each.name: getattr(header, each.name) for each in attrs.fields(Header)}
    held["counts"] = None if header.counts is None else list(attrs.astuple(header.counts))
    held["events"] = [
        [line.kind, line.who, line.what, [part for figure in line.figures for part in figure]]
        for line in header.events
    ]
    shown = {name: value for name, value in held.items() if name not in left_out or value != left_out[name]}
    return {name: shown[name] for name in sorted(shown, key=cbor.key_order)}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_bytes_are_those_of_a_map(changes: dict[str, Any]) -> None:
    header = attrs.evolve(BASE, **changes)
    assert canonical_header(header) == cbor.encode(plain(header))
    digest, frame = write_header(header, FRAMER)
    assert read_header(digest, frame, FRAMER, what="a header") == header


@pytest.mark.parametrize(
    "counts", [[1, 2], [1, 2, 3, 4], [1, None, 0], [1.0, 2, 0], [True, 2, 0], "123", {"a": 1}, None], ids=repr
)
def test_counts_that_are_none_are_refused(counts: Any) -> None:
    canonical = cbor.encode({**plain(BASE), "counts": counts})
    digest, frame = FRAMER.address("header", canonical), FRAMER.write("header", canonical)
    with pytest.raises(Damaged, match=r"counts|does not fit"):
        read_header(digest, frame, FRAMER, what="a header")
