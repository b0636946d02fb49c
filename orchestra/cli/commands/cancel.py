"""`orchestra cancel`: end a run for good."""

from orchestra.cli.options import AsJson, Reason, RunArgument, StoreUrl, Yes
from orchestra.cli.play.resume import confirm, order_and_report
from orchestra.cli.store import find_run
from orchestra.engine.orders import Order


def cancel(
    run: RunArgument,
    /,
    *,
    reason: Reason = "",
    yes: Yes = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Cancel a run for good: what is under way is stopped, and it cannot be resumed, only forked."""
    name = find_run(run, store)
    confirm(f"Cancel {name} for good?", f"Cancelling {name}", yes)
    return order_and_report(name, Order(kind="cancel", reason=reason), "was told to end", False, store, json)
