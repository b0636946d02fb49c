"""A run played without agents, stores or clocks: decisions are applied, and chance says what agents do."""

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze, thaw
from orchestra.engine.agents.mercury import Desk
from orchestra.engine.board import Board
from orchestra.engine.names import EVALUATION, errand_depth, local_of
from orchestra.engine.orders import Order, events_of
from orchestra.engine.redact import Redactor
from orchestra.engine.rules.decide import decide
from orchestra.engine.rules.errands import errand_events, find_errand
from orchestra.engine.start import first_events, reference
from orchestra.engine.view import View
from orchestra.errors import BadOrder
from orchestra.ids import AgentId, Instant, TaskId, run_id
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.records import Environment, Failure, Verdict
from orchestra.model.state import State
from orchestra.model.workflow import (
    Ask,
    ConfidencePolicy,
    Evaluate,
    Phase,
    Policy,
    Proceed,
    RecoveryPolicy,
    Retry,
    Spawn,
    Specialist,
    Workflow,
)
from tests.unit.engine.support import does, flow, phase

ADDRESSER = Addresser()
_STEPS = ("restart", "substitute", "degrade", "ask", "fail")


def random_workflow(chance: random.Random) -> Workflow:
    """Some phases, a loop, and specialists that need one another."""
    names = [f"p{number}" for number in range(chance.randint(1, 3))]
    phases = []
    for place, name in enumerate(names):
        following = [*names[place + 1 : place + 2], "end"]
        back: list[Any] = [(chance.choice(names), f"visits.{name} < 3")] if chance.random() < 0.4 else []
        phases.append(_phase(chance, name, [*back, following[0]]))
    limits = Policy(
        concurrency=chance.choice([1, 2, 8]),
        retry=Retry(attempts=chance.randint(1, 2), backoff_us=chance.choice([0, 5])),
        recovery=RecoveryPolicy(on_failure=("restart", "degrade")),
        confidence=ConfidencePolicy(threshold=0.5),
        max_iterations=12,
    )
    return flow(*phases, policy=limits, context={"found": "append"})


def _phase(chance: random.Random, name: str, following: list[Any]) -> Phase:
    specialists = list(_specialists(chance))
    chance.shuffle(specialists)
    evaluate = None
    if chance.random() < 0.5:
        evaluate = Evaluate(agent=AgentId("judge"), rounds=chance.randint(0, 2))
    reactions: tuple[Any, ...] = ()
    if specialists and chance.random() < 0.6:
        model = chance.choice(specialists).id
        reactions = (Spawn(specialist=model, max=chance.randint(1, 2)), Ask(question="?"), Proceed())
    return phase(
        name,
        *specialists,
        next=following,
        evaluate=evaluate,
        on_low_confidence=reactions,
        breakpoint=chance.random() < 0.2,
    )


def _specialists(chance: random.Random) -> Iterator[Specialist]:
    known: list[str] = []
    for number in range(chance.randint(0, 5)):
        name = f"s{number}"
        yield does(
            name,
            needs=tuple(chance.sample(known, min(len(known), chance.randint(0, 2)))),
            foreach=chance.choice([None, None, "[]", "[1]", "[1, 2, 3]"]),
            when=chance.choice([None, None, "true", "visit == 2"]),
            into=chance.choice([None, "found"]),
            on_failure=tuple(chance.sample(_STEPS, chance.randint(0, 3))),
            substitute="spare",
            breakpoint=chance.random() < 0.1,
            task=chance.choice(
                ["do it", "{{ context.not.there.at.all }}"] if chance.random() < 0.1 else ["do it"]
            ),
        )
        known.append(name)


