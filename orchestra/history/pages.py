"""Rows of a run page by page; a row that the store finds damaged comes as `Broken` instead."""

from collections.abc import Iterator

import attrs

from orchestra.errors import DamageError
from orchestra.limits import PAGE_ROWS
from orchestra.ports.store import Row, RowQuery, Store


@attrs.frozen
class Broken:
    """A row that its store cannot hand out."""

    seq: int
    reason: str


class Pages:
    """The rows that a query of one run asks for, oldest first, from its `first` to its `last`."""

    def __init__(self, store: Store, query: RowQuery, head: int, *, page: int = PAGE_ROWS) -> None:
        self._store, self._query, self._page = store, query, page
        self._first = max(query.first or 0, 0)
        self._last = head if query.last is None else min(query.last, head)

    def __iter__(self) -> Iterator[Row | Broken]:
        for found in self.stretches():
            if isinstance(found, Broken):
                yield found
            else:
                yield from found

    def stretches(self) -> Iterator[list[Row] | Broken]:
        """The rows, many at a time."""
        for first in range(self._first, self._last + 1, self._page):
            yield from self._between(first, min(self._last, first + self._page - 1))

    def _between(self, first: int, last: int) -> Iterator[list[Row] | Broken]:
        """A stretch of rows; halved until what is damaged stands alone."""
        try:
            yield self._store.rows(attrs.evolve(self._query, first=first, last=last))
        except DamageError as damage:
            if first == last:
                yield Broken(first, str(damage))
                return
            middle = (first + last) // 2
            yield from self._between(first, middle)
            yield from self._between(middle + 1, last)
