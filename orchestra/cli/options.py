"""Options that many commands share."""

from typing import Annotated, TypeAlias

from cyclopts import Parameter

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
        help="sqlite:FILE or files:FOLDER; else ORCHESTRA_STORE, else sqlite:outputs/orchestra.db.",
    ),
]
AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", help="Print one JSON document.")]
AsJsonLines: TypeAlias = Annotated[bool, Parameter(name="--json", help="Print one JSON object per line.")]
Full: TypeAlias = Annotated[bool, Parameter(name="--full", help="Cut nothing.")]
Limit: TypeAlias = Annotated[int, Parameter(name="--limit", metavar="N", help="How many at most; 0 is all.")]
