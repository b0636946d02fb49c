"""Tools for tests: the store contract suite, a store that fails on purpose, sample rows.

Nothing here is imported by the program. The contract suite needs pytest and is loaded when it is asked for;
the rest needs nothing that the program does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestra.testing.faulty import Damage, Fault, FaultPlan, FaultyStore, Kill
    from orchestra.testing.samples import SampleRun, sample_commit, sample_digest, sample_object, sample_row
    from orchestra.testing.store_contract import StoreContract

__all__ = [
    "Damage",
    "Fault",
    "FaultPlan",
    "FaultyStore",
    "Kill",
    "SampleRun",
    "StoreContract",
    "sample_commit",
    "sample_digest",
    "sample_object",
    "sample_row",
]

_HOMES = {"StoreContract": "store_contract"} | dict.fromkeys(
    ("Damage", "Fault", "FaultPlan", "FaultyStore", "Kill"), "faulty"
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'samples')}"), name)
