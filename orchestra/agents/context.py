"""The context an agent works with: what it was handed, and the verbs by which it reports."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

import attrs
from anyio import from_thread
from anyio.lowlevel import EventLoopToken

from orchestra.agents.effects import EffectCall, Waiting, carry_out
from orchestra.agents.failures import misbehaviour
from orchestra.agents.plain_data import copy_mapping, copy_plain
from orchestra.agents.reports import make
from orchestra.ids import AgentId, EffectKey, PhaseId, RunId, TaskId
from orchestra.model.records import Role
from orchestra.ports.agent import (
    Asked,
    Assignment,
    Confident,
    Decided,
    Emitted,
    Limited,
    Link,
    ProgressCallback,
    Report,
    Required,
    RubricLine,
    Saved,
    Scored,
    Used,
    Wrote,
)


class Handed:
    """An assignment as its agent sees it."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment

    @property
    def task(self) -> str:
        """What to do."""
        return self._assignment.description

    @property
    def task_id(self) -> TaskId:
        """Under which the run knows the assignment."""
        return self._assignment.task

    @property
    def name(self) -> str:
        """The specialist's id in its phase."""
        return self._assignment.name

    @property
    def agent(self) -> AgentId:
        """Under which the run knows the agent."""
        return self._assignment.agent

    @property
    def role(self) -> Role:
        """The role it plays."""
        return self._assignment.role

    @property
    def run(self) -> RunId:
        """The run's id."""
        return self._assignment.run

    @property
    def phase(self) -> PhaseId:
        """The phase it works in."""
        return self._assignment.phase

    @property
    def visit(self) -> int:
        """Which visit of the phase this is, from 1."""
        return self._assignment.visit

    @property
    def round(self) -> int:
        """How often feedback has come back in this visit."""
        return self._assignment.round

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._assignment.attempt

    @property
    def recovered(self) -> bool:
        """Whether it goes on: an earlier attempt was interrupted or failed, or it was rolled back to."""
        return self._assignment.recovered

    @property
    def resume(self) -> str:
        """Where an interrupted agent stood, in words; empty on a first attempt."""
        return self._assignment.resume

    @property
    def effect_key(self) -> EffectKey:
        """The idempotency key of the assignment, equal for all its attempts."""
        return self._assignment.effect_key

    @property
    def index(self) -> int | None:
        """The place of `item` in its list."""
        return self._assignment.index

    @property
    def feedback(self) -> tuple[str, ...]:
        """What evaluators said, oldest first."""
        return self._assignment.feedback

    @property
    def partial(self) -> str:
        """Text that was streamed before an interruption."""
        return self._assignment.partial

    @property
    def progress(self) -> float:
        """The progress that was saved last."""
        return self._assignment.progress

    @property
    def step(self) -> str | None:
        """The step that was saved last."""
        return self._assignment.step

    @property
    def outputs(self) -> tuple[str, ...]:
        """Files that were promised."""
        return self._assignment.outputs

    @property
    def rubric(self) -> tuple[RubricLine, ...]:
        """What an evaluator is to score."""
        return self._assignment.rubric

    @cached_property
    def workspace(self) -> Path:
        """A scratch folder of its own, which lasts over its attempts; made when it is first asked for."""
        folder = Path(self._assignment.workspace)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @cached_property
    def project(self) -> Path:
        """The folder the run was started in."""
        return Path(self._assignment.project)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The run's inputs."""
        return copy_mapping(self._assignment.inputs)

    @cached_property
    def context(self) -> dict[str, Any]:
        """The run's named values."""
        return copy_mapping(self._assignment.context)

    @cached_property
    def needs(self) -> dict[str, Any]:
        """Results of what it needs, by the specialist's id."""
        return copy_mapping(self._assignment.needs)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """`with:` of the agent."""
        return copy_mapping(self._assignment.settings)

    @cached_property
    def results(self) -> dict[str, Any]:
        """What an evaluator judges, by specialist."""
        return copy_mapping(self._assignment.results)

    @cached_property
    def item(self) -> Any:
        """The item of `foreach`."""
        return copy_plain(self._assignment.item)

    @cached_property
    def private(self) -> Any:
        """What it saved last."""
        return copy_plain(self._assignment.private)


