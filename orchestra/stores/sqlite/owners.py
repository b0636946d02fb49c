"""Which runs this store object owns, and who owns the others."""

import os
import threading
from collections.abc import Callable

from orchestra.errors import RunOwned, StoreReadOnly
from orchestra.ids import RunId
from orchestra.ports.store import Claim
from orchestra.stores.sqlite.claims import Locks, open_locks, place_of


class Owners:
    """The kernel locks of one store object, with the claims they stand for."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._locks: Locks | None = None
        self._guard = threading.Lock()
        self._claims: dict[RunId, Claim | None] = {}  # None while a claim is being made

    def holder(self, run: RunId) -> Claim | None:
        """The claim this store holds on a run."""
        return self._claims.get(run)

    def _open(self) -> Locks:
        if self._locks is None:
            self._locks = open_locks(self._path)
        return self._locks

    def take(self, run: RunId, owner: Callable[[], str]) -> None:
        """Lock a run, or raise `RunOwned`; `owner` tells who is named when another process holds it."""
        with self._guard:
            held = self._claims.get(run)
            if run in self._claims:
                raise RunOwned(run=run, owner=held.owner if held else "a claim being made in this process")
            try:
                locked = self._open().take(place_of(run))
            except OSError as error:
                raise StoreReadOnly(place=self._path, reason=error.strerror or str(error)) from error
            if locked:
                self._claims[run] = None
                return
        raise RunOwned(run=run, owner=owner())

    def keep(self, claim: Claim) -> None:
        """The lock that was taken stands for this claim."""
        self._claims[claim.run] = claim

    def free(self, run: RunId) -> None:
        """Unlock a run."""
        with self._guard:
            if run in self._claims and self._locks is not None:
                self._locks.free(place_of(run))
            self._claims.pop(run, None)

    def owned(self, run: RunId) -> bool:
        """Whether anybody alive holds the run, this store included."""
        if run in self._claims:
            return True
        try:
            if self._locks is None and not os.path.exists(self._path):
                return False
            with self._guard:
                return self._open().held(place_of(run))
        except OSError:
            return False

    def close(self) -> None:
        """Let go of everything."""
        with self._guard:
            self._claims.clear()
            if self._locks is not None:
                self._locks.close()
                self._locks = None
