"""Everything in the model and everything a user may hand in comes back exactly, to the type and the bit."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra.codec import cbor
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer, pair_references
from orchestra.codec.header import read_header, write_header
from orchestra.codec.loader import Loader
from orchestra.codec.readers import structure
from orchestra.codec.values import context_data, contribution, freeze, freeze_leniently, thaw
from orchestra.codec.writers import Writer
from orchestra.model.reducers import REDUCERS
from orchestra.model.snapshot import Header
from orchestra.testing.strategies import MODEL_CLASSES, models, numbers, storable_values
from tests.property.exact import exact
from tests.unit.codec.plain import plain

PLAIN = Addresser()
FRAMER = Framer(PLAIN)


def written(thing: Any) -> bytes:
    """The canonical bytes of a model value."""
    return pair_references([], Writer().write(thing))


def read(data: bytes, kind: type) -> Any:
    """The model value in canonical bytes."""
    _, body = Loader(lambda _: {}, FRAMER).decode(data, what="a test")
    return structure(body, kind, what="a test")


@pytest.mark.parametrize("kind", MODEL_CLASSES, ids=lambda kind: kind.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_every_class_of_the_model(kind: type, data: st.DataObject) -> None:
    thing = data.draw(models(kind))
    encoded = written(thing)
    again = read(encoded, kind)
    assert exact(again) == exact(thing)
    assert written(again) == encoded
    assert written(_twin(thing)) == encoded
    assert cbor.encode(plain(encoded)) == encoded, "a general encoder writes the same"


def _twin(thing: Any) -> Any:
    """An equal one that was made anew."""
    return type(thing)(**{field.name: getattr(thing, field.name) for field in attrs.fields(type(thing))})


@settings(max_examples=50)
@given(header=models(Header))
def test_headers_through_their_frames(header: Header) -> None:
    digest, frame = write_header(header, FRAMER)
    assert exact(read_header(digest, frame, FRAMER, what="a test")) == exact(header)


@settings(max_examples=300)
@given(value=storable_values())
def test_user_values(value: Any) -> None:
    frozen = freeze(value, PLAIN)
    assert exact(thaw(frozen)) == exact(value)
    assert freeze(thaw(frozen), PLAIN) == frozen
    assert freeze_leniently(value, PLAIN) == frozen


@settings(max_examples=50)
@given(value=storable_values(), key=st.binary(min_size=32, max_size=32))
def test_a_key_changes_addresses_and_nothing_else(value: Any, key: bytes) -> None:
    keyed = freeze(value, Addresser(key))
    assert keyed.encoded == freeze(value, PLAIN).encoded
    assert keyed.encoded is not None
    assert Addresser(key).address("value", 1, keyed.encoded) != PLAIN.address("value", 1, keyed.encoded)


@pytest.mark.parametrize("reducer", REDUCERS)
@settings(max_examples=50)
@given(data=st.data())
def test_contributions(reducer: Any, data: st.DataObject) -> None:
    kinds = {
        "merge": st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"])), storable_values(4), max_size=3
        ),
        "append": st.lists(storable_values(4), max_size=3),
        "sum": numbers(),
        "max": numbers(),
    }
    value = data.draw(kinds.get(reducer, storable_values()))
    held = contribution(reducer, value, PLAIN)
    assert exact(context_data(held)) == exact(value)
    assert exact(context_data(read(written(held), type(held)))) == exact(value)
