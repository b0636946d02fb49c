"""What a provider's error means for a conversation: wait, ask again, shorten it, ask another, give up."""

from typing import Final, Literal, TypeAlias

import attrs
from pydantic_ai import exceptions as exc

Course: TypeAlias = Literal["wait", "again", "shorten", "other"]
"""`wait` as long as the provider says; `again` a few times, then `other`; `shorten` it once, then `other`,
which is the next model, or failure when there is none."""


@attrs.frozen(kw_only=True)
class ProviderFault:
    """A request that brought no answer: what it was, in words, and what to do about it."""

    name: str  # e.g. RateLimited
    message: str
    course: Course
    seconds: float | None = None  # that the provider asks to wait
    recoverable: bool = True  # whether another attempt may help


_KNOWN: Final[tuple[tuple[type[Exception], str, Course, bool], ...]] = (
    (exc.ModelRateLimitError, "RateLimited", "wait", True),
    (exc.ModelQuotaExceededError, "QuotaExceeded", "other", False),
    (exc.ModelUnavailableError, "ProviderUnavailable", "again", True),
    (exc.ModelServerError, "ProviderFailed", "again", True),
    (exc.ModelConnectionError, "ConnectionLost", "again", True),
    (exc.ModelContextWindowExceededError, "ContextOverflow", "shorten", False),
    (exc.ModelAuthenticationError, "KeyRefused", "other", False),
    (exc.ModelNotFoundError, "UnknownModel", "other", False),
    (exc.ModelRequestRejectedError, "RequestRejected", "other", False),
    (exc.ModelAPIError, "ProviderFailed", "again", True),
    (exc.ContentFilterError, "ContentFiltered", "other", False),
    (exc.UnexpectedModelBehavior, "UnusableAnswer", "again", True),
)


def fault_of(error: Exception) -> ProviderFault | None:
    """What an error of the model library means; None for one that is no provider's doing."""
    for kind, name, course, recoverable in _KNOWN:
        if isinstance(error, kind):
            seconds = getattr(error, "retry_after", None)
            return ProviderFault(
                name=name, message=str(error), course=course, seconds=seconds, recoverable=recoverable
            )
    return None
