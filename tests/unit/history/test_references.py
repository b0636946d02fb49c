"""Every way to name a snapshot finds it, and what names none says why."""

import pytest

from orchestra.errors import AmbiguousReference, BadReference, UnknownRun, UnknownSnapshot
from orchestra.history import references
from orchestra.history.references import resolve, resolve_run
from orchestra.ids import RunId, uuid_of
from tests.unit.story import FIND, RUN, WRITE, Story, story

pytestmark = pytest.mark.anyio


async def _two_phases(told: Story) -> tuple[int, int]:
    """A good first phase, then a second with a failure; returns the number of its start and of the head."""
    await told.task("one", 1)
    start = await told.phase(WRITE)
    return start, await told.failed("two")


async def test_places_in_a_run() -> None:
    async with story() as told:
        start, head = await _two_phases(told)
        expected = {
            RUN: head,
            f"{RUN}@head": head,
            f"{RUN}@": head,
            f"{RUN}@0": 0,
            f"{RUN}@-1": head - 1,
            f"{RUN}@-{head}": 0,
            f"{RUN}@phase:{FIND}": 1,
            f"{RUN}@phase:{WRITE}": start,
            f"{RUN}@last-good": start,
            f"review@{start}": start,
        }
        assert {text: resolve(told.archive, text).seq for text in expected} == expected


async def test_digests_and_uuids() -> None:
    async with story() as told:
        row = resolve(told.archive, f"{RUN}@1")
        assert resolve(told.archive, row.digest.hex()[:10]) == row
        assert resolve(told.archive, row.digest.hex().upper()) == row
        assert resolve(told.archive, str(uuid_of(row.digest))) == row


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("nobody", UnknownRun, "There is no run 'nobody'"),
        (f"{RUN}@99", UnknownSnapshot, "its snapshots are 0 to 1"),
        (f"{RUN}@-2", UnknownSnapshot, "no snapshot '-2': its snapshots are 0 to 1"),
        (f"{RUN}@phase:nowhere", UnknownSnapshot, "its phases are find"),
        (f"{RUN}@yesterday", BadReference, "is no place in a run"),
        ("../x", BadReference, "it names no run"),
        ("", BadReference, "it names no run"),
        ("00000000", BadReference, "no run or snapshot"),
        ("00000000-0000-8000-8000-000000000000", BadReference, "no run or snapshot"),
    ],
)
async def test_what_names_nothing(text: str, error: type[Exception], said: str) -> None:
    async with story() as told:
        with pytest.raises(error, match=said.replace("(", r"\(")):
            resolve(told.archive, text)


async def test_a_beginning_must_fit_one_run_only() -> None:
    async with story() as told:
        await told.manager.fork(RUN, 1, RunId("review_20261115_150000_m2"))
        assert resolve_run(told.archive, "review_20261115_15") == "review_20261115_150000_m2"
        with pytest.raises(AmbiguousReference, match="fits 2"):
            resolve_run(told.archive, "review")
        assert resolve(told.archive, f"{RUN}@head").seq == 1


async def test_a_digest_prefix_that_fits_several(monkeypatch: pytest.MonkeyPatch) -> None:
    async with story() as told:
        store = told.archive.store
        every = store.find(b"\0" * 32, b"\xff" * 32, 10)
        monkeypatch.setattr(store, "find", lambda low, high, limit: every)
        with pytest.raises(AmbiguousReference, match=r"fits 2 snapshots: .*@0"):
            resolve(told.archive, "abcd")


async def test_last_good_skips_what_a_rollback_undid() -> None:
    async with story() as told:
        await told.task("one", 1)
        await told.phase(WRITE)
        await told.manager.rollback(told.active, 1, reason="start again")
        assert resolve(told.archive, f"{RUN}@last-good").seq == 1


async def test_a_beginning_is_looked_for_among_all_runs_that_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_PAGE_RUNS", 2)
    async with story() as told:
        for name in ("review_b", "a-review", "b-review", "c-review"):
            await told.manager.fork(RUN, 1, RunId(name))
        with pytest.raises(AmbiguousReference, match="fits 2"):
            resolve_run(told.archive, "review")
        for letter in "cdefg":
            await told.manager.fork(RUN, 1, RunId(f"review_{letter}"))
        with pytest.raises(AmbiguousReference, match="fits more than 5 runs"):
            resolve_run(told.archive, "review")
