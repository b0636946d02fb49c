"""What is being done now, for the audit: a command, or a request to the browser.

Tasks and threads inherit it. It is empty in a program that uses orchestra as a library.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

ACTIVITY: Final[ContextVar[str]] = ContextVar("orchestra_doing", default="")


@contextmanager
def activity(what: str) -> Iterator[None]:
    """Say what is being done inside the block."""
    before = ACTIVITY.set(what)
    try:
        yield
    finally:
        ACTIVITY.reset(before)
