"""The stage: one run being played, its clock, and the events that its actors' parts turn into."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.demo.texts import Part
from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.frame import Framer
from orchestra.codec.values import contribution, freeze
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId, new_run_id
from orchestra.model import events as ev
from orchestra.model.records import Decision, Environment, Output, Role, Verdict
from orchestra.model.records import Part as MessagePart
from orchestra.model.reducers import Reducer
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import WorkflowRef
from orchestra.model.value import Value
from orchestra.ports.store import Store

WORKFLOW = "code-review"
MODEL = "demo-model"
THRESHOLDS = (0.75, 0.5)


class PlayClock:
    """A clock that moves only when the play says so."""

    def __init__(self, start: Instant) -> None:
        self._now = start

    def now(self) -> Instant:
        """The moment the play has reached."""
        return self._now

    def monotonic(self) -> float:
        """The same in seconds."""
        return self._now / 1e6

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self._now = Instant(self._now + round(seconds * 1e6))


class Stage:
    """One run being played."""

    def __init__(self, manager: CheckpointManager, store: Store, clock: PlayClock, seed: int) -> None:
        self.manager, self.store, self.clock = manager, store, clock
        self.chance = random.Random(seed)
        self.active: ActiveRun
        self.phase = PhaseId("")

    # --- turns

    async def begin(self, change: str, phase: str, files: int) -> None:
        """Start the run with its inputs and its first phase."""
        self.phase = PhaseId(phase)
        started = ev.RunStarted(
            at=self.clock.now(),
            run=self.new_run(),
            workflow=WorkflowRef(name=WORKFLOW),
            inputs=self.frozen({"repository": "warehouse", "change": change, "files": files, "base": "main"}),
            thresholds=THRESHOLDS,
            environment=Environment(version="0.1.0"),
        )
        self.active = await self.manager.begin(started, ev.PhaseStarted(at=started.at, phase=self.phase))

    async def turn(self, *events: ev.Event, after: float = 2.0) -> Snapshot:
        """Record one turn, then let some time pass."""
        snapshot = await self.manager.record(self.active, events)
        self.clock.forward(after * self.chance.uniform(0.7, 1.4))
        return snapshot

    async def end(self) -> RunId:
        """Give the run up; its id."""
        await self.manager.release(self.active)
        return self.active.run

    def new_run(self) -> RunId:
        """An id for a run that begins now."""
        return new_run_id(WORKFLOW, self.clock.now(), self.chance.randbytes(2))

    # --- what several events have in common

    def frozen(self, value: object) -> Value:
        """A value as it is stored."""
        return freeze(value, self.manager.addresser)

    def decided(
        self, kind: str, description: str, rationale: str, confidence: float, *others: str, by: str = "atlas"
    ) -> ev.DecisionMade:
        """A decision with the alternatives that were considered."""
        at = self.clock.now()
        decision = Decision(
            at=at,
            agent=AgentId(by),
            kind=kind,
            description=description,
            rationale=rationale,
            confidence=confidence,
            alternatives=others,
        )
        return ev.DecisionMade(at=at, decision=decision)

    def planned(self, part: Part) -> ev.TaskPlanned:
        """An assignment for a specialist."""
        return ev.TaskPlanned(
            at=self.clock.now(),
            task=TaskId(part.task),
            agent=AgentId(part.agent),
            phase=self.phase,
            description=part.description,
        )

    def launched(self, part: Part, attempt: int = 1, role: Role = "mercury") -> ev.AgentLaunched:
        """The start of an attempt."""
        return ev.AgentLaunched(
            at=self.clock.now(),
            agent=AgentId(part.agent),
            task=TaskId(part.task),
            attempt=attempt,
            role=role,
            model=MODEL,
            max_steps=max(len(part.steps), 1),
        )

    def milestone(self, part: Part, number: int) -> list[ev.Event]:
        """Progress of a specialist, with what it says at that point."""
        at, agent = self.clock.now(), AgentId(part.agent)
        progress, step = part.steps[number]
        events: list[ev.Event] = [
            ev.MilestoneReached(
                at=at,
                agent=agent,
                progress=progress,
                step=step,
                step_number=number + 1,
                private=self.frozen({"steps_done": [name for _, name in part.steps[:number]], "next": step}),
            )
        ]
        if number < len(part.words):
            events.append(ev.TextEmitted(at=at, agent=agent, text=part.words[number]))
        return events

    def completed(self, part: Part) -> list[ev.Event]:
        """A result, what it cost and what enters the context because of it."""
        return [
            ev.TaskCompleted(
                at=self.clock.now(),
                task=TaskId(part.task),
                result=self.frozen(part.result),
                confidence=part.confidence,
            ),
            self.spent(part),
            *self.shared(part),
        ]

    def shared(self, part: Part) -> list[ev.Event]:
        """What a result adds to the context that all agents see."""
        agent = AgentId(part.agent)
        return [
            *(self.contributed("findings", "append", each, agent) for each in part.findings),
            self.contributed("summaries", "merge", {part.task: part.result["summary"]}, agent),
        ]

    def spent(self, part: Part) -> ev.Spent:
        """What a specialist used."""
        tokens_in = round(part.tokens * self.chance.uniform(0.9, 1.1))
        tokens_out = tokens_in // 6
        return ev.Spent(
            at=self.clock.now(),
            agent=AgentId(part.agent),
            api_calls=len(part.steps) + 1,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_micros=tokens_in * 3 + tokens_out * 15,
            elapsed_us=round(self.chance.uniform(8, 25) * 1e6),
            memory_peak_bytes=round(self.chance.uniform(90, 140) * 1e6),
        )

    def contributed(self, name: str, reducer: Reducer, value: Any, agent: AgentId) -> ev.ContextContributed:
        """Something that enters the context."""
        joined = contribution(reducer, value, self.manager.addresser)
        return ev.ContextContributed(at=self.clock.now(), name=name, contribution=joined, agent=agent)

    def confident(self, value: float) -> ev.ConfidenceReported:
        """The overall confidence, worked out anew."""
        return ev.ConfidenceReported(at=self.clock.now(), value=value)

    def said(self, message: str, text: str, agent: str) -> ev.MessagePosted:
        """A message that is complete."""
        return ev.MessagePosted(
            at=self.clock.now(),
            message=message,
            role="assistant",
            agent=AgentId(agent),
            parts=(MessagePart(kind="text", text=text),),
            model=MODEL,
        )

    def written(self, path: str, content: str, media_type: str, part: Part) -> ev.OutputWritten:
        """An output; its content is stored first, the run refers to it."""
        framer, data = Framer(self.manager.addresser), content.encode()
        digest = framer.address("blob", data)
        self.store.put_objects([(digest, framer.write("blob", data))])
        at = self.clock.now()
        output = Output(
            digest=digest,
            media_type=media_type,
            size=len(data),
            agent=AgentId(part.agent),
            task=TaskId(part.task),
            at=at,
        )
        return ev.OutputWritten(at=at, path=path, output=output)

    def verdict(self, evaluation: str, verdict: Verdict) -> ev.EvaluationCompleted:
        """The end of an evaluation's round."""
        return ev.EvaluationCompleted(
            at=self.clock.now(),
            evaluation=evaluation,
            agent=AgentId("apollo"),
            phase=self.phase,
            verdict=verdict,
        )

    async def next_phase(self, phase: str, deliverables: Sequence[str]) -> None:
        """End this phase and begin another, in a turn each."""
        await self.turn(
            ev.PhaseCompleted(at=self.clock.now(), phase=self.phase, deliverables=tuple(deliverables)),
            after=1.0,
        )
        self.phase = PhaseId(phase)
        await self.turn(ev.PhaseStarted(at=self.clock.now(), phase=self.phase), after=1.0)
