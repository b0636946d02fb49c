"""A header's bytes are those of its fields as a map, though they are put together by hand."""

from typing import Any

import attrs
import pytest

from orchestra.codec import cbor
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.header import canonical_header, read_header, write_header
from orchestra.ids import Digest, Instant, RunId
from orchestra.model.snapshot import Header, Headline

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
    "triggers": {"triggers": ("decision", "completed")},
    "many lines": {"events": LINES},
    "many figures": {"events": (Headline(kind="k", figures=tuple((str(at), at / 3) for at in range(200))),)},
}


def plain(header: Header) -> dict[str, Any]:
    """The fields of a header as a map, its keys in order."""
    left_out = {"confidence": None, "generation": 0, "open_failure": False}
    held = {each.name: getattr(header, each.name) for each in attrs.fields(Header)}
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
