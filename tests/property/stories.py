"""Runs that could have happened, by seed: turn by turn, each event legal in the state it meets."""

import random
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeVar, get_args

from orchestra.codec.address import Addresser
from orchestra.codec.values import contribution, freeze
from orchestra.ids import AgentId, Digest, EffectKey, Instant, PhaseId, TaskId, run_id
from orchestra.limits import LARGE_VALUE_BYTES
from orchestra.model import events as ev
from orchestra.model import records
from orchestra.model.apply.apply import apply
from orchestra.model.reducers import REDUCERS
from orchestra.model.state import State, WorkflowRef
from orchestra.model.value import Value
from orchestra.testing.clock import SECOND, START

C = TypeVar("C")

PLAIN: Final = Addresser()

_AGENTS: Final = tuple(AgentId(name) for name in ("atlas", "mercury", "apollo", "héra"))
_PHASES: Final = tuple(PhaseId(name) for name in ("plan", "build", "review"))
_WORDS: Final = (
    "alpha",
    "β-ray",
    "c\0d",
    "line\nbreak",
    "\u202ebidi",
    "\x1b[31m",
    "日本",
    "🎼",
    "more words",
)
_WAITS: Final = get_args(records.WaitKind)


def random_value(rng: random.Random, depth: int = 0) -> Any:
    """Some plain data."""
    pick = rng.randrange(12 if depth < 3 else 8)
    if pick >= 8:
        inner = [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
        keyed = {f"k{rng.randrange(9)}": each for each in inner}
        return (inner, tuple(inner), keyed, {len(inner), "x"})[pick - 8]
    moment = datetime(2026, 11, 15, 14, 30, tzinfo=timezone(timedelta(minutes=rng.randrange(-700, 700))))
    number = random_number(rng)
    return [None, True, rng.randrange(1 << 70), number, random_text(rng), rng.randbytes(9), moment, 7][pick]


def random_number(rng: random.Random) -> float:
    """A number as callers write it: mostly a float, at times an integer or something odd."""
    odd = (0, 1, -0.0, 0.0, 1.0, 1e300, float("inf"))
    return rng.choice(odd) if rng.random() < 0.3 else round(rng.random(), 3)


def random_text(rng: random.Random) -> str:
    """Some words."""
    return " ".join(rng.choices(_WORDS, k=rng.randrange(1, 30)))


class Story:
    """Writes a run by seed: `opening` begins it, `turn` gives the events of a next turn for a state."""

    def __init__(self, seed: int, addresser: Addresser = PLAIN) -> None:
        self.rng = random.Random(seed)
        self.addresser = addresser
        self.made = 0
        self.at = START

    def opening(self, run: str | None = None) -> tuple[ev.RunStarted, ...]:
        """The first turn of the run."""
        thresholds = tuple(sorted(self.rng.sample((0.25, 0.5, 0.75, 1), self.rng.randrange(4))))
        name = run_id(run or f"story-{self.rng.randrange(10**9)}")
        return (
            ev.RunStarted(
                at=self._now(),
                run=name,
                workflow=WorkflowRef(name="story", digest=self._digest()),
                inputs=self._value(),
                thresholds=thresholds,
                environment=records.Environment(version="1", python="3"),
            ),
        )

    def turn(self, state: State) -> tuple[ev.Event, ...]:
        """One to four events, each legal after the one before it."""
        events: list[ev.Event] = []
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            event = self.event(state)
            events.append(event)
            state = apply(state, event)
        return tuple(events)

    def event(self, state: State) -> ev.Event:
        """One event that is legal in `state`."""
        while True:
            event: ev.Event | None = self.rng.choice(_MAKERS)(self, state)
            if event is not None:
                return event

    def _now(self) -> Instant:
        self.at = Instant(self.at + self.rng.choice((0, 1, 117, SECOND)))
        return self.at

    def _name(self, what: str) -> str:
        self.made += 1
        return f"{what}-{self.made}"

    def _digest(self) -> Digest:
        return Digest(self.rng.randbytes(32))

    def _value(self) -> Value | None:
        if self.rng.random() < 0.01:
            return freeze({"blob": self.rng.randbytes(LARGE_VALUE_BYTES)}, self.addresser)
        return None if self.rng.random() < 0.3 else freeze(random_value(self.rng), self.addresser)

    def _maybe(self, value: C) -> C | None:
        return value if self.rng.random() < 0.5 else None

    def _agent(self) -> AgentId:
        return self.rng.choice(_AGENTS)

    def _phase(self, state: State) -> PhaseId:
        return state.cursor.phase or _PHASES[0]

    def _known(self, names: Iterator[str]) -> str | None:
        found = list(names)
        return self.rng.choice(found) if found else None

    def _failure(self) -> records.Failure:
        text = random_text(self.rng)
        return records.Failure(error="Boom", message=text, at=self.at, stack=text, details=self._value())

    # Work.

    def planned(self, state: State) -> ev.Event | None:
        reusable = (name for name, task in state.tasks.items() if task.status != "completed")
        again = self._known(reusable) if self.rng.random() < 0.1 else None
        return ev.TaskPlanned(
            at=self._now(),
            task=TaskId(again or self._name("task")),
            agent=self._agent(),
            phase=self._phase(state),
            description=random_text(self.rng),
            effect_key=self._maybe(EffectKey(self._name("key"))),
            key=self._maybe(self._digest()),
        )

    def launched(self, state: State) -> ev.Event | None:
        if (task := self._open(state)) is None:
            return None
        role: Any = self.rng.choice(("atlas", "mercury", "apollo"))
        attempt = state.tasks[task].attempts + 1
        return ev.AgentLaunched(at=self._now(), agent=self._agent(), task=task, attempt=attempt, role=role)

    def _open(self, state: State) -> TaskId | None:
        found = self._known(n for n, task in state.tasks.items() if task.status in ("pending", "running"))
        return None if found is None else TaskId(found)

    def milestone(self, state: State) -> ev.Event | None:
        if (agent := self._known(state.agents.keys())) is None:
            return None
        blocker = records.Blocker(by="x", reason=random_text(self.rng), at=self.at)
        return ev.MilestoneReached(
            at=self._now(),
            agent=AgentId(agent),
            progress=self._maybe(random_number(self.rng)),
            step=self._maybe(random_text(self.rng)),
            step_number=self._maybe(self.rng.randrange(9)),
            private=self._value(),
            blockers=self._maybe((blocker,) * self.rng.randrange(3)),
        )

    def emitted(self, state: State) -> ev.Event | None:
        agent = self._known(state.agents.keys())
        text = random_text(self.rng)
        return None if agent is None else ev.TextEmitted(at=self._now(), agent=AgentId(agent), text=text)

    def completed(self, state: State) -> ev.Event | None:
        if (task := self._open(state)) is None:
            return None
        sure, output = self._maybe(random_number(self.rng)), self._maybe("out.md")
        return ev.TaskCompleted(
            at=self._now(), task=task, result=self._value(), confidence=sure, output=output
        )

    def failed(self, state: State) -> ev.Event | None:
        task, final = self._open(state), self.rng.random() < 0.3
        if task is None:
            return None
        return ev.TaskFailed(at=self._now(), task=task, failure=self._failure(), final=final)

    def retired(self, state: State) -> ev.Event | None:
        task = self._open(state)
        outcome: Any = self.rng.choice(("skipped", "retired", "abandoned"))
        return None if task is None else ev.TaskRetired(at=self._now(), task=task, outcome=outcome)

    # Judgement and content.

    def decided(self, state: State) -> ev.Event | None:
        decision = records.Decision(
            at=self.at,
            agent=self._agent(),
            kind="choice",
            description=random_text(self.rng),
            confidence=self._maybe(random_number(self.rng)),
            alternatives=tuple(random_text(self.rng) for _ in range(self.rng.randrange(3))),
            details=self._value(),
        )
        return ev.DecisionMade(at=self._now(), decision=decision)

    def confident(self, state: State) -> ev.Event | None:
        return ev.ConfidenceReported(
            at=self._now(), value=random_number(self.rng), agent=self._maybe(self._agent())
        )

    def posted(self, state: State) -> ev.Event | None:
        again = self._known(state.messages.keys()) if self.rng.random() < 0.1 else None
        return ev.MessagePosted(
            at=self._now(),
            message=again or self._name("message"),
            role=self.rng.choice(("user", "assistant", "system", "tool")),
            agent=self._maybe(self._agent()),
            parts=self._parts(),
            status=self.rng.choice(("streaming", "complete", "error")),
        )

    def _parts(self) -> tuple[records.Part, ...]:
        kinds = self.rng.choices(get_args(records.PartKind), k=self.rng.randrange(3))
        return tuple(
            records.Part(kind=kind, text=random_text(self.rng), data=self._value()) for kind in kinds
        )

    def streamed(self, state: State) -> ev.Event | None:
        name = self._known(n for n, message in state.messages.items() if message.status == "streaming")
        if name is None:
            return None
        text = random_text(self.rng)
        status: Any = self.rng.choice(("streaming", "streaming", "complete", "error"))
        return ev.MessageStreamed(
            at=self._now(), message=name, text=text, parts=self._parts()[:1], status=status
        )

    def contributed(self, state: State) -> ev.Event | None:
        reducer = self.rng.choice(REDUCERS)
        value = self._number() if reducer in ("sum", "max") else random_value(self.rng)
        entry = {f"k{self.rng.randrange(40)}": value} if reducer == "merge" else value
        given = contribution(reducer, entry, self.addresser)
        name = f"{reducer}-{self.rng.randrange(2)}"
        return ev.ContextContributed(at=self._now(), name=name, contribution=given)

    def _number(self) -> float:
        return random_number(self.rng)

    def written(self, state: State) -> ev.Event | None:
        size = self.rng.randrange(1 << 40)
        output = records.Output(digest=self._digest(), media_type="text/plain", size=size, at=self.at)
        return ev.OutputWritten(at=self._now(), path=f"out/{self.rng.randrange(50)}.md", output=output)

    def scored(self, state: State) -> ev.Event | None:
        score = records.Score(criterion=self.rng.choice(_WORDS), score=self._number(), weight=self._number())
        issue = records.Issue(description=random_text(self.rng), severity=self.rng.choice(("low", "high")))
        return ev.CriterionScored(
            at=self._now(),
            evaluation=f"evaluation-{self.rng.randrange(3)}",
            agent=self._agent(),
            phase=self._phase(state),
            score=score,
            round=self.rng.choice((1, 1, 2)),
            issues=(issue,) * self.rng.randrange(2),
            feedback=random_text(self.rng),
        )

    def evaluated(self, state: State) -> ev.Event | None:
        verdict = records.Verdict(kind=self.rng.choice(("accept", "revise", "reject")), score=self._number())
        return ev.EvaluationCompleted(
            at=self._now(),
            evaluation=f"evaluation-{self.rng.randrange(3)}",
            agent=self._agent(),
            phase=self._phase(state),
            verdict=verdict,
        )

    # Waits, effects and the run itself.

    def wait_opened(self, state: State) -> ev.Event | None:
        task = self._known(state.tasks.keys())
        return ev.WaitOpened(
            at=self._now(),
            wait=self._name("wait"),
            waits_for=self.rng.choice(_WAITS),
            text=random_text(self.rng),
            agent=self._maybe(self._agent()),
            task=None if task is None else TaskId(task),
            choices=tuple(self.rng.choices(_WORDS, k=2)),
            details=self._value(),
            until=self._maybe(self.at),
        )

    def wait_closed(self, state: State) -> ev.Event | None:
        name = self._known(n for n, wait in state.waits.items() if wait.status == "open")
        return None if name is None else ev.WaitClosed(at=self._now(), wait=name, answer=self._value())

    def intended(self, state: State) -> ev.Event | None:
        task = TaskId(self._known(state.tasks.keys()) or "none")
        risky = self.rng.random() < 0.5
        effect = records.Effect(
            name="mail", task=task, risky=risky, intent=self._value(), intended_at=self.at
        )
        return ev.EffectIntended(at=self._now(), effect=self._name("effect"), details=effect)

    def settled(self, state: State) -> ev.Event | None:
        name = self._known(state.effects.keys())
        status: Any = self.rng.choice(("done", "failed", "undone", "unknown"))
        if name is None:
            return None
        return ev.EffectSettled(at=self._now(), effect=name, status=status, outcome=self._value())

    def phase_started(self, state: State) -> ev.Event | None:
        return ev.PhaseStarted(at=self._now(), phase=self.rng.choice(_PHASES))

    def phase_completed(self, state: State) -> ev.Event | None:
        phase = state.cursor.phase
        return None if phase is None else ev.PhaseCompleted(at=self._now(), phase=phase)

    def spent(self, state: State) -> ev.Event | None:
        calls, tokens, big = self.rng.randrange(3), self.rng.randrange(9999), self.rng.randrange(1 << 50)
        return ev.Spent(
            at=self._now(),
            agent=self._maybe(self._agent()),
            api_calls=calls,
            tokens_in=tokens,
            tokens_out=tokens // 2,
            cost_micros=big,
            elapsed_us=big,
            memory_peak_bytes=big,
        )

    def requested(self, state: State) -> ev.Event | None:
        why: Any = self.rng.choice(("user_requested", "periodic", "memory_pressure_high"))
        return ev.SnapshotRequested(at=self._now(), why=why, note=random_text(self.rng))

    def paused(self, state: State) -> ev.Event | None:
        return ev.RunPaused(at=self._now(), reason=random_text(self.rng))

    def resumed(self, state: State) -> ev.Event | None:
        return ev.RunResumed(at=self._now(), recovered=self.rng.random() < 0.5)

    def ended(self, state: State) -> ev.Event | None:
        """The run fails or its process stops: both can go on."""
        outcome: Any = self.rng.choice(("failed", "shutdown"))
        return ev.RunEnded(at=self._now(), outcome=outcome, failure=self._maybe(self._failure()))


_WEIGHTS: Final[Mapping[str, int]] = {
    "planned": 8,
    "launched": 6,
    "completed": 6,
    "milestone": 4,
    "emitted": 4,
    "streamed": 5,
    "posted": 3,
    "contributed": 6,
    "decided": 4,
    "scored": 3,
    "spent": 3,
}
_OTHERS: Final = (
    "failed", "retired", "confident", "written", "evaluated", "wait_opened", "wait_closed", "intended",
    "settled", "phase_started", "phase_completed", "requested", "paused", "resumed", "ended",
)  # fmt: skip
_MAKERS: Final = tuple(
    getattr(Story, name) for name in (*_OTHERS, *(each for each, n in _WEIGHTS.items() for _ in range(n)))
)
