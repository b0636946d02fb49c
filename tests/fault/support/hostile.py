"""Opens every case of the hostile corpus in a forked process and says how it went, as JSON lines.

A case must end with a `DamageError`. Here that is told apart from being accepted, from any other error, from
death by a signal (an alarm rings when it takes too long), and from having imported anything. The peak of
memory is told as well. Cases share a process, twenty at a time, as long as all of them behave.
"""

import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Final

from orchestra.errors import DamageError, OrchestraError
from tests.fault.support.hostile_models import corpus

ALARM_SECONDS: Final = 180
TOGETHER: Final = 20
MEGABYTES: Final = 64
"""What a case may take."""
SPACE_BYTES: Final = 2 << 30
"""Room enough for any case to show what it would take, and not for the machine to suffer."""


def opened(check: Callable[[], object]) -> str:
    """How it ended."""
    before = set(sys.modules)
    try:
        check()
    except DamageError as error:
        said = str(error)
        if not said.isprintable() or len(said) > 2000:
            return f"an unprintable or endless message: {said[:80]!r}"
        return "refused" if set(sys.modules) == before else f"imported {set(sys.modules) - before}"
    except OrchestraError as error:
        return f"raised {type(error).__name__}"
    except BaseException as error:
        return f"raised {type(error).__name__}: {error!s:.100}"
    return "accepted"


def in_child(checks: list[Callable[[], object]]) -> tuple[list[str], int]:
    """Outcomes, and megabytes above what there was."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(ALARM_SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (SPACE_BYTES, SPACE_BYTES))
        start = _peak()
        outcomes = [opened(check) for check in checks]
        os.write(writing, json.dumps([outcomes, _peak() - start]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        return [f"died with {os.waitstatus_to_exitcode(status)}"] * len(checks), 0
    outcomes, megabytes = json.loads(said)
    return outcomes, megabytes


def _peak() -> int:
    """The most memory this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Go through the corpus."""
    cases = list(corpus())
    opened(cases[0][1])
    gc.freeze()
    for start in range(0, len(cases), TOGETHER):
        batch = cases[start : start + TOGETHER]
        outcomes, megabytes = in_child([check for _, check in batch])
        behaved = megabytes <= MEGABYTES and set(outcomes) == {"refused"}
        for name, check in batch:
            [outcome], alone = (["refused"], megabytes) if behaved else in_child([check])
            print(json.dumps({"case": name, "outcome": outcome, "megabytes": alone}), flush=True)


if __name__ == "__main__":
    main()