class Play:
    """One run, with the board that is kept beside it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.workflow = random_workflow(self.chance)
        self.board = Board()
        self.now = Instant(1_000_000)
        started, more, _ = first_events(
            self.workflow,
            run_id("run"),
            {},
            self.now,
            addresser=ADDRESSER,
            held=reference(self.workflow, ADDRESSER, None),
            environment=Environment(),
        )
        self.state: State = apply_all(begin(started), more)

    @property
    def view(self) -> View:
        return View(self.workflow, self.state, thaw, ADDRESSER)

    def add(self, *events: ev.Event) -> None:
        self.state = apply_all(self.state, events)
        for event in events:
            self.board.note([event])

    def decided(self) -> None:
        """Let Atlas decide until there is nothing more to decide."""
        for _ in range(200):
            move = decide(self.view, self.board, self.now)
            if not move.events:
                return
            self.add(*move.events)
        raise AssertionError("deciding does not end")

    def happened(self) -> bool:
        """Something happens that an agent or a person did; False when nothing can."""
        self.now = Instant(self.now + 10)
        choices = [self._ended] * len(self.board.running)
        if self.state.status == "running" and self.board.running and self.chance.random() < 0.2:
            choices.append(self._gave_errand)
        if self.state.status == "running" and self.board.open_waits:
            choices.append(self._answered)
        if self.state.status == "running" and self.chance.random() < 0.1:
            choices.append(self._resumed)
        if self.state.status == "running" and choices and self.chance.random() < 0.2:
            choices.append(self._retried)
        if not choices:
            return False
        self.chance.choice(choices)()
        return True

    def _ended(self) -> None:
        name = self.chance.choice(sorted(self.board.running))
        if self.chance.random() < 0.25:
            failure = Failure(error="E", message="m", at=self.now, recoverable=self.chance.random() < 0.7)
            self.add(ev.TaskFailed(at=self.now, task=name, failure=failure))
        elif name.rpartition("/")[2].partition("~")[0] == EVALUATION:
            self._judged(name)
        else:
            value = freeze(self.chance.randint(0, 9), ADDRESSER)
            sure = self.chance.choice([None, 0.2, 0.9])
            self.add(ev.TaskCompleted(at=self.now, task=name, result=value, confidence=sure))

    def _gave_errand(self) -> None:
        name, spare = self.chance.choice(sorted(self.board.running)), AgentId("spare")
        if spare in self.view.index.agents and errand_depth(local_of(name)) < 3:
            asked = ("Find it.", f"{name}#{self.chance.randint(0, 3)}")
            if find_errand(self.view, name, spare, *asked)[0] is None:
                self.add(*errand_events(self.view, self.now, name, spare, *asked))

    def _judged(self, name: TaskId) -> None:
        cursor, task = self.state.cursor, self.state.tasks[name]
        assert cursor.phase is not None
        kind = self.chance.choice(["accept", "revise"])
        verdict = Verdict(kind=kind, score=0.5, feedback="more")  # type: ignore[arg-type]
        self.add(
            ev.TaskCompleted(at=self.now, task=name),
            ev.EvaluationCompleted(
                at=self.now,
                evaluation=name.partition("/")[0],
                agent=task.agent,
                phase=cursor.phase,
                visit=cursor.visit,
                round=cursor.round,
                judged=task.key,
                verdict=verdict,
            ),
        )

    def _answered(self) -> None:
        name = self.chance.choice(sorted(self.board.open_waits))
        choices = self.state.waits[name].choices or ("on",)
        answer = freeze(self.chance.choice(choices), ADDRESSER)
        self.add(ev.WaitClosed(at=self.now, wait=name, answer=answer))

    def _retried(self) -> None:
        """A person wants something to be done after all that was given up."""
        desk = Desk(view=self.view, redactor=Redactor(), now=self.now)
        for name, task in self.state.tasks.items():
            if task.status == "skipped":
                with suppress(BadOrder):
                    self.add(*events_of(desk, Order(kind="retry", target=name), live=True))
                    return

    def _resumed(self) -> None:
        self.add(ev.RunResumed(at=self.now, reason="as after a death"))
