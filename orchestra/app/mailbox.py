"""The post: carries what people leave in the store, and alarms of the machine, to the runs here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.engine.atlas import Atlas
from orchestra.engine.inbox import Due, Ordered
from orchestra.engine.orders import Order, read_order, refusal_reason, write_order
from orchestra.engine.settings import EngineSettings
from orchestra.errors import BadOrder, OrchestraError
from orchestra.history.archive import Archive
from orchestra.ids import Instant, RunId
from orchestra.limits import COMMAND_POLL_SECONDS, PRESSURE_SECONDS
from orchestra.ports.store import Command, RowQuery


class Mailbox:
    """Delivers commands and alarms."""

    def __init__(
        self, manager: CheckpointManager, playing: Mapping[RunId, Atlas], settings: EngineSettings
    ) -> None:
        self._manager, self._playing, self._settings = manager, playing, settings
        self._pressed = False

    async def deliver(self) -> None:
        """Look for post again and again."""
        passed = PRESSURE_SECONDS
        while True:
            await anyio.sleep(COMMAND_POLL_SECONDS)
            passed += COMMAND_POLL_SECONDS
            if not self._playing:
                continue
            await self._commands()
            if passed >= PRESSURE_SECONDS:
                passed = 0.0
                await self._pressure()

    async def _commands(self) -> None:
        runs, store = list(self._playing), self._manager.archive.store
        try:
            found = await anyio.to_thread.run_sync(
                lambda: [each for run in runs for each in store.commands(run)]
            )
        except OrchestraError:
            return  # a store that cannot be read now is noticed by whoever writes to it
        for command in found:
            atlas = self._playing.get(command.run)
            if atlas is not None and command.id not in atlas.delivered:
                atlas.delivered.add(command.id)
                atlas.inbox.post(Ordered(command.id, _order(command)))

    async def _pressure(self) -> None:
        share = await anyio.to_thread.run_sync(memory_share)
        pressed = share >= self._settings.memory_share
        if pressed and not self._pressed:
            for atlas in self._playing.values():
                atlas.inbox.post(Due("memory_pressure_high", f"{share:.0%} of the memory is used"))
        self._pressed = pressed


async def send_order(
    manager: CheckpointManager, run: RunId, order: Order, now: Instant, patience: float
) -> bool:
    """Leave an order for whoever plays a run, and wait until it was taken in.

    False when nobody plays the run any more. Raises `BadOrder` when the order was refused, or not taken in
    in time; then it is taken back, so that it is not done later, when nobody expects it.
    """
    archive = manager.archive
    head = (await anyio.to_thread.run_sync(archive.run, run)).head
    command = await anyio.to_thread.run_sync(archive.store.send, run, write_order(order), now)
    fate = await _fate(archive, run, command, patience)
    if fate != "taken in" and await anyio.to_thread.run_sync(archive.store.withdraw, run, command):
        if fate == "left alone":
            return False
        reason = f"the process that plays {run} did not take it in within {patience:g} s"
        raise BadOrder(order=order.kind, reason=reason)
    refused = await anyio.to_thread.run_sync(_refusal, archive, run, command, head)
    if refused is not None:
        raise BadOrder(order=order.kind, reason=refused)
    return True


async def _fate(
    archive: Archive, run: RunId, command: int, patience: float
) -> Literal["taken in", "left alone", "late"]:
    with anyio.move_on_after(patience):
        while command in [each.id for each in await anyio.to_thread.run_sync(archive.store.commands, run)]:
            await anyio.sleep(COMMAND_POLL_SECONDS / 4)
            if not (await anyio.to_thread.run_sync(archive.run, run)).owned:
                return "left alone"
        return "taken in"
    return "late"


def _refusal(archive: Archive, run: RunId, command: int, head: int) -> str | None:
    """Why a command was refused, from the snapshots since it was sent; None when it was not."""
    since = RowQuery(run=run, first=head + 1, triggers=("user_requested",))
    lines = (line for row in archive.store.rows(since) for line in archive.header(row).events)
    return refusal_reason(command, lines)


def _order(command: Command) -> Order:
    try:
        return read_order(command.body)
    except BadOrder as error:
        return Order(kind="snapshot", reason=str(error))


def memory_share() -> float:
    """How much of the memory this process may use is used: of its group's limit, else of the machine."""
    import psutil

    return max(_group_share(), float(psutil.virtual_memory().percent) / 100)


def _group_share() -> float:
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            top, now = (
                Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip() for name in (limit, used)
            )
        except OSError:
            continue
        if top.isdigit() and 0 < int(top) < 1 << 60:
            return int(now) / int(top)
    return 0.0
