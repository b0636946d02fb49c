"""`orchestra retry`: try an assignment again."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Resume, RunArgument, StoreUrl
from orchestra.cli.play.resume import order_and_report
from orchestra.cli.store import find_run
from orchestra.engine.orders import Order


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
    return order_and_report(find_run(run, store), order, done, resume, store, json)
