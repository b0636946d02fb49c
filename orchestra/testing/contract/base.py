"""What all parts of the suite share: a store for each test, and everything a store shows as one value."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs
import pytest

from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import Annotation, Command, Commit, Row, RowQuery, RunQuery, RunRow, Store
from orchestra.testing.samples import SampleRun, start_run

E = TypeVar("E", bound=OrchestraError)

OpenStore = Callable[[], Store]
"""Opens the store of this test, making it on the first call; after a `close` it opens the same one again."""

FAR = Instant(2**62)
"""Later than anything a store can have written."""


class StoreSuite:
    """A part of the suite. The `open_store` fixture comes from whoever runs it."""

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        with open_store() as store:
            yield store

    @pytest.fixture
    def begun(self, store: Store) -> SampleRun:
        """The run `a`, claimed, with one row."""
        return start_run(store)


@attrs.frozen(kw_only=True)
class Look:
    """Everything a store shows, to be compared with an earlier or an expected look."""

    runs: list[RunRow]
    rows: list[Row]
    objects: dict[Digest, bytes]
    commands: dict[RunId, list[Command]]
    annotations: dict[RunId, list[Annotation]]
    last_no: int


def look(store: Store) -> Look:
    """All there is, by way of the public methods."""
    runs = store.runs(RunQuery(limit=1_000_000))
    return Look(
        runs=runs,
        rows=store.rows(RowQuery(after_no=0)),
        objects=dict(store.get_objects([info.digest for info in store.objects()])),
        commands={run.run: store.commands(run.run) for run in runs},
        annotations={run.run: store.annotations(run.run) for run in runs},
        last_no=store.last_no(),
    )


def existing_run(store: Store, run: RunId) -> RunRow:
    """A run that must be there."""
    found = store.run(run)
    assert found is not None
    return found


def command_ids(store: Store, run: RunId) -> list[int]:
    """The ids of the commands that wait for a run."""
    return [command.id for command in store.commands(run)]


def refuse(store: Store, commit: Commit, kind: type[E]) -> E:
    """Hand in a commit that must be refused and leave everything as it was; returns the error."""
    before = look(store)
    [refused] = store.commit([commit])
    assert isinstance(refused, kind)
    assert look(store) == before
    return refused


def open_durable(open_store: OpenStore) -> Store:
    """The store of this test; leaves the test out for a kind of store that does not survive its process."""
    store = open_store()
    if not store.properties.durable:
        store.close()
        pytest.skip(f"{store.properties.scheme} does not survive being closed")
    return store


def sweep_all(store: Store, dead: list[Digest], older_than: Instant = FAR) -> int:
    """Sweep without sparing anything."""
    return store.sweep(dead, since=store.last_no(), older_than=older_than, spared=lambda rows: ())
