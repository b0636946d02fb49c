"""Headers as bytes. A header is a dictionary of its fields; its digest names the snapshot.

What makes model values of them is loaded where it is used: a list of runs reads plain fields alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from orchestra.codec import cbor
from orchestra.codec.frame import Framer
from orchestra.errors import Damaged
from orchestra.ids import DIGEST_BYTES, Digest

if TYPE_CHECKING:
    from orchestra.model.snapshot import Counts, Header, Headline

_SKIPPED = re.compile(r"completed: (?P<note>\d+ skipped: .+)", re.DOTALL)
_decode = cbor.make_decoder({})
_triggers = lru_cache(maxsize=1024)(cbor.encode)


def write_header(header: Header, framer: Framer) -> tuple[Digest, bytes]:
    """The digest and the frame of a header."""
    canonical = canonical_header(header)
    return framer.address("header", canonical), framer.write("header", canonical, compress=False)


def canonical_header(header: Header) -> bytes:
    """Canonical bytes of a header, its keys in order; put together here, for every snapshot needs them."""
    more = _more(header)
    counts = _counts(header.counts)
    return b"".join(
        (
            cbor.head(cbor.MAP, 13 + len(more) + bool(counts)),
            b"\x62at", cbor.integer(header.at),
            b"\x63run", cbor.name(header.run),
            b"\x63seq", cbor.integer(header.seq),
            b"\x64seal", cbor.DIGEST, header.seal,
            b"\x65patch", cbor.DIGEST, header.patch,
            b"\x65phase", cbor.name(header.phase),
            counts,
            b"\x66events", _lines(header.events),
            b"\x66marked", b"\xf5" if header.marked else b"\xf4",
            b"\x66parent", cbor.NOTHING if header.parent is None else cbor.DIGEST + header.parent,
            b"\x66status", cbor.name(header.status),
            b"\x67ordinal", cbor.integer(header.ordinal),
            b"\x68triggers", _triggers(header.triggers),
            b"\x69sealed_at", cbor.integer(header.sealed_at),
            *more,
        )
    )  # fmt: skip


def _counts(counts: Counts | None) -> bytes:
    """In short: three rows of the usual kind fill a page of a database, and shall go on doing so."""
    if counts is None:
        return b""
    ago = cbor.NOTHING if counts.ago is None else cbor.integer(counts.ago)
    return b"\x66counts\x83" + cbor.integer(counts.tasks) + cbor.integer(counts.decisions) + ago


def _more(header: Header) -> list[bytes]:
    more = []
    if header.confidence is not None:
        more.append(b"\x6aconfidence" + cbor.number(header.confidence))
    if header.generation:
        more.append(b"\x6ageneration" + cbor.integer(header.generation))
    if header.open_failure:
        more.append(b"\x6copen_failure\xf5")
    return more


def _lines(events: tuple[Headline, ...]) -> bytes:
    parts = [cbor.head(cbor.ARRAY, len(events))]
    for line in events:
        parts.append(_words(line.kind, line.who, line.what))
        if not line.figures:
            parts.append(b"\x80")
            continue
        parts.append(cbor.head(cbor.ARRAY, 2 * len(line.figures)))
        for figure, value in line.figures:
            parts += (cbor.name(figure), cbor.number(value))
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _words(kind: str, who: str | None, what: str) -> bytes:
    """How a line begins: all but its figures. The same words come again in every run of a workflow."""
    return b"\x84" + cbor.name(kind) + cbor.name(who) + cbor.text(what)


def _read_headline(plain: Any) -> dict[str, Any]:
    kind, who, what, figures = plain
    pairs = [list(pair) for pair in zip(figures[::2], figures[1::2], strict=True)]
    return {"kind": kind, "who": who, "what": what, "figures": pairs}


def open_header(digest: Digest, frame: bytes, framer: Framer, *, what: str) -> dict[str, Any]:
    """The plain fields of a header, proved against its digest; raises `Damaged`."""
    framed = framer.open(digest, frame, what=what, kinds=("header",))
    plain = _decode(framed.canonical, what)
    if not isinstance(plain, dict):
        raise Damaged(what=what, reason="it is not a dictionary")
    return plain


def read_header(digest: Digest, frame: bytes, framer: Framer, *, what: str) -> Header:
    """The header in a frame, proved against its digest; raises `Damaged`."""
    plain = open_header(digest, frame, framer, what=what)
    digests = {name: _address(plain[name]) for name in ("seal", "patch", "parent") if name in plain}
    try:
        events = [_read_headline(line) for line in plain["events"]]
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(what=what, reason=f"its events cannot be read ({error})") from None
    counts = {"counts": _read_counts(plain["counts"], what)} if "counts" in plain else {}
    from orchestra.codec.readers import structure
    from orchestra.model.snapshot import Header

    return structure({**plain, **digests, **counts, "events": events}, Header, what=what)


def _read_counts(counts: Any, what: str) -> dict[str, Any]:
    if not isinstance(counts, list) or len(counts) != 3:
        raise Damaged(what=what, reason="its counts are not three numbers")
    return dict(zip(("tasks", "decisions", "ago"), counts, strict=True))


def ending_note(plain: dict[str, Any]) -> str:
    """Whom a run went on without, as the end of it says in a plain header; empty for nobody."""
    lines = plain.get("events")
    ends = [line[2] for line in lines if line[0] == "run_ended"] if isinstance(lines, list) else []
    return left_out_note(str(ends[-1])) if ends else ""


def left_out_note(ended: str) -> str:
    """Whom a run went on without, in the headline of its end: `1 skipped: security`; empty for nobody."""
    found = _SKIPPED.fullmatch(ended)
    return found["note"] if found else ""


def link(plain: dict[str, Any], name: str) -> Digest | None:
    """The digest in a plain header field, or None."""
    found = plain.get(name)
    return Digest(found) if isinstance(found, bytes) and len(found) == DIGEST_BYTES else None


def _address(plain: Any) -> Any:
    """A digest as the readers of the model expect it; in a header, which holds no values, it has no tag."""
    from orchestra.codec.readers import Address

    return Address(plain) if isinstance(plain, bytes) and len(plain) == DIGEST_BYTES else plain
