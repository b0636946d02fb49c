"""Attempts: one try at an assignment, from its launch to its end."""

import asyncio
from typing import Any

import anyio

from orchestra.engine.inbox import Finished, Inbox, Said, Stored
from orchestra.engine.outputs import checked, media_type
from orchestra.engine.stage import Stage
from orchestra.errors import AgentError, AgentFailed
from orchestra.ids import TaskId
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Confident, Emitted, ProgressCallback, Report, Used, Wrote

_PATIENT = (Emitted, Confident, Used)
"""Reports that may wait for the next turn."""


class Attempt:
    """One try at an assignment, and its agent's link to the engine."""

    def __init__(self, stage: Stage, inbox: Inbox, assignment: Assignment, timeout_us: int | None) -> None:
        self.task: TaskId = assignment.task
        self.number = assignment.attempt
        self.assignment = assignment
        self.blocked = 0  # how many durable waits its agent stands in
        self.unsaid = ""  # the end of what it streamed, kept back as it may be the beginning of a secret
        self._placed = False  # whether it holds a slot
        self.retired = False  # its result will be refused
        self.progress: ProgressCallback | None = None
        self._stage, self._inbox = stage, inbox
        self._timeout = None if timeout_us is None else timeout_us / 1_000_000
        self._scope = anyio.CancelScope()
        self._left: float | None = None  # of the time limit, while it stands still
        self._over = False

    # The link.

    def send(self, report: Report, /) -> None:
        """Hand a report in without waiting for it."""
        self._check()
        if isinstance(report, _PATIENT):
            self._inbox.leave(Said(self, report))
        else:
            self._inbox.post(Said(self, report))

    async def call(self, report: Report, /) -> Any:
        """Hand a report in and wait for its answer."""
        self._check()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if isinstance(report, Wrote):
            self._inbox.post(await self._stored(report, answer))
        else:
            self._inbox.post(Said(self, report, answer))
        return await answer

    def on_save(self, ask: ProgressCallback, /) -> None:
        """Have the agent asked for its progress when a periodic snapshot is due."""
        self.progress = ask

    def _check(self) -> None:
        if self._over or self.retired:
            raise AgentFailed.plain(
                self.assignment.agent,
                "AttemptOver",
                f"attempt {self.number} at {self.task} is over; nothing more is taken from it",
                recoverable=False,
            )

    async def _stored(self, report: Wrote, answer: "asyncio.Future[Any]") -> Stored:
        """Write an output where people find it; the state hears of it in the next turn."""
        path = f"{self.task.rpartition('/')[0]}/{checked(report.path)}"
        content = self._stage.redactor.content(report.content)
        run = self.assignment.run
        where = await anyio.to_thread.run_sync(self._stage.outputs.write, run, path, content)
        kind = report.media_type or media_type(path)
        return Stored(self, path, content, kind, str(where), answer)

    # Its life.

    async def carry(self, agent: Agent) -> None:
        """Have the agent work, and hand in how it ended."""
        try:
            outcome: Any = await self._timed(agent)
        except AgentError as error:
            outcome = error
        except Exception as error:  # a runner's own mistake is a failed attempt too, and on the record
            outcome = _failed(self.assignment.agent, error)
        finally:
            self._over = True
        self._inbox.post(Finished(self, outcome))

    async def _timed(self, agent: Agent) -> Any:
        with self._scope:
            if self._stage.slots is None:
                return await self._worked(agent)
            async with self._stage.slots:
                self._placed = True
                try:
                    return await self._worked(agent)
                finally:
                    self._placed = False
                    if self.blocked:
                        self._stage.slots.take()
        if self.retired:
            return None
        raise AgentFailed.plain(
            self.assignment.agent,
            "Timeout",
            f"attempt {self.number} at {self.task} took longer than {self._timeout:g} s",
            recoverable=True,
        )

    async def _worked(self, agent: Agent) -> Any:
        if self._timeout is not None:
            self._scope.deadline = anyio.current_time() + self._timeout
        return await self._stage.runner.run(agent, self.assignment, self)

    def retire(self) -> None:
        """Stop the agent; what it still says is refused."""
        self.retired = True
        self._scope.cancel()

    def block(self, answer: "asyncio.Future[Any]") -> None:
        """The agent stands in a durable wait: its time limit stands still, and others may have its slot."""
        if answer.done():
            return
        answer.add_done_callback(self._unblock)
        self.blocked += 1
        if self.blocked > 1:
            return
        if self._timeout is not None:
            self._left = max(0.0, self._scope.deadline - anyio.current_time())
            self._scope.deadline = float("inf")
        if self._placed and self._stage.slots is not None:
            self._stage.slots.give()

    def _unblock(self, _answer: "asyncio.Future[Any]") -> None:
        """What the agent waited for is there, or it waits no longer."""
        self.blocked -= 1
        if self.blocked:
            return
        if self._left is not None:
            self._scope.deadline = anyio.current_time() + self._left
            self._left = None
        if self._placed and self._stage.slots is not None:
            self._stage.slots.take()
        self._inbox.wake()


def _failed(agent: str, error: Exception) -> AgentFailed:
    return AgentFailed.plain(agent, type(error).__name__, str(error))
