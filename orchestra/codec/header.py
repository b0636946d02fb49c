"""Headers as bytes. A header is a dictionary of its fields; its digest names the snapshot."""

from typing import Any

from orchestra.codec import cbor
from orchestra.codec.convert import Address, structure
from orchestra.codec.frame import Framer
from orchestra.errors import Damaged
from orchestra.ids import DIGEST_BYTES, Digest
from orchestra.model.snapshot import Header, Headline

_decode = cbor.make_decoder({})


def write_header(header: Header, framer: Framer) -> tuple[Digest, bytes]:
    """The digest and the frame of a header."""
    canonical = cbor.encode(_plain(header))
    return framer.address("header", canonical), framer.write("header", canonical, compress=False)


def _plain(header: Header) -> dict[str, Any]:
    """A header as plain data. Written out, with the keys in their order: it is made for every snapshot."""
    plain: dict[str, Any] = {
        "at": header.at,
        "run": header.run,
        "seq": header.seq,
        "seal": header.seal,
        "patch": header.patch,
        "phase": header.phase,
        "events": [_headline(line) for line in header.events],
        "marked": header.marked,
        "parent": header.parent,
        "status": header.status,
        "ordinal": header.ordinal,
        "triggers": header.triggers,
        "sealed_at": header.sealed_at,
    }
    if header.confidence is not None:
        plain["confidence"] = header.confidence
    if header.generation:
        plain["generation"] = header.generation
    if header.open_failure:
        plain["open_failure"] = True
    return plain


def _headline(line: Headline) -> list[Any]:
    return [line.kind, line.who, line.what, [part for figure in line.figures for part in figure]]


def _read_headline(plain: Any) -> dict[str, Any]:
    kind, who, what, figures = plain
    pairs = [list(pair) for pair in zip(figures[::2], figures[1::2], strict=True)]
    return {"kind": kind, "who": who, "what": what, "figures": pairs}


def open_header(digest: Digest, frame: bytes, framer: Framer, *, what: str) -> dict[str, Any]:
    """The plain fields of a header, proved against its digest; raises `Damaged`."""
    framed = framer.open(digest, frame, what=what, kinds=("header",))
    try:
        plain = _decode(framed.canonical)
    except cbor.Refused as refused:
        raise cbor.damaged(what, refused) from None
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
    return structure({**plain, **digests, "events": events}, Header, what=what)


def link(plain: dict[str, Any], name: str) -> Digest | None:
    """The digest in a plain header field, or None."""
    found = plain.get(name)
    return Digest(found) if isinstance(found, bytes) and len(found) == DIGEST_BYTES else None


def _address(plain: Any) -> Any:
    """A digest as the readers of the model expect it; in a header, which holds no values, it has no tag."""
    return Address(plain) if isinstance(plain, bytes) and len(plain) == DIGEST_BYTES else plain
