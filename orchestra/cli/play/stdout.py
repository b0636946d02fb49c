"""Standard output belongs to this program while agents play.

What they print, and what programs that they start print, goes to standard error: whoever reads lines or JSON
from standard output gets nothing else. A terminal shows both, so there everything stays as it is.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def own_stdout() -> TextIO:
    """Where this program prints: standard output, also while agents are kept from it."""
    return _Own.out or sys.stdout


class _Own:
    """What is this program's alone at the moment."""

    out: TextIO | None = None


@contextmanager
def redirect_agents() -> Iterator[None]:
    """Keep standard output for `own_stdout`, and let everybody else print to standard error."""
    before = sys.stdout
    if _Own.out is not None or sys.stderr is None or before.isatty():
        yield
        return
    before.flush()
    _Own.out = _split_off(before)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        own, _Own.out, sys.stdout = _Own.out, None, before
        if own is not before:
            os.dup2(own.fileno(), 1)
            own.close()  # raises what `close` of any stream raises, when nobody reads any more


def _split_off(out: TextIO) -> TextIO:
    """A stream of our own to where `out` leads, which then leads to standard error, also for child processes.

    A stream that is not the standard output of the process, as in tests, is left as it is.
    """
    try:
        if out.fileno() != 1:
            return out
        kept = os.dup(1)
    except (OSError, ValueError):
        return out
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.close(kept)
        return out
    return os.fdopen(kept, "w", encoding=out.encoding, errors=out.errors)
