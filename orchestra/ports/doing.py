"""What is being done, for whoever keeps a record of it: a command, or a question to the browser.

It goes along into tasks and threads. Nothing: a program that uses orchestra as a library.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

DOING: Final[ContextVar[str]] = ContextVar("orchestra_doing", default="")


@contextmanager
def doing(what: str) -> Iterator[None]:
    """While something is done."""
    before = DOING.set(what)
    try:
        yield
    finally:
        DOING.reset(before)
