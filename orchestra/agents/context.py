"""The context an agent works with: what it was handed, and the verbs by which it reports."""

import asyncio
import concurrent.futures
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property, wraps
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeAlias, TypeVar

import attrs
from anyio import from_thread
from anyio.lowlevel import EventLoopToken

from orchestra.agents.failures import message_of, misbehaviour
from orchestra.agents.plain_data import copy_mapping, copy_plain
from orchestra.agents.reports import make
from orchestra.ids import AgentId, EffectKey, PhaseId, RunId, TaskId
from orchestra.model.records import Role
from orchestra.ports import agent as port
from orchestra.ports.agent import Assignment, Link, ProgressCallback, Report, RubricLine, Saved

P = ParamSpec("P")
T = TypeVar("T")
Issues: TypeAlias = Sequence[Mapping[str, Any]]
Waiting: TypeAlias = Callable[[Awaitable[Any]], Awaitable[Any]]
MICROS = 1_000_000


class _Part(property, Generic[T]):
    """A part of the assignment, by its name there."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(attrgetter(f"_assignment.{name}"), doc=doc)

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any = None, /) -> T: ...  # type: ignore[override]


def _copy(name: str, doc: str, copy: Callable[[Any], T]) -> "cached_property[T]":
    """A part of the assignment as the agent's own copy, made when it is first asked for."""
    made = cached_property(lambda handed: copy(getattr(handed._assignment, name)))
    made.__doc__ = doc
    return made


class Handed:
    """An assignment as its agent sees it, with the verbs that nobody waits for."""

    def __init__(self, assignment: Assignment, link: Link) -> None:
        self._assignment, self._link = assignment, link

    task = _Part[str]("description", "What to do.")
    task_id = _Part[TaskId]("task", "Under which the run knows the assignment.")
    name = _Part[str]("name", "The specialist's id in its phase.")
    agent = _Part[AgentId]("agent", "Under which the run knows the agent.")
    role = _Part[Role]("role", "The role it plays.")
    run = _Part[RunId]("run", "The run's id.")
    phase = _Part[PhaseId]("phase", "The phase it works in.")
    visit = _Part[int]("visit", "Which visit of the phase this is, from 1.")
    round = _Part[int]("round", "How often feedback has come back in this visit.")
    attempt = _Part[int]("attempt", "Which attempt this is, from 1.")
    recovered = _Part[bool](
        "recovered",
        "Whether it goes on: an earlier attempt was interrupted or failed, or it was rolled back to.",
    )
    resume = _Part[str]("resume", "Where an interrupted agent stood, in words; empty on a first attempt.")
    effect_key = _Part[EffectKey](
        "effect_key", "The idempotency key of the assignment, equal for all its attempts."
    )
    index = _Part[int | None]("index", "The place of `item` in its list.")
    feedback = _Part[tuple[str, ...]]("feedback", "What evaluators said, oldest first.")
    partial = _Part[str]("partial", "Text that was streamed before an interruption.")
    progress = _Part[float]("progress", "The progress that was saved last.")
    step = _Part[str | None]("step", "The step that was saved last.")
    outputs = _Part[tuple[str, ...]]("outputs", "Files that were promised.")
    rubric = _Part[tuple[RubricLine, ...]]("rubric", "What an evaluator is to score.")
    inputs = _copy("inputs", "The run's inputs.", copy_mapping)
    context = _copy("context", "The run's named values.", copy_mapping)
    needs = _copy("needs", "Results of what it needs, by the specialist's id.", copy_mapping)
    settings = _copy("settings", "`with:` of the agent.", copy_mapping)
    results = _copy("results", "What an evaluator judges, by specialist.", copy_mapping)
    item = _copy("item", "The item of `foreach`.", copy_plain)
    private = _copy("private", "What it saved last.", copy_plain)
    project = _copy("project", "The folder the run was started in.", Path)

    @cached_property
    def workspace(self) -> Path:
        """A scratch folder of its own, which lasts over its attempts; made when it is first asked for."""
        folder = Path(self._assignment.workspace)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def fail(self, message: str, *, recoverable: bool = True, details: Any = None) -> NoReturn:
        """End the attempt as failed, saying whether another one may help."""
        raise misbehaviour(self.agent, "Failed", message, recoverable=recoverable, details=details)

    def on_save(self, callback: Callable[[], Any]) -> None:
        """Have `callback` asked when a periodic snapshot is due.

        It returns what to save as private state, or a `Saved` with more, or None for nothing. It is called
        on the loop's thread and must not block.
        """

        def ask() -> Saved | None:
            found = callback()
            if isinstance(found, Saved):
                fields = attrs.asdict(found, recurse=False, filter=lambda field, _: field.name != "kind")
                return make(Saved, **fields)
            return None if found is None else make(Saved, private=found)

        self._link.on_save(ask)

    def emit(self, text: str) -> None:
        """Stream some text."""
        self._link.send(make(port.Emitted, text=text))

    def confidence(self, value: float) -> None:
        """Say how sure the agent is now, from 0 to 1."""
        self._link.send(make(port.Confident, value=value))

    def spent(self, *, tokens_in: int = 0, tokens_out: int = 0, calls: int = 0, cost: float = 0.0) -> None:
        """Count what was used; `cost` in whole units of money."""
        micros = round(cost * MICROS)
        used = make(
            port.Used, api_calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost_micros=micros
        )
        self._link.send(used)


