"""One of several processes on one store: `write` records runs of its own, `read` looks at everything.

    python -m tests.fault.support.sharing write STORE NAME TURNS
    python -m tests.fault.support.sharing read STORE NAME ROUNDS

What goes wrong is printed and is the exit code.
"""

import sys

import anyio

from orchestra.ids import run_id
from orchestra.ports.store import RowQuery, RunQuery, Store
from orchestra.stores.registry import open_store
from tests.fault.support.work import manager_of
from tests.property.recording import Telling


async def write(store: Store, name: str, turns: int) -> None:
    """Record two runs side by side."""
    async with manager_of(store) as manager, anyio.create_task_group() as group:
        for number in range(2):

            async def record(run: str = f"{name}-{number}", seed: int = number) -> None:
                telling = Telling(manager, seed)
                active = await telling.begin(run)
                await telling.go_on(active, turns)
                await manager.release(active)

            group.start_soon(record)


async def read(store: Store, name: str, rounds: int) -> None:
    """List runs and rows, and read the newest snapshot of each run whole."""
    async with manager_of(store) as manager:
        for _ in range(rounds):
            for found in store.runs(RunQuery()):
                rows = store.rows(RowQuery(run=found.run, content=False))
                assert [row.seq for row in rows] == list(range(len(rows)))
                assert len(rows) > found.head
                snapshot = await manager.look(run_id(found.run))
                assert snapshot.header.seq >= found.head


def main() -> None:
    """Do what the command line says."""
    mode, place, name, count = sys.argv[1:]
    with open_store(place, create=True) as store:
        anyio.run({"write": write, "read": read}[mode], store, name, int(count))


if __name__ == "__main__":
    main()
