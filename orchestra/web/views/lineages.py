"""Which snapshots a head builds on: rollbacks are looked for once, then only among new snapshots."""

import threading

from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.lineage import jumps, lived_ranges
from orchestra.ids import Digest, RunId
from orchestra.limits import WEB_RUNS_MAX
from orchestra.ports.store import RunRow
from orchestra.web.views.cache import Cached


class _Known:
    """The rollbacks of one run, as far as they were looked for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.upto = -1
        self.jumps: list[tuple[int, int]] = []


class Lives:
    """Tells what was undone."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._held: Cached[tuple[RunId, int], _Known] = Cached(WEB_RUNS_MAX)
        self._stretches: Cached[tuple[RunId, Digest], list[range]] = Cached(WEB_RUNS_MAX)

    def is_undone(self, run: RunRow, seq: int) -> bool:
        """Whether the head does not build on a snapshot, because a later rollback went behind it."""
        try:
            stretches = self._stretches.get((run.run, run.digest), lambda: self._lived(run))
        except DamageError:
            return False
        return not any(seq in stretch for stretch in stretches)

    def _lived(self, run: RunRow) -> list[range]:
        known = self._held.get((run.run, run.created_at), _Known)
        with known.lock:
            known.jumps += jumps(self._archive, run.run, known.upto + 1)
            known.upto = max(known.upto, run.head, *(seq for seq, _ in known.jumps[-1:]))
            return lived_ranges([jump for jump in known.jumps if jump[0] <= run.head], run.head)
