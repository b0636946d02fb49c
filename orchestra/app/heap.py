"""The heap of a process that plays runs: what was loaded at its start is not searched for garbage again.

Runs leave hardly any circles of references behind, but make many objects that live for a while: states,
events, rows. Python's collector, as it is set by default, looks through these and through every loaded
module so often that it takes a tenth of the processor time of small runs. How a process is set up is for
whoever started it to say: the commands that play runs call this, and a program that uses `Orchestra` may.
"""

import gc

from orchestra.limits import HEAP_NEW_OBJECTS


def calm_heap() -> None:
    """Look for garbage less often, and never again among what is there now; call it once all is loaded."""
    gc.freeze()
    first, *others = gc.get_threshold()
    if 0 < first < HEAP_NEW_OBJECTS:  # at 0 somebody has switched it off
        gc.set_threshold(HEAP_NEW_OBJECTS, *others)
