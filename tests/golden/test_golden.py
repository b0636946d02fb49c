"""Bytes of this format's first release are still read, and the same work still makes the same digests."""

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve

from orchestra.codec.readers import Address
from orchestra.history.archive import Archive
from orchestra.history.glance import glance
from orchestra.ids import Digest, RunId
from orchestra.model.records import Metrics
from orchestra.model.snapshot import Header
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from orchestra.ports.store import RowQuery
from orchestra.stores.memory import MemoryStore
from tests.golden.independent_reader import DecompressError, Reader
from tests.golden.make import EARLIER, FILE, UNCOUNTED, dump, values
from tests.golden.script import FORK, FORKED_AT, RUN, record


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return _read(FILE)


def _objects(golden: dict[str, Any]) -> dict[Digest, bytes]:
    return {Digest(bytes.fromhex(key)): bytes.fromhex(frame) for key, frame in golden["objects"].items()}


def _rows(golden: dict[str, Any], run: str) -> list[tuple[bytes, bytes, bytes]]:
    return [
        (bytes.fromhex(row["digest"]), bytes.fromhex(row["header"]), bytes.fromhex(row["patch"]))
        for row in golden["rows"][run]
    ]


def test_values_have_the_same_bytes_and_addresses(golden: dict[str, Any]) -> None:
    assert values() == golden["values"]


@pytest.mark.anyio
async def test_the_same_work_makes_the_same_digests(golden: dict[str, Any]) -> None:
    made = dump(await record())
    for run in (RUN, FORK):
        assert [row["digest"] for row in made["rows"][run]] == [row["digest"] for row in golden["rows"][run]]
    assert set(made["objects"]) == set(golden["objects"])


@pytest.mark.anyio
@pytest.mark.parametrize("run", [RUN, FORK])
async def test_golden_bytes_read_to_the_recorded_states(golden: dict[str, Any], run: RunId) -> None:
    store = await record()
    old = Archive(store)
    old.loader._fetch = lambda digests: {digest: _objects(golden)[digest] for digest in digests}
    fresh = Archive(store)
    for row, (digest, header, patch) in zip(store.rows(RowQuery(run=run)), _rows(golden, run), strict=True):
        golden_row = evolve(row, digest=Digest(digest), header=header, patch=patch)
        assert old.header(golden_row) == fresh.header(row)
        assert old.snapshot(golden_row).state == fresh.snapshot(row).state


@pytest.mark.anyio
@pytest.mark.parametrize("file", EARLIER, ids=lambda file: file.stem)
@pytest.mark.parametrize("run", [RUN, FORK])
async def test_earlier_bytes_read_to_the_same_states(file: Path, run: RunId) -> None:
    today, held = await record(), _read(file)
    old, new = Archive(await _earlier(held)), Archive(today)
    old.loader._fetch = lambda digests: {digest: _objects(held)[digest] for digest in digests}
    pairs = zip(old.store.rows(RowQuery(run=run)), today.rows(RowQuery(run=run)), strict=True)
    for mine, theirs in pairs:
        assert _facts(old.header(mine)) == _facts(new.header(theirs))
        assert (old.header(mine).counts is None) == (file == UNCOUNTED)
        assert _unforked(old.snapshot(mine).state) == _unforked(new.snapshot(theirs).state)
    assert glance(old, run).last_decision == glance(new, run).last_decision


async def _earlier(held: dict[str, Any]) -> MemoryStore:
    """A store with the rows of an earlier golden file."""
    store = await record()
    for run in (RUN, FORK):
        rows = store._index.runs[run].rows
        parent = Digest(_rows(held, RUN)[FORKED_AT][0]) if run == FORK else None
        for seq, (digest, frame, patch) in enumerate(_rows(held, run)):
            seal = Digest(Reader.header(digest, frame)["seal"])
            row = evolve(rows[seq], digest=Digest(digest), parent=parent, seal=seal)
            rows[seq], parent = evolve(row, header=frame, patch=patch), Digest(digest)
    return store


def _unforked(state: State) -> State:
    """A state without the digest that it was forked at, and what was spent before that."""
    if state.origin is None:
        return state
    agents = Table([(name, evolve(agent, tokens=0)) for name, agent in state.agents.items()])
    origin = evolve(state.origin, digest=Digest(b""))
    return evolve(state, origin=origin, metrics=Metrics(), agents=agents)


def _facts(header: Header) -> dict[str, Any]:
    """What headers say beside digests and counts."""
    left_out = ("parent", "patch", "seal", "counts")
    return {name: fact for name, fact in asdict(header).items() if name not in left_out}


@pytest.mark.anyio
@pytest.mark.parametrize("file", [FILE, *EARLIER], ids=lambda file: file.stem)
@pytest.mark.parametrize("run", [RUN, FORK])
async def test_a_reader_written_from_the_description_agrees(file: Path, run: RunId) -> None:
    archive, golden = Archive(await record()), _read(file)
    states = Reader(_objects(golden)).states(_rows(golden, run))
    for seq, state in enumerate(states):
        mine = _plain(archive.document(run, seq))
        if file in EARLIER and "origin" in mine:
            mine["origin"] = {**mine["origin"], "digest": state["origin"]["digest"]}
            mine["metrics"], mine["agents"] = state["metrics"], state["agents"]
        assert mine == state


def _plain(held: Any) -> Any:
    """One of our documents in the form the independent reader gives."""
    if isinstance(held, bytes):
        return ("value", held)
    if isinstance(held, Address):
        return ("digest", held.digest)
    if isinstance(held, Value):
        return ("large", held.digest, held.size)
    if isinstance(held, dict | Table):
        return {key: _plain(each) for key, each in held.items()}
    if isinstance(held, Vec | list | tuple):
        return [_plain(each) for each in held]
    return held


@pytest.mark.parametrize("part", [1, 2])
def test_a_changed_bit_is_noticed_by_the_other_reader_too(golden: dict[str, Any], part: int) -> None:
    rows = [list(row) for row in _rows(golden, RUN)]
    rows[5][part] = rows[5][part][:-4] + bytes([rows[5][part][-4] ^ 1]) + rows[5][part][-3:]
    with pytest.raises((AssertionError, DecompressError)):
        Reader(_objects(golden)).states([(row[0], row[1], row[2]) for row in rows])
