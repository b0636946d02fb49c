"""Addresses: the digest that names bytes.

The address of something of kind K and version V with canonical bytes B is BLAKE3-256 over `orchestra/K/V`, a
zero byte, and B, keyed in a store with an address key: without it nobody can test guesses against addresses.
"""

from functools import cache, partial
from typing import Final, TypeAlias

from blake3 import blake3

from orchestra.ids import Digest

Kind: TypeAlias = str
KINDS: Final = (
    "header", "patch", "root", "branch", "leaf", "value", "definition", "blob", "annotation", "export",
)  # fmt: skip
AddressKey: TypeAlias = bytes  # 32 bytes, made once for a store and never changed
_WHOLE_BYTES: Final = 256 * 1024


class Addresser:
    """Makes addresses, with or without a key."""

    __slots__ = ("_hash",)

    def __init__(self, key: AddressKey | None = None) -> None:
        assert key is None or len(key) == 32, "BUG: an address key has 32 bytes"
        self._hash = partial(blake3, key=key) if key else blake3

    def address(self, kind: Kind, version: int, canonical: bytes) -> Digest:
        """The digest of canonical bytes of one kind and version."""
        prefix = _prefix(kind, version)
        if len(canonical) > _WHOLE_BYTES:
            return Digest(self._hash(prefix).update(canonical).digest())
        # In one piece: what follows a short first piece is hashed at two thirds of the speed.
        return Digest(self._hash(prefix + canonical).digest())


@cache
def _prefix(kind: Kind, version: int) -> bytes:
    return f"orchestra/{kind}/{version}\0".encode()
