"""Tools for tests: the store contract suite, a store that fails on purpose, sample rows.

Nothing here is imported by the program. The contract suite needs pytest and is loaded when it is asked for;
the rest needs nothing that the program does not.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestra.testing.faulty import Damage, Fault, FaultPlan, FaultyStore, Kill
    from orchestra.testing.samples import SampleRun, sample_commit, sample_digest, sample_object, sample_row
    from orchestra.testing.store_contract import StoreContract
else:
    _NAMES = {
        "faulty": {"Damage", "Fault", "FaultPlan", "FaultyStore", "Kill"},
        "samples": {"SampleRun", "sample_commit", "sample_digest", "sample_object", "sample_row"},
        "store_contract": {"StoreContract"},
    }

    def __getattr__(name):
        from importlib import import_module

        for home, names in _NAMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Damage", "Fault", "FaultPlan", "FaultyStore", "Kill", "SampleRun", "StoreContract",
    "sample_commit", "sample_digest", "sample_object", "sample_row",
]  # fmt: skip
