"""The gate: the link of one attempt, which closes when the attempt is over.

An agent may leave tasks and threads behind, or hold on to its context. Nothing it says after its attempt
may reach the run, because the run has gone on without it; such a call raises where it is made.
"""

import asyncio
import logging
from typing import Any, Final

from orchestra.agents.failures import misbehaviour, stack_of
from orchestra.errors import AgentFailed, DamageError, OrchestraError, OwnershipError, StoreError
from orchestra.ids import AgentId
from orchestra.ports.agent import Link, ProgressCallback, Report, Saved

_LOG: Final = logging.getLogger("orchestra.agents")


class Gate:
    """A link that can be closed. Used on the loop's thread."""

    __slots__ = ("_agent", "_cancelled", "_link", "_open", "broken")

    def __init__(self, link: Link, agent: AgentId) -> None:
        self._link = link
        self._agent = agent
        self._open = True
        self._cancelled = False
        self.broken: OrchestraError | None = None
        """What kept the engine from taking a report, if that is no fault of the agent's."""

    def send(self, report: Report) -> None:
        self._check()
        try:
            self._link.send(report)
        except (DamageError, OwnershipError, StoreError) as error:
            self.broken = error
            raise

    async def call(self, report: Report) -> Any:
        self._check()
        try:
            return await self._link.call(report)
        except (DamageError, OwnershipError, StoreError) as error:
            self.broken = error
            raise

    def on_save(self, ask: ProgressCallback) -> None:
        """Have the agent asked for its progress; a callback that fails is noted and costs no snapshot."""
        self._check()

        def asked() -> Saved | None:
            if not self._open:
                return None
            try:
                return ask()
            except BaseException as error:  # it waits for nothing, so a cancellation is its own doing too
                _LOG.warning("The agent %r could not say how far it is.\n%s", self._agent, stack_of(error))
                return None

        self._link.on_save(asked)

    def cancel(self) -> None:
        """Refuse everything from now on, in the way a cancelled agent expects."""
        self._open, self._cancelled = False, True

    def close(self) -> None:
        """Refuse everything from now on."""
        self._open = False

    def _check(self) -> None:
        if self._open:
            return
        if self._cancelled:
            raise asyncio.CancelledError("the attempt was cancelled")
        raise late_call(self._agent)


def late_call(agent: AgentId) -> AgentFailed:
    """What a late call is told."""
    return misbehaviour(
        agent,
        "AttemptOver",
        f"the attempt of the agent {agent!r} is over; nothing more is taken from it",
        recoverable=False,
    )
