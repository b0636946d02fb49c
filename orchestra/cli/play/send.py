"""Orders from the command line: to the process that plays a run, or, where none does, done here."""

from typing import Final, NamedTuple

import anyio

from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.resume import resume_runs
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import screen
from orchestra.cli.store import option
from orchestra.engine.orders import Order
from orchestra.ids import RunId
from orchestra.model.state import TERMINAL
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import RunRow

_GOING_ON: Final = frozenset({"answer", "provide", "retry"})
"""Orders after which a run could go on."""


def order_and_report(
    run: RunId, order: Order, done: str, resume: bool, store: str | None, as_json: bool
) -> int:
    """Have an order done and say so; with `resume`, go on with the run when nobody plays it."""
    sent = anyio.run(send_order, run, order, store)
    row = sent.row
    if resume and not row.owned and row.status not in TERMINAL:
        return _resume(run, done, store, as_json)
    if as_json:
        print_json({"run": run, "order": order.kind, "status": row.status, "owned": row.owned})
        return 0
    out = screen()
    out.print_cut([(run, "bold"), (f"  {done}  ", ""), *status_cell(sent.stands)])
    if not sent.elsewhere and order.kind in _GOING_ON:
        out.line(("  next       ", "dim"), f"orchestra resume {run}{option(store)}")
    return 0


def _resume(run: RunId, done: str, store: str | None, as_json: bool) -> int:
    """Go on with a run; that the order was done is said first, whatever comes of going on."""
    if not as_json:
        screen().print_cut([(run, "bold"), (f"  {done}", "")])
    return resume_runs([run], store=store, as_json=as_json)


class SentOrder(NamedTuple):
    """What came of an order."""

    row: RunRow  # the run as it is then
    stands: str  # how that is shown
    elsewhere: bool  # a process plays it, or did when the order came


async def send_order(run: RunId, order: Order, store: str | None) -> SentOrder:
    """Have an order done; raises `BadOrder`."""
    async with OrchestraPool() as pool:
        base = await pool.open_existing(store)
        orchestra = await pool.open_for(base.manager.archive, run, store)
        played = orchestra.manager.archive.run(run).owned
        await orchestra.order(run, order)
        row = orchestra.manager.archive.run(run)
        return SentOrder(row, shown_status(orchestra.manager.archive.store, row), played or row.owned)
