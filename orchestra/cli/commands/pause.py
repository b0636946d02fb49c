"""`orchestra pause`: pause a run."""

from orchestra.cli.options import AsJson, Reason, RunArgument, StoreUrl
from orchestra.cli.play.resume import order_and_report
from orchestra.cli.store import archive
from orchestra.engine.orders import Order
from orchestra.history.references import resolve_run


def pause(run: RunArgument, /, *, reason: Reason = "", store: StoreUrl = None, json: AsJson = False) -> int:
    """Pause a run: nothing new begins, what is under way is finished, and it stands still until resumed."""
    order = Order(kind="pause", reason=reason)
    with archive(store) as opened:
        found = opened.run(resolve_run(opened, run))
    done = "was paused already, and stays so" if found.status == "paused" else "was told to pause"
    return order_and_report(found.run, order, done, False, store, json)
