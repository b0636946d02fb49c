"""`orchestra provide`: say that something a run needs is there."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Resume, RunArgument, StoreUrl
from orchestra.cli.play.resume import order_and_report
from orchestra.cli.store import find_run
from orchestra.engine.orders import Order


def provide(
    run: RunArgument,
    name: Annotated[str, Parameter(help="What is there now, e.g. OPENAI_API_KEY.")],
    /,
    *,
    resume: Resume = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Say that something a run needs is there now.

    The value itself is read from the environment by whoever plays the run; it is never stored.
    """
    order = Order(kind="provide", target=name)
    return order_and_report(find_run(run, store), order, f"said that {name} is there", resume, store, json)
