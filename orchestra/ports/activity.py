"""What is being done, for whoever keeps a record of it: a command, or a question to the browser.

It goes along into tasks and threads. Nothing: a program that uses orchestra as a library.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

ACTIVITY: Final[ContextVar[str]] = ContextVar("orchestra_doing", default="")


@contextmanager
def activity(what: str) -> Iterator[None]:
    """While something is done."""
    before = ACTIVITY.set(what)
    try:
        yield
    finally:
        ACTIVITY.reset(before)
