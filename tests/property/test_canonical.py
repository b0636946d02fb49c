"""One value has one encoding: whatever order it was put together in, and whichever process does it."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze, thaw
from orchestra.testing.strategies import storable_values
from tests.property.exact import exact

PLAIN = Addresser()

SCRIPT = """
import json
import anyio
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.ids import RunId
from orchestra.stores.memory import MemoryStore
from tests.property.recording import managed, tell

words = [f"word-{n}" for n in range(50)]
sets = {"a": set(words), "b": frozenset(words), "c": {(word, 1.5) for word in words}, "d": {None, True, b"x"}}

async def digests(seed):
    async with managed(MemoryStore()) as manager:
        return [kept.digest.hex() for kept in (await tell(manager, seed)).recorded.values()]

found = {str(seed): anyio.run(digests, seed) for seed in range(12)}
found["sets"] = Addresser().address("value", 1, freeze(sets, Addresser()).encoded).hex()
print(json.dumps(found))
"""


def _digests(hash_seed: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_digests_are_the_same_in_every_process() -> None:
    first = _digests("0")
    assert len({digest for each in first.values() for digest in each}) > 200
    for hash_seed in ("1", "4711", "random"):
        assert _digests(hash_seed) == first


def _turned(value: Any) -> Any:
    """The same value put together the other way round."""
    if isinstance(value, dict):
        return {key: _turned(item) for key, item in reversed(value.items())}
    if isinstance(value, list | tuple):
        return type(value)(_turned(item) for item in value)
    if isinstance(value, set | frozenset):
        return type(value)(_turned(item) for item in reversed(list(value)))
    return value


@settings(max_examples=300)
@given(value=storable_values())
def test_order_of_insertion_does_not_count(value: Any) -> None:
    assert freeze(_turned(value), PLAIN) == freeze(value, PLAIN)


@settings(max_examples=200)
@given(one=storable_values(3), two=storable_values(3))
def test_equal_bytes_mean_equal_values(one: Any, two: Any) -> None:
    assert (freeze(one, PLAIN) == freeze(two, PLAIN)) == (exact(one) == exact(two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        ("a", b"a"),
        ([1], (1,)),
        ({1}, frozenset({1})),
        ([], {}),
        ([["a", 1]], {"a": 1}),
        (None, False),
    ],
)
def test_what_differs_has_different_bytes(one: Any, two: Any) -> None:
    assert freeze(one, PLAIN) != freeze(two, PLAIN)
    assert type(thaw(freeze(one, PLAIN))) is type(one)
    assert type(thaw(freeze(two, PLAIN))) is type(two)


def test_keys_are_ordered_by_length_then_bytes() -> None:
    frozen = freeze({"bb": 1, "a": 2, "é": 3, "Z": 4, "": 5}, PLAIN)
    assert frozen.encoded == b"\xa5\x60\x05\x61Z\x04\x61a\x02\x62bb\x01\x62\xc3\xa9\x03"
