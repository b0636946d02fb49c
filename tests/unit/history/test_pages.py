"""Rows page by page, also where a store refuses some of them."""

import pytest

from orchestra.errors import Damaged
from orchestra.history.pages import Broken, Pages
from orchestra.ports.store import Row, RowQuery
from orchestra.stores.memory import MemoryStore
from tests.unit.cli.recording import HEAD, REVIEW, record_into

pytestmark = pytest.mark.anyio


class _Spoiled(MemoryStore):
    """A store that refuses every page with one of these rows in it, as stores do with damage."""

    spoiled: frozenset[int] = frozenset()

    def rows(self, query: RowQuery) -> list[Row]:
        found = super().rows(query)
        for row in found:
            if row.seq in self.spoiled:
                raise Damaged(what=f"snapshot {row.run}@{row.seq}", reason="its row fails its check")
        return found


@pytest.mark.parametrize("spoiled", [(), (0,), (HEAD,), (3, 4, 9), tuple(range(HEAD + 1))])
@pytest.mark.parametrize("page", [1, 3, 4, 500])
async def test_what_is_whole_is_there_and_the_rest_is_named(spoiled: tuple[int, ...], page: int) -> None:
    store = _Spoiled()
    await record_into(store)
    store.spoiled = frozenset(spoiled)
    found = list(Pages(store, RowQuery(run=REVIEW), HEAD, page=page))
    assert [each.seq for each in found] == list(range(HEAD + 1))
    assert [each.seq for each in found if isinstance(each, Broken)] == list(spoiled)


async def test_a_part_of_a_run() -> None:
    store = _Spoiled()
    await record_into(store)
    store.spoiled = frozenset({2})
    found = Pages(store, RowQuery(run=REVIEW, first=1, last=3), HEAD, page=2)
    assert [(each.seq, isinstance(each, Broken)) for each in found] == [(1, False), (2, True), (3, False)]
    assert [
        each.seq for each in Pages(store, RowQuery(run=REVIEW, last=99, triggers=("decision",)), HEAD)
    ] == [4, 9]
