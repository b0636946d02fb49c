"""What is refused at the door of the browser, and the status that goes with every error."""

from typing import Final

from orchestra import errors
from orchestra.errors import OrchestraError, UsageError


class NotAllowed(UsageError):
    """The request does not come from whom the browser was opened for."""

    template = "This is not allowed: {reason}. Open the address that `orchestra browse` printed."


class ReadOnly(UsageError):
    """Something was to be changed in a browser that only reads."""

    template = "{action} was refused: the browser only reads. Start it without --read-only."


class BadRequest(UsageError):
    """A request that cannot be understood."""

    template = "The request cannot be understood: {reason}."


class NotFound(UsageError):
    """An address that leads nowhere."""

    template = "There is nothing at {path!r}. See /api/openapi.json for what there is."


class TooLarge(UsageError):
    """A request that brings more than is taken in."""

    template = "The request brings more than {limit} bytes. Send less."


class LongHeaders(TooLarge):
    """A request whose address and headers are longer than is taken in."""

    template = "The address and the headers take more than {limit} bytes. Send less."


class BundleTooLarge(UsageError):
    """A run that is too much for one page."""

    template = (
        "Run {run!r} is too much for one page: it takes {size} bytes and the limit is {limit}. "
        "Write a file with `orchestra export {run}` instead, and open it with `orchestra import`."
    )


class TooSlow(UsageError):
    """A request that took too long to arrive, or an answer that took too long to work out."""

    template = "It took longer than {seconds} s. Try again, or ask for less."


class TooBusy(UsageError):
    """More is asked at once than can be answered."""

    template = "The browser is busy: {reason}. Try again in a moment."


STATUSES: Final[dict[int, tuple[type[OrchestraError], ...]]] = {
    403: (NotAllowed, ReadOnly, errors.StoreReadOnly),
    404: (NotFound, errors.UnknownRun, errors.UnknownSnapshot, errors.UnknownPath),
    408: (TooSlow,),
    409: (
        *(errors.BadOrder, errors.NotResumable, errors.DefinitionChanged, errors.RunExists),
        *(errors.OwnershipError, errors.AgentError),
    ),
    410: (errors.PrunedSnapshot,),
    431: (LongHeaders,),
    413: (TooLarge, BundleTooLarge, errors.SnapshotTooLarge),
    422: (errors.DamageError, errors.ValueRefused),
    503: (TooBusy, errors.StoreError),
    400: (UsageError,),
}
"""The first that fits counts."""


def status_of(error: OrchestraError) -> int:
    """The HTTP status of an error."""
    return next((status for status, kinds in STATUSES.items() if isinstance(error, kinds)), 500)
