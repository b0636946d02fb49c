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
    error: DamageError

    @property
    def reason(self) -> str:
        """What is wrong with it, in a sentence."""
        return str(self.error)


class Pages:
    """The rows that a query of one run asks for, from its `first` to its `last`, or newest first."""

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
        firsts = range(self._first, self._last + 1, self._page)
        for first in reversed(firsts) if self._query.newest_first else firsts:
            yield from self._between(first, min(self._last, first + self._page - 1))

    def _between(self, first: int, last: int) -> Iterator[list[Row] | Broken]:
        """A stretch of rows; halved until what is damaged stands alone."""
        try:
            yield self._store.rows(attrs.evolve(self._query, first=first, last=last))
        except DamageError as damage:
            if first == last:
                yield Broken(first, damage)
                return
            middle = (first + last) // 2
            halves = ((first, middle), (middle + 1, last))
            for half in reversed(halves) if self._query.newest_first else halves:
                yield from self._between(*half)
