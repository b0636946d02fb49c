"""Attempts: one try at an assignment, from its launch to its end, and the time limits of all of a run."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

import anyio
import attrs

from orchestra.engine.inbox import Finished, Inbox, Said, Stored
from orchestra.engine.outputs import check_output_path, media_type
from orchestra.engine.stage import Stage
from orchestra.errors import AgentAbandoned, AgentError, AgentFailed
from orchestra.ids import TaskId
from orchestra.model.frozen import maker
from orchestra.model.workflow import Agent
from orchestra.ports import agent as port

Ring: TypeAlias = Callable[[], None]
_finished: Final = maker(Finished)
_PATIENT = (port.Emitted, port.Confident, port.Used)
"""Reports that may wait for the next turn."""


class Deadlines:
    """Who is to be called when, unless it is taken back before. Belongs to one loop, and has one timer of it.

    Most attempts end long before their limit: a timer for each would be set and cancelled thousands of times.
    """

    def __init__(self) -> None:
        self._due: dict[Ring, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._first = 0.0  # when the timer rings

    def set(self, ring: Ring, seconds: float) -> None:
        """Have `ring` called after so many seconds."""
        when = self._due[ring] = asyncio.get_running_loop().time() + seconds
        if self._timer is None or when < self._first:
            self._arm(when)

    def drop(self, ring: Ring) -> None:
        """Take a call back, if there is one to come."""
        self._due.pop(ring, None)

    def clear(self, ring: Ring) -> float | None:
        """Take a call back; how many seconds were left, None when there was none to come."""
        when = self._due.pop(ring, None)
        return None if when is None else max(0.0, when - asyncio.get_running_loop().time())

    def close(self) -> None:
        """Call nobody any more."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._first = when
        self._timer = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        """Call those who are too late. Those the timer was set for may have ended long ago."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for ring in [each for each, when in self._due.items() if when <= now]:
            del self._due[ring]
            ring()
        if self._due:
            self._arm(min(self._due.values()))


@attrs.define(eq=False, repr=False)
class Attempt:
    """One try at an assignment, and its agent's link to the engine."""

    _stage: Stage
    _inbox: Inbox
    assignment: port.Assignment
    _timeout: float | None  # in seconds
    _under_way: "set[Attempt]"
    _deadlines: Deadlines
    task: TaskId = attrs.field(init=False)
    number: int = attrs.field(init=False)
    blocked: int = 0  # how many durable waits its agent stands in
    unsaid: str = ""  # the end of what it streamed, kept back as it may be the beginning of a secret
    earlier: Counter[Hashable] | None = None  # decisions of earlier attempts, once it makes one
    written: str | None = None  # the output that it wrote last
    retired: bool = False  # its result will be refused
    failure: AgentFailed | None = None  # what it failed with while its agent still worked
    progress: port.ProgressCallback | None = None
    _agent: Agent | None = None
    _placed: bool = False  # whether it holds a slot
    _left: float | None = None  # of the time limit, while it stands still
    _stop: port.Stop | None = None  # asks the agent to stop, once it works
    _over: bool = False

    def __attrs_post_init__(self) -> None:
        self.task, self.number = self.assignment.task, self.assignment.attempt

    def send(self, report: port.Report, /) -> None:
        """Hand a report in without waiting for it."""
        self._check()
        hand_in = self._inbox.leave if isinstance(report, _PATIENT) else self._inbox.post
        hand_in(Said(self, report))

    async def call(self, report: port.Report, /) -> Any:
        """Hand a report in and wait for its answer."""
        self._check()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if isinstance(report, port.Wrote):
            self._inbox.post(await self._store(report, answer))
        else:
            self._inbox.post(Said(self, report, answer))
        return await answer

    def on_save(self, ask: port.ProgressCallback, /) -> None:
        """Have the agent asked for its progress when a periodic snapshot is due."""
        self.progress = ask

    def _check(self) -> None:
        if self._over or self.retired:
            what = f"attempt {self.number} at {self.task} is over; nothing more is taken from it"
            raise AgentFailed.plain(self.assignment.agent, "AttemptOver", what, recoverable=False)

    async def _store(self, report: port.Wrote, answer: "asyncio.Future[Any]") -> Stored:
        """Write an output where people find it; the state hears of it in the next turn."""
        stage, path = self._stage, f"{self.task.rpartition('/')[0]}/{check_output_path(report.path)}"
        stage.redactor.check_name(report.path, what="output")
        content = stage.redactor.content(report.content)
        where = await anyio.to_thread.run_sync(stage.outputs.write, self.assignment.run, path, content)
        return Stored(self, path, content, report.media_type or media_type(path), str(where), answer)

    def begin(self, agent: Agent) -> None:
        """Have the agent work as soon as there is a place; how it ended is handed in."""
        self._agent = agent
        self._under_way.add(self)
        if self._stage.slots is None:
            self._start()
        else:
            self._stage.slots.ask(self._take_place)

    def _take_place(self) -> None:
        self._placed = True
        self._start()

    def _start(self) -> None:
        assert self._agent is not None, "BUG: somebody does it"
        if self._timeout is not None:
            self._deadlines.set(self._halt, self._timeout)
        try:
            self._stop = self._stage.runner.start(self._agent, self.assignment, self, self._end)
        except Exception as error:  # a runner's own mistake is a failed attempt too, and on the record
            self._end(error)

    def _end(self, outcome: port.Result | port.Judgement | BaseException | None) -> None:
        """The agent is done with, in whichever way."""
        self._over = True
        self._stop = None  # which would keep the attempt alive in a circle, and garbage collection busy
        self._under_way.discard(self)
        if self._timeout is not None:
            self._deadlines.drop(self._halt)
        if self._placed and self._stage.slots is not None:
            self._placed = False
            if not self.blocked:
                self._stage.slots.give()
        if outcome is None and not self.retired and self.failure is None:
            outcome = self._failure("Timeout", self._limit_passed())
        elif isinstance(outcome, BaseException) and not isinstance(outcome, AgentError):
            outcome = self._failure(type(outcome).__name__, str(outcome))
        self._inbox.post(_finished(self, outcome))

    def _failure(self, error: str, message: str) -> AgentFailed:
        return AgentFailed.plain(self.assignment.agent, error, message)

    def _limit_passed(self) -> str:
        return f"attempt {self.number} at {self.task} took longer than {self._timeout:g} s"

    def abandonment(self, error: AgentAbandoned) -> AgentFailed:
        """The failure of an agent that was to stop, because its time was up, and could not be stopped."""
        return self._failure(
            "Abandoned", f"{self._limit_passed()}. {error}" if self._timeout is not None else str(error)
        )

    def retire(self) -> None:
        """Stop the agent; what it still says is refused."""
        self.retired = True
        self._halt()

    def fail(self, failure: AgentFailed) -> None:
        """The attempt has failed, whatever its agent still brings; the agent is stopped."""
        if self.failure is None:
            self.failure = failure
            self._halt()

    def _halt(self) -> None:
        if self._stop is not None:
            self._stop()
        elif self._stage.slots is not None and self._stage.slots.withdraw(self._take_place):
            self._end(None)

    def block(self, answer: "asyncio.Future[Any]") -> None:
        """The agent stands in a durable wait: its time limit stands still, and others may have its slot."""
        if answer.done():
            return
        answer.add_done_callback(self._unblock)
        self.blocked += 1
        if self.blocked > 1:
            return
        self._left = self._deadlines.clear(self._halt)
        if self._placed and self._stage.slots is not None:
            self._stage.slots.give()

    def _unblock(self, _answer: "asyncio.Future[Any]") -> None:
        """What the agent waited for is there, or it waits no longer."""
        self.blocked -= 1
        self._inbox.wake()
        if self.blocked:
            return
        if self._left is not None and not self._over:
            self._deadlines.set(self._halt, self._left)
        self._left = None
        if self._placed and self._stage.slots is not None:
            self._stage.slots.take()