P = ParamSpec("P")
T = TypeVar("T")
Issues = Sequence[Mapping[str, Any]]
MICROS = 1_000_000


class _Failing(Handed):
    """The verb that reaches nobody but the runner."""

    def fail(self, message: str, *, recoverable: bool = True, details: Any = None) -> NoReturn:
        """End the attempt as failed, saying whether another one may help."""
        raise misbehaviour(self.agent, "Failed", message, recoverable=recoverable, details=details)


async def wait_for(work: Awaitable[T]) -> T:
    """What comes of something async."""
    return await work


class Context(_Failing):
    """What an async agent is handed. Verbs that are awaited return once what they say is durable."""

    def __init__(self, assignment: Assignment, link: Link, wait: Waiting = wait_for) -> None:
        super().__init__(assignment)
        self._link = link
        self._wait = wait

    async def save(
        self,
        private: Any = None,
        *,
        progress: float | None = None,
        step: str | None = None,
        step_number: int | None = None,
        blockers: Issues | None = None,
    ) -> None:
        """A milestone: what `ctx.private` will be after an interruption, and how far the work is."""
        report = make(
            Saved, private=private, progress=progress, step=step, step_number=step_number, blockers=blockers
        )
        await self._link.call(report)

    def on_save(self, callback: Callable[[], Any]) -> None:
        """Have `callback` asked when a periodic snapshot is due.

        It returns what to save as private state, or a `Saved` with more, or None for nothing. It is called
        on the loop's thread and must not block.
        """

        def ask() -> Saved | None:
            found = callback()
            return None if found is None else make(Saved, **_saved(found))

        self._link.on_save(ask)

    def emit(self, text: str) -> None:
        """Stream some text."""
        self._link.send(make(Emitted, text=text))

    async def decide(
        self,
        description: str,
        *,
        rationale: str = "",
        confidence: float | None = None,
        alternatives: Sequence[str] = (),
        kind: str = "agent_decision",
        details: Any = None,
    ) -> None:
        """Put a decision on the record."""
        report = make(
            Decided,
            description=description,
            rationale=rationale,
            confidence=confidence,
            alternatives=alternatives,
            decision=kind,
            details=details,
        )
        await self._link.call(report)

    def confidence(self, value: float) -> None:
        """Say how sure the agent is now, from 0 to 1."""
        self._link.send(make(Confident, value=value))

    async def ask(
        self, question: str, choices: Sequence[str] = (), *, details: Any = None, key: str = ""
    ) -> Any:
        """Ask a person; the answer may take days and outlive this process."""
        return await self._link.call(
            make(Asked, question=question, choices=choices, details=details, key=key)
        )

    async def require(self, name: str, reason: str = "") -> Any:
        """A key, file or tool by name; waits until it is there. Its value is never stored."""
        return await self._link.call(make(Required, name=name, reason=reason))

    async def limited(self, seconds: float, reason: str = "") -> None:
        """Wait because a provider said so. The wait is durable."""
        await self._link.call(make(Limited, seconds=seconds, reason=reason))

    async def effect(
        self,
        name: str,
        fn: Callable[[str], Any],
        *,
        intent: Any = None,
        risky: bool = False,
        repeatable: bool = False,
        harmless: tuple[type[Exception], ...] = (),
    ) -> Any:
        """Do something to the outside world at most once over all attempts; gives its outcome.

        `fn` gets an idempotency key. When an earlier attempt has done it, its outcome is returned and `fn`
        not called. When an earlier attempt was interrupted in the middle, it is called again only if it is
        `repeatable`. `harmless` names errors after which nothing has happened.
        """
        effect = EffectCall(
            agent=self.agent,
            name=name,
            key=f"{self.effect_key}/{name}",
            do=fn,
            intent=intent,
            risky=risky,
            repeatable=repeatable,
            harmless=harmless,
        )
        return await carry_out(effect, self._link, self._wait)

    def spent(self, *, tokens_in: int = 0, tokens_out: int = 0, calls: int = 0, cost: float = 0.0) -> None:
        """Count what was used; `cost` in whole units of money."""
        micros = round(cost * MICROS)
        used = make(Used, api_calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost_micros=micros)
        self._link.send(used)

    async def score(
        self,
        criterion: str,
        score: float,
        *,
        rationale: str = "",
        issues: Issues = (),
        feedback: str = "",
    ) -> None:
        """An evaluator finished one criterion."""
        report = make(
            Scored, criterion=criterion, score=score, rationale=rationale, issues=issues, feedback=feedback
        )
        await self._link.call(report)

    async def write(self, path: str, content: str | bytes, media_type: str = "") -> str:
        """Write an output; gives the path under which people find it."""
        found: str = await self._link.call(make(Wrote, path=path, content=content, media_type=media_type))
        return found


