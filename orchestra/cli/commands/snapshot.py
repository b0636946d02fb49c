"""`orchestra snapshot`: take a snapshot of a run now."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.play.resume import order_and_report
from orchestra.cli.store import find_run
from orchestra.engine.orders import Order


def snapshot(
    run: RunArgument,
    note: Annotated[str, Parameter(help="What to remember about this moment.")] = "",
    /,
    *,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Take a snapshot of a run now. SIGUSR1 asks the process that plays it for the same."""
    order = Order(kind="snapshot", reason=note)
    return order_and_report(find_run(run, store), order, "has a new snapshot", False, store, json)
