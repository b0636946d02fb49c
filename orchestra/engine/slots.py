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

    def _pass_on(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