class ThreadLink:
    """The link as an agent's thread sees it: every use blocks until the loop has dealt with it.

    Its `call` never suspends, so a verb of `Context` on top of it runs from begin to end in the thread.
    """

    def __init__(self, link: Link, token: EventLoopToken) -> None:
        self._link = link
        self._token = token
        self._waiting: set[asyncio.Task[Any]] = set()

    def send(self, report: Report) -> None:
        """Hand a report in; blocks until the loop has taken it, so that a flood is slowed down."""
        self._used(self._link.send, report)

    async def call(self, report: Report) -> Any:
        """Hand a report in and block until its answer is there."""
        return await self.wait(self._link.call(report))

    async def wait(self, work: Awaitable[T]) -> T:
        """Have something async done by the loop, and block until it is."""
        try:
            return from_thread.run(self._noted, work, token=self._token)
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError("the attempt was cancelled") from None

    def on_save(self, ask: ProgressCallback) -> None:
        """Have the agent asked for its progress, on the loop's thread."""
        self._used(self._link.on_save, ask)

    def _used(self, use: Callable[[T], None], what: T) -> None:
        refusal = from_thread.run_sync(_refusal, use, what, token=self._token)
        if refusal is not None:
            raise refusal

    async def _noted(self, work: Awaitable[T]) -> T:
        task = asyncio.current_task()
        assert task is not None, "BUG: a call from a thread is a task of the loop"
        self._waiting.add(task)
        try:
            return await work
        finally:
            self._waiting.discard(task)

    def interrupt(self) -> None:
        """Wake the thread if it waits for an answer. Used on the loop's thread."""
        for task in self._waiting:
            task.cancel()


def _saved(found: Any) -> dict[str, Any]:
    """What a callback returned, as fields of a `Saved`."""
    if not isinstance(found, Saved):
        return {"private": found}
    return {field.name: getattr(found, field.name) for field in attrs.fields(Saved) if field.name != "kind"}


def _refusal(use: Callable[[T], None], what: T) -> asyncio.CancelledError | None:
    """What a cancelled attempt is told; raised on the loop's thread, the loop would take it for its own."""
    try:
        use(what)
    except asyncio.CancelledError as refusal:
        return refusal
    return None


def _finished(
    verb: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[BlockingContext, P], T]":
    """A verb that has come to its end when it returns."""

    @wraps(verb)
    def blocking(self: "BlockingContext", /, *args: P.args, **kwargs: P.kwargs) -> T:
        work = verb(self._inner, *args, **kwargs)
        try:
            work.send(None)
        except StopIteration as end:
            value: T = end.value
            return value
        raise AssertionError(f"BUG: {verb.__name__} must not wait for anything but its link")

    return blocking


def _same(
    verb: Callable[Concatenate[Context, P], None],
) -> "Callable[Concatenate[BlockingContext, P], None]":
    @wraps(verb)
    def blocking(self: "BlockingContext", /, *args: P.args, **kwargs: P.kwargs) -> None:
        verb(self._inner, *args, **kwargs)

    return blocking


class BlockingContext(_Failing):
    """What a plain function is handed: the same as `Context`, without await. Used in the agent's thread."""

    def __init__(self, assignment: Assignment, link: ThreadLink) -> None:
        super().__init__(assignment)
        self._inner = Context(assignment, link, link.wait)

    save = _finished(Context.save)
    decide = _finished(Context.decide)
    ask = _finished(Context.ask)
    require = _finished(Context.require)
    limited = _finished(Context.limited)
    effect = _finished(Context.effect)
    score = _finished(Context.score)
    write = _finished(Context.write)
    emit = _same(Context.emit)
    confidence = _same(Context.confidence)
    spent = _same(Context.spent)
    on_save = _same(Context.on_save)
