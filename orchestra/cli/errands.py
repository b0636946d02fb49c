"""Orders from the command line: to the process that plays a run, or, where none does, done here."""

from typing import Final

import anyio

from orchestra.cli.output import print_json
from orchestra.cli.run_list import status_cell
from orchestra.cli.screen import screen
from orchestra.cli.settling import settled
from orchestra.cli.source import option, store_url
from orchestra.cli.troupe import Troupe
from orchestra.engine.orders import Order
from orchestra.ids import RunId
from orchestra.ports.store import RunRow

_GOING_ON: Final = frozenset({"answer", "provide", "retry"})
"""Orders after which a run could go on."""


def ordered(run: RunId, order: Order, done: str, resume: bool, store: str | None, as_json: bool) -> int:
    """Have an order done and say so; with `resume`, go on with the run when nobody plays it."""
    row = anyio.run(send, run, order, store)
    if resume and not row.owned and row.status not in ("completed", "cancelled"):
        from orchestra.cli.resume import play_on

        return play_on([run], store=store, as_json=as_json)
    if as_json:
        print_json({"run": run, "order": order.kind, "status": row.status, "owned": row.owned})
        return 0
    out = screen()
    out.wrapped([(run, "bold"), (f"  {done}  ", ""), *status_cell(row.standing)])
    if not row.owned and order.kind in _GOING_ON:
        out.line(("  next       ", "dim"), f"orchestra resume {run}{option(store)}")
    return 0


async def send(run: RunId, order: Order, store: str | None) -> RunRow:
    """Have an order done; returns the run as it is then. Raises `BadOrder`."""
    async with Troupe() as troupe:
        house = await troupe.house(settled(store or store_url(None)), create=False)
        await house.order(run, order)
        return house.manager.archive.run(run)
