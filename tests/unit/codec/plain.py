"""Canonical bytes as plain data with their tags, for tests that look at them or bend them."""

from typing import Any

from orchestra.codec import cbor
from orchestra.codec.cbor import Tag
from orchestra.codec.writers import Writer

_TAGS = range(cbor.TAG_VEC, cbor.TAG_DIGEST + 1)


def _kept(number: int) -> cbor.Maker:
    return lambda content, _: Tag(number, content)


plain = cbor.make_decoder({number: _kept(number) for number in _TAGS})
"""Canonical bytes as dictionaries, lists, atoms and tags."""


def plain_of(thing: object) -> Any:
    """A model value as plain data."""
    return plain(Writer().write(thing))
