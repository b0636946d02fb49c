"""`orchestra pause`, `cancel`, `snapshot` and `retry`: orders to a run, wherever it is played."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Reason, Resume, RunArgument, StoreUrl, Yes
from orchestra.cli.play.confirm import confirm
from orchestra.cli.play.send import order_and_report
from orchestra.cli.store import archive
from orchestra.engine.orders import Order
from orchestra.history.references import resolve_run
from orchestra.ids import RunId


def _named(run: str, store: str | None) -> RunId:
    with archive(store) as opened:
        return resolve_run(opened, run)


def pause(run: RunArgument, /, *, reason: Reason = "", store: StoreUrl = None, json: AsJson = False) -> int:
    """Pause a run: nothing new begins, what is under way is finished, and it stands still until resumed."""
    order = Order(kind="pause", reason=reason)
    with archive(store) as opened:
        found = opened.run(resolve_run(opened, run))
    done = "was paused already, and stays so" if found.status == "paused" else "was told to pause"
    return order_and_report(found.run, order, done, False, store, json)


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
    name = _named(run, store)
    confirm(f"Cancel {name} for good?", f"Cancelling {name}", yes)
    return order_and_report(name, Order(kind="cancel", reason=reason), "was told to end", False, store, json)


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
    return order_and_report(_named(run, store), order, "has a new snapshot", False, store, json)


def retry(
    run: RunArgument,
    assignment: Annotated[str, Parameter(help="An assignment of the current phase, e.g. security.")],
    /,
    *,
    resume: Resume = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Try an assignment of the current phase again that failed or was left out."""
    order = Order(kind="retry", target=assignment)
    done = f"tries {assignment} again"
    return order_and_report(_named(run, store), order, done, resume, store, json)
