"""A diff names exactly what differs, inside values too, whichever runs the snapshots are of."""

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.loader import Loader
from orchestra.history.archive import Archive
from orchestra.history.compare import Diff, diff_documents
from orchestra.history.paths import format_path
from orchestra.ids import Digest, RunId
from orchestra.model.tree import Table, Vec
from tests.unit.story import RUN, Story, story

_ATOMS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5))
_PARTS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=4),
        st.lists(inner, max_size=40).map(Vec),
        st.dictionaries(st.text(max_size=3), inner, max_size=40).map(lambda d: Table(d.items())),
    ),
    max_leaves=60,
)
_DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), _PARTS)


def _loader() -> Loader:
    return Loader(lambda digests: {}, Framer(Addresser()))


def _between(told: Story, old: int, new: int) -> Diff:
    archive, run = told.archive, told.active.run
    return diff_documents(archive.document(run, old), archive.document(run, new), archive.loader)


@given(_DOCUMENTS, _DOCUMENTS)
def test_no_change_means_equal_and_back(old: dict[str, object], new: dict[str, object]) -> None:
    forth, back = diff_documents(old, new, _loader()), diff_documents(new, old, _loader())
    assert not diff_documents(old, old, _loader()).changes
    assert {change.path for change in forth.changes} == {change.path for change in back.changes}
    if not forth.changes:
        assert repr(old) == repr(new) or old == new


@pytest.mark.anyio
async def test_a_result_and_what_came_with_it() -> None:
    async with story() as told:
        seq = await told.task("one", {"score": 1})
        changes = {format_path(change.path): change for change in _between(told, seq - 1, seq).changes}
        assert changes["tasks.one.status"].before == "running"
        assert changes["tasks.one.status"].after == "completed"
        assert changes["tasks.one.result"].after == {"score": 1}
        assert changes["tasks.one.result"].kind == "added"
        assert "tasks.one.description" not in changes


@pytest.mark.anyio
async def test_values_are_compared_inside() -> None:
    async with story() as told:
        await told.found({"file": "a.py", "line": 3})
        await told.manager.fork(RUN, 2, RunId("other"))
        other = await told.manager.fork(RUN, 1, RunId("third"))
        told.active = other
        await told.found({"file": "a.py", "line": 5})
        archive = told.archive
        found = diff_documents(archive.document(RUN, 2), archive.document(RunId("third"), 1), archive.loader)
        lines = [change for change in found.changes if change.path[0] == "context"]
        assert [(format_path(c.path), c.before, c.after) for c in lines] == [
            ("context.findings[0].line", 3, 5)
        ]


@pytest.mark.anyio
async def test_equal_subtrees_are_not_fetched() -> None:
    async with story() as told:
        for number in range(100):
            await told.task(f"task-{number}", number)
        store = told.archive.store
        fetched: list[Digest] = []

        def fetch(digests: Collection[Digest]) -> Mapping[Digest, bytes]:
            fetched.extend(digests)
            return store.get_objects(digests)

        archive = Archive(store)
        archive.loader = Loader(fetch, archive.framer)
        head = told.active.seq
        diff_documents(archive.document(RUN, head - 40), archive.document(RUN, head), archive.loader)
        needed = len(fetched)
        archive.loader.fetch_all(archive.document(RUN, head))
        assert needed < len(fetched)


@pytest.mark.anyio
async def test_bytes_and_odd_numbers_inside_values() -> None:
    async with story() as told:
        old = await told.task("one", {"raw": b"\x00\x01", "nan": float("nan"), "zero": 0.0})
        new = await told.task("two", 1)
        assert not [
            change for change in _between(told, old, new).changes if change.path[:2] == ("tasks", "one")
        ]
        told.active = await told.manager.fork(RUN, 1, RunId("third"))
        other = await told.task("one", {"raw": b"\x00\x02", "nan": float("nan"), "zero": -0.0})
        archive = told.archive
        found = diff_documents(
            archive.document(RUN, old), archive.document(RunId("third"), other), archive.loader
        )
        inside = {
            c.path[3]: (c.before, c.after) for c in found.changes if c.path[:3] == ("tasks", "one", "result")
        }
        assert inside == {"raw": (b"\x00\x01", b"\x00\x02"), "zero": (0.0, -0.0)}


@pytest.mark.anyio
async def test_the_limit_is_kept_and_said() -> None:
    async with story() as told:
        for number in range(5):
            await told.task(f"task-{number}", number)
        archive = told.archive
        old, new = archive.document(RUN, 1), archive.document(RUN, told.active.seq)
        assert diff_documents(old, new, archive.loader, limit=3).truncated
        assert len(diff_documents(old, new, archive.loader, limit=3).changes) == 3
        assert not diff_documents(old, new, archive.loader).truncated


@pytest.mark.anyio
async def test_a_state_made_from_the_one_before_is_the_stored_one() -> None:
    """Over seals too, and for rows that do not follow one another."""
    async with story() as told:
        for number in range(40):
            await told.task(f"task {number}", {"score": number})
        archive, run = told.archive, told.active.run
        for old, new in [*((seq, seq + 1) for seq in range(told.active.seq)), (3, 40), (40, 3), (7, 7)]:
            before, after = archive.documents_of(archive.row(run, old), archive.row(run, new))
            assert not diff_documents(before, archive.document(run, old), archive.loader).changes
            assert not diff_documents(after, archive.document(run, new), archive.loader).changes
