"""Headers as bytes. A header is a dictionary of its fields; its digest names the snapshot."""

from typing import Any

from orchestra.codec import cbor
from orchestra.codec.convert import Address, InlineWriter, structure
from orchestra.codec.frame import Framer
from orchestra.errors import Damaged
from orchestra.ids import Digest
from orchestra.model.snapshot import Header

_decode = cbor.make_decoder({cbor.TAG_DIGEST: lambda digest, _: Address(digest)})
_WRITER: list[InlineWriter] = []


def write_header(header: Header, framer: Framer) -> tuple[Digest, bytes]:
    """The digest and the frame of a header."""
    if not _WRITER:
        _WRITER.append(InlineWriter())
    canonical = cbor.encode(_WRITER[0].plain(header))
    return framer.address("header", canonical), framer.write("header", canonical, compress=False)


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
    return structure(open_header(digest, frame, framer, what=what), Header, what=what)


def link(plain: dict[str, Any], name: str) -> Digest | None:
    """The digest in a plain header field, or None."""
    found = plain.get(name)
    return Digest(found.digest) if isinstance(found, Address) else None
