"""The store that fails on purpose fails exactly as planned."""

import os
import signal
import subprocess
import sys

import pytest

from orchestra.errors import StoreBusy, StoreClosed, StoreError, StoreFailed, StoreFull
from orchestra.ports.store import RowQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.faulty import Damage, Fault, FaultPlan, FaultyStore, Kill, count_calls
from orchestra.testing.samples import SampleRun, sample_object
from orchestra.testing.store_contract import OpenStore, StoreContract


class TestWithoutFaults(StoreContract):
    """A plan without faults changes nothing."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        return lambda: FaultyStore(MemoryStore(), FaultPlan())


@pytest.mark.parametrize("kind", [StoreFull, StoreFailed, StoreBusy, StoreClosed])
def test_failing_before_the_call(kind: type[StoreError]) -> None:
    inner = MemoryStore()
    store = FaultyStore(inner, FaultPlan([Fault(methods={"commit"}, nth=1, kind=kind)]))
    begun = SampleRun(store, "a")
    begun.append()
    with pytest.raises(kind, match="memory:"):
        begun.append()
    assert inner.last_no() == 1
    assert begun.append().seq == 1


def test_failing_after_the_call_leaves_the_outcome_unknown() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=0, when="after")]))
    begun = SampleRun(store, "a")
    commit = begun.commit()
    with pytest.raises(StoreFailed):
        store.commit([commit])
    assert store.commit([commit]) == [1]


def test_counting() -> None:
    plan = FaultPlan()
    store = FaultyStore(MemoryStore(), plan)
    SampleRun(store, "a").extend(3)
    assert plan.calls == {"claim": 1, "rows": 1, "commit": 3}
    assert count_calls(_work, MemoryStore(), {"commit"}) == 3
    assert count_calls(_work, MemoryStore()) == 5


def _work(store: Store) -> None:
    SampleRun(store, "a").extend(3)


def test_every_call_can_be_the_one_that_fails() -> None:
    for nth in range(count_calls(_work, MemoryStore())):
        with pytest.raises(StoreFailed):
            _work(FaultyStore(MemoryStore(), FaultPlan([Fault(nth=nth)])))


def test_chance_comes_from_the_seed() -> None:
    def failures(seed: int) -> list[int]:
        store = FaultyStore(MemoryStore(), FaultPlan([Fault(chance=0.3)], seed=seed))
        failed = []
        for n in range(100):
            try:
                store.last_no()
            except StoreFailed:
                failed.append(n)
        return failed

    assert failures(1) == failures(1) != failures(2)
    assert 10 < len(failures(1)) < 60


def test_damage_is_one_bit() -> None:
    digest, data = sample_object("leaf", 100)
    inner = MemoryStore()
    row = SampleRun(inner, "a").append(parts={"objects": ((digest, data),)})
    store = FaultyStore(inner, FaultPlan([Damage()]))
    assert _bits_apart(store.get_objects([digest])[digest], data) == 1
    [read] = store.rows(RowQuery())
    assert _bits_apart(read.header, row.header) == 1
    assert read.patch == row.patch
    assert inner.get_objects([digest]) == {digest: data}


def test_damage_at_one_call_only() -> None:
    digest, data = sample_object("leaf")
    store = FaultyStore(MemoryStore(), FaultPlan([Damage(methods={"get_objects"}, nth=1)]))
    store.put_objects([(digest, data)])
    assert [store.get_objects([digest])[digest] == data for _ in range(3)] == [True, False, True]


def test_kill_ends_the_process_without_cleanup() -> None:
    script = (
        "import atexit\n"
        "from orchestra.stores.memory import MemoryStore\n"
        "from orchestra.testing import FaultPlan, FaultyStore, Kill\n"
        "atexit.register(print, 'cleaned up')\n"
        "store = FaultyStore(MemoryStore(), FaultPlan([Kill(nth=2)]))\n"
        "for n in range(5):\n"
        "    print(n, flush=True)\n"
        "    store.last_no()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=_environment())
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1", "2"]
    assert Kill(nth=0).when == "before"


def test_the_tools_do_not_need_pytest() -> None:
    script = (
        "import sys\n"
        "import orchestra.testing\n"
        "orchestra.testing.FaultyStore, orchestra.testing.sample_row\n"
        "sys.exit('pytest' in sys.modules or 'hypothesis' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def _bits_apart(left: bytes, right: bytes) -> int:
    assert len(left) == len(right)
    return sum((a ^ b).bit_count() for a, b in zip(left, right, strict=True))
