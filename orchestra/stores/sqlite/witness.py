"""Whether acknowledged writes are gone: the anchor and the log against the database."""

from collections.abc import Iterator

import apsw

from orchestra.errors import LostCommits, OrchestraError
from orchestra.ports.store import Problem
from orchestra.stores.sqlite import wal
from orchestra.stores.sqlite.anchor import Anchor
from orchestra.stores.sqlite.appending import COMMITS, newest_no
from orchestra.stores.sqlite.columns import fact_crc
from orchestra.stores.sqlite.connection import Pool
from orchestra.stores.sqlite.opening import unwritable
from orchestra.stores.sqlite.statements import SQL, ask


def _length_of_log(connection: apsw.Connection) -> int:
    # A log is read when it is first needed; asking for its length does not count as need.
    ask(connection, SQL["newest_no"])
    return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]


class Witness:
    """Notes what was acknowledged, and notices when it is not there."""

    def __init__(self, pool: Pool, anchor: Anchor) -> None:
        self._pool = pool
        self._anchor = anchor
        self._wal = pool.settings.beside("-wal")

    def note(self, no: int) -> None:
        """Commit `no` was acknowledged."""
        self._anchor.write(no)

    def mark(self) -> None:
        """A write without a number was acknowledged."""
        frames = self._pool.frames
        salts = wal.salts_of(self._wal, frames) if frames > 0 else None
        if salts is not None:
            self._anchor.write_mark(frames, salts)

    def refuse_loss(self) -> None:
        """Raise when acknowledged writes are gone."""
        newest, loss = self._losses()
        if loss is not None:
            last = max(self._anchor.newest(), newest + 1)
            raise LostCommits(place=self._pool.place, first=newest + 1, last=last, reason=loss)

    def _losses(self) -> tuple[int, str | None]:
        promised = self._anchor.newest()  # asked first: another process may commit between the two
        newest = self._pool.read(newest_no, together=True)
        if promised > newest:
            return newest, "The database or its log was exchanged, cut off or removed."
        mark = self._anchor.mark()
        frames = self._valid_frames()
        reason = wal.lost(self._wal, mark, frames) if mark is not None and frames is not None else None
        return newest, reason and f"{reason[0].upper()}{reason[1:]}."

    def _valid_frames(self) -> int | None:
        """How many frames of the log SQLite accepts; None when it cannot be asked."""
        if self._pool.read_only is not None:
            return None
        return self._pool.alone(_length_of_log)

    def problems(self) -> Iterator[Problem]:
        """What is missing, for a check."""
        try:
            newest, loss = self._losses()
            if loss is not None:
                last = self._anchor.newest()
                reason = f"{loss} The newest commit is {newest}, and {last} was acknowledged."
                yield Problem(what="file", where=self._pool.place, reason=reason)
            frames = self._valid_frames()
            cut = wal.cut_off(self._wal, frames) if frames is not None else None
            if cut is not None:
                yield Problem(what="file", where=str(self._wal), reason=cut)
        except OrchestraError as error:
            yield Problem(what="file", where=self._pool.place, reason=str(error))

    def accept(self) -> int:
        """Take the database as it is from now on. Returns how many commits are given up.

        The numbers of what was lost are not given out again: whoever remembers them must not take a new
        commit for an old one.
        """
        last = self._anchor.newest()

        def work(connection: apsw.Connection) -> int:
            newest = newest_no(connection)
            raised = max(newest, last)
            connection.execute(SQL["set_counter"], (COMMITS, raised, fact_crc(COMMITS, raised)))
            return raised - newest

        # The store may be open for reading only, because opening it for writing is refused.
        pool = Pool(self._pool.settings, read_only=unwritable(self._pool.settings))
        try:
            given_up = pool.write(work)
            pool.trusted = True
        finally:
            pool.close()
        self._anchor.write_mark(0, bytes(8))
        return given_up

    def close(self) -> None:
        """Let the anchor go."""
        self._anchor.close()