class Context(Handed):
    """What an async agent is handed. Verbs that are awaited return once what they say is durable."""

    def __init__(self, assignment: Assignment, link: Link, wait: Waiting | None = None) -> None:
        """`wait` is for effects that are async, where they cannot be awaited here."""
        super().__init__(assignment, link)
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
            port.Decided,
            description=description,
            rationale=rationale,
            confidence=confidence,
            alternatives=alternatives,
            decision=kind,
            details=details,
        )
        await self._link.call(report)

    async def ask(
        self, question: str, choices: Sequence[str] = (), *, details: Any = None, key: str = ""
    ) -> Any:
        """Ask a person; the answer may take days and outlive this process."""
        asked = make(port.Asked, question=question, choices=choices, details=details, key=key)
        return await self._link.call(asked)

    async def require(self, name: str, reason: str = "") -> Any:
        """A key, file or tool by name; waits until it is there. Its value is never stored."""
        return await self._link.call(make(port.Required, name=name, reason=reason))

    async def limited(self, seconds: float, reason: str = "") -> None:
        """Wait because a provider said so. The wait is durable."""
        await self._link.call(make(port.Limited, seconds=seconds, reason=reason))

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
        `repeatable`. `harmless` names errors after which nothing has happened. The intent is durable before
        the effect is tried, and its outcome before anything follows from it.
        """
        key = f"{self.effect_key}/{name}"
        before = await self._link.call(make(port.EffectBegun, name=name, intent=intent, risky=risky))
        status = before["status"] if before else None
        if status == "done":
            return before.get("outcome")
        if status in ("intended", "unknown") and not repeatable:
            words = (
                f"the outcome of {name!r} is unknown: an earlier attempt began it and never said how it went."
                " Look whether it happened; declare it repeatable=True if doing it twice does no harm"
            )
            details = {"effect": name, "key": key}
            raise misbehaviour(self.agent, "OutcomeUnknown", words, recoverable=False, details=details)
        try:
            outcome = fn(key)
            if inspect.isawaitable(outcome):
                outcome = await (outcome if self._wait is None else self._wait(outcome))
        except Exception as error:  # says that something went wrong, not that nothing happened
            status = "failed" if repeatable or isinstance(error, harmless) else "unknown"
            noted = {"error": type(error).__name__, "message": message_of(error)}
            await self._link.call(make(port.EffectEnded, name=name, status=status, outcome=noted))
            raise
        await self._link.call(make(port.EffectEnded, name=name, status="done", outcome=outcome))
        return outcome

    async def score(
        self, criterion: str, score: float, *, rationale: str = "", issues: Issues = (), feedback: str = ""
    ) -> None:
        """An evaluator finished one criterion."""
        report = make(
            port.Scored,
            criterion=criterion,
            score=score,
            rationale=rationale,
            issues=issues,
            feedback=feedback,
        )
        await self._link.call(report)

    async def write(self, path: str, content: str | bytes, media_type: str = "") -> str:
        """Write an output; gives the path under which people find it."""
        wrote = make(port.Wrote, path=path, content=content, media_type=media_type)
        found: str = await self._link.call(wrote)
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


class BlockingContext(Handed):
    """What a plain function is handed: the same as `Context`, without await. Used in the agent's thread."""

    def __init__(self, assignment: Assignment, link: ThreadLink) -> None:
        super().__init__(assignment, link)
        self._inner = Context(assignment, link, link.wait)

    save = _finished(Context.save)
    decide = _finished(Context.decide)
    ask = _finished(Context.ask)
    require = _finished(Context.require)
    limited = _finished(Context.limited)
    effect = _finished(Context.effect)
    score = _finished(Context.score)
    write = _finished(Context.write)
