"""What sets the memory store apart; the promises are in the contract suite."""

from orchestra.ids import Instant
from orchestra.stores.memory import MemoryStore
from orchestra.testing.samples import SampleRun, sample_object


def test_every_one_is_new() -> None:
    first, second = MemoryStore(), MemoryStore()
    SampleRun(first, "a").append()
    assert second.last_no() == 0
    assert not first.properties.durable


def test_time_comes_from_outside() -> None:
    store = MemoryStore(now=lambda: Instant(42))
    store.put_objects([sample_object("leaf")])
    assert [info.at for info in store.objects()] == [42]


def test_what_is_kept_does_not_change_with_its_source() -> None:
    store = MemoryStore()
    digest, data = sample_object("leaf")
    source = bytearray(data)
    store.put_objects([(digest, source)])  # type: ignore[list-item]
    source[0] ^= 1
    assert store.get_objects([digest]) == {digest: data}
