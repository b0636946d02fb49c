"""Reading runs: what a program asks of a store, with plain text for ids and plain values for an answer.

What only looks back is imported when it is asked for, because playing a run must begin quickly.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from orchestra.app.workbench import Workbench
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.engine.run_state import RunState
from orchestra.errors import UnknownPath
from orchestra.history.archive import Archive
from orchestra.history.references import resolve, resolve_run
from orchestra.model.records import Decision, Wait
from orchestra.model.snapshot import Header, Trigger
from orchestra.model.state import RunStatus
from orchestra.ports.store import RowQuery, RunQuery, RunRow

if TYPE_CHECKING:
    from orchestra.history.blame import Blame
    from orchestra.history.compare import Diff
    from orchestra.history.story import StoryEntry

T = TypeVar("T")


class RunReader:
    """Answers questions about the runs of a store, whoever played them.

    A run is named by its id or the beginning of it, a snapshot by a reference: `RUN@12`, `RUN@last-good`,
    `RUN@phase:NAME`, `RUN` (its head), or a digest. Whatever names nothing raises a `UsageError`.
    """

    manager: CheckpointManager
    workbench: Workbench

    async def _read(self, ask: Callable[[Archive], T]) -> T:
        return await anyio.to_thread.run_sync(ask, self.manager.archive)

    async def runs(
        self, *, workflow: str | None = None, status: RunStatus | Sequence[RunStatus] = (), limit: int = 100
    ) -> list[RunRow]:
        """The runs of the store, newest first."""
        wanted = (status,) if isinstance(status, str) else tuple(status)
        query = RunQuery(workflow=workflow, status=wanted, limit=limit)
        return await self._read(lambda archive: archive.store.runs(query))

    async def state(self, reference: str) -> RunState:
        """A run as it was at a snapshot, by default now."""
        found = await self._read(lambda archive: archive.snapshot(resolve(archive, reference)))
        stored = found.state.workflow.definition is not None
        workflow = (await self.workbench.stored_definition(found.state)).workflow if stored else None
        return RunState(state=found.state, opener=self.manager.archive.value, workflow=workflow)

    async def decisions(self, run: str) -> list[Decision]:
        """Every decision of a run and why it was made, oldest first."""
        return list((await self.state(run)).decisions)

    async def questions(self, run: str) -> dict[str, Wait]:
        """What a run waits for, by name; `answer` and `provide` take these names."""
        return (await self.state(run)).questions

    async def history(self, run: str) -> "list[StoryEntry]":
        """Everything that happened in a run, oldest first, what was rolled back included."""
        from orchestra.history.story import Teller

        def tell(archive: Archive) -> "list[StoryEntry]":
            return list(Teller(archive, archive.run(resolve_run(archive, run))).entries())

        return await self._read(tell)

    async def snapshots(
        self,
        run: str,
        *,
        triggers: Sequence[Trigger] = (),
        phase: str | None = None,
        agent: str | None = None,
        marked: bool | None = None,
        limit: int | None = None,
    ) -> list[Header]:
        """The snapshots of a run, oldest first; with a `limit` the newest ones."""

        def find(archive: Archive) -> list[Header]:
            query = RowQuery(
                run=resolve_run(archive, run),
                triggers=tuple(triggers),
                phase=phase,
                agent=agent,
                marked=marked,
                newest_first=True,
                limit=limit,
            )
            return [archive.header(row) for row in reversed(archive.store.rows(query))]

        return await self._read(find)

    async def compare(self, before: str, after: str) -> "Diff":
        """What differs between two snapshots, of one run or of two."""
        from orchestra.history.compare import diff_documents

        def find(archive: Archive) -> "Diff":
            old, new = archive.documents_of(resolve(archive, before), resolve(archive, after))
            return diff_documents(old, new, archive.loader)

        return await self._read(find)

    async def blame(self, reference: str, path: str) -> "Blame":
        """Which snapshot, and who, last set a place in the state, e.g. `context.findings`."""
        from orchestra.history.blame import blame
        from orchestra.history.paths import BadPath, parse_path

        try:
            steps = parse_path(path)
        except BadPath as bad:
            raise UnknownPath(reference=reference, path=path, reason=str(bad)) from None
        return await self._read(lambda archive: blame(archive, resolve(archive, reference), steps))
