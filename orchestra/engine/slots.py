"""Slots: how many attempts may work at once over all runs of a process. Costs nothing while there is room."""

import asyncio
from collections import deque


class Slots:
    """A bounded number of places, given out in the order in which they were asked for."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled():
                self._pass_on()
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._pass_on()

    def give(self) -> None:
        """There is a place more: somebody who holds one stands still."""
        self._pass_on()

    def take(self) -> None:
        """Whoever stood still works again; for a while there may be more at work than there are places."""
        self._free -= 1

    def _pass_on(self) -> None:
        self._free += 1
        while self._waiting and self._free > 0:
            place = self._waiting.popleft()
            if not place.done():
                self._free -= 1
                place.set_result(None)
