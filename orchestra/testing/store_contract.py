"""The contract suite: proves that a store keeps the promises of `orchestra.ports.store`.

Whoever writes a store subclasses `StoreContract` in a test module and gives it one fixture:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "store")

The fixture's value opens the store, making it on the first call; after a `close` it opens the same one again,
with its data if `properties.durable` says so. The suite never has the same store open twice.
"""

from orchestra.testing.contract.base import OpenStore
from orchestra.testing.contract.commits import ClaimContract, CommitContract
from orchestra.testing.contract.life import DurableContract, LifeContract, ThreadContract
from orchestra.testing.contract.messages import AnnotationContract, CommandContract
from orchestra.testing.contract.model import ModelContract
from orchestra.testing.contract.reading import RowContract, RunContract
from orchestra.testing.contract.removal import DeleteContract, ObjectContract, PruneContract, SweepContract

__all__ = ["OpenStore", "StoreContract"]


class StoreContract(
    CommitContract,
    ObjectContract,
    SweepContract,
    RowContract,
    RunContract,
    ClaimContract,
    CommandContract,
    AnnotationContract,
    PruneContract,
    DeleteContract,
    LifeContract,
    DurableContract,
    ThreadContract,
    ModelContract,
):
    """Every promise of the port, as tests."""
