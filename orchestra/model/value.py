"""A frozen value: what an agent or a person handed in, as canonical bytes.

A value is encoded once, when it enters, so nobody can alter it through the original. A small value has its
bytes; a large one is an object of its own, known by digest. `orchestra.codec.values` makes and opens them.
"""

from orchestra.ids import Digest


class Value:
    """Canonical CBOR bytes of plain data, or the digest of such bytes."""

    __slots__ = ("digest", "encoded", "size")

    def __init__(
        self, encoded: bytes | None, *, digest: Digest | None = None, size: int | None = None
    ) -> None:
        assert encoded is not None or digest is not None, "BUG: a value has bytes or a digest"
        self.encoded = encoded
        self.digest = digest
        self.size = len(encoded) if encoded is not None else size or 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            return NotImplemented
        if self.digest is not None or other.digest is not None:
            return self.digest == other.digest
        return self.encoded == other.encoded

    def __hash__(self) -> int:
        return hash(self.digest or self.encoded)

    def __repr__(self) -> str:
        return f"Value({self.size} bytes)"


def is_storable_text(text: str) -> bool:
    """Whether a text can be stored: one with half of a character in it cannot."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True
