"""Options that many commands share."""

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from orchestra.ports.store import DEFAULT_STORE, STORE_VARIABLE

RunArgument: TypeAlias = Annotated[
    str, Parameter(help="A run's id, or any beginning of it that fits no other run.")
]
Reference: TypeAlias = Annotated[
    str,
    Parameter(help="RUN, RUN@12, RUN@-1, RUN@head, RUN@last-good, RUN@phase:NAME, a digest or a UUID."),
]
PathArgument: TypeAlias = Annotated[
    str, Parameter(help='A place in a state: status, decisions[-1].rationale, context["a name"].')
]
StoreUrl: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--store",
        metavar="URL",
        help=f"sqlite:FILE or files:FOLDER; else {STORE_VARIABLE}, else {DEFAULT_STORE}.",
    ),
]
AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", help="Print one JSON document.")]
AsJsonLines: TypeAlias = Annotated[bool, Parameter(name="--json", help="Print one JSON object per line.")]
Full: TypeAlias = Annotated[bool, Parameter(name="--full", help="Cut nothing.")]
Limit: TypeAlias = Annotated[int, Parameter(name="--limit", metavar="N", help="How many at most; 0 is all.")]
Quiet: TypeAlias = Annotated[bool, Parameter(name="--quiet", help="Print only what came of it.")]
Reason: TypeAlias = Annotated[str, Parameter(name="--reason", metavar="TEXT", help="Why, for the record.")]
Resume: TypeAlias = Annotated[
    bool, Parameter(name="--resume", help="Go on with the run here when nobody plays it.")
]
Wait: TypeAlias = Annotated[bool, Parameter(help="Stay and wait for answers instead of ending with 3.")]
WorkflowFile: TypeAlias = Annotated[
    Path | None, Parameter(name="--workflow", metavar="FILE", help="Go on with this workflow file.")
]
Yes: TypeAlias = Annotated[bool, Parameter(name="--yes", help="Do not ask.")]
