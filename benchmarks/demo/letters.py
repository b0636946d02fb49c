"""A conversation with a language model, as an agent of that kind leaves it: a call waits for leave."""

from __future__ import annotations

from typing import Any

from benchmarks.demo.stage import PlayClock
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import freeze
from orchestra.ids import AgentId, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Generation, Part, ToolCall
from orchestra.model.state import WorkflowRef

RUN = RunId("letters")
AGENT, TASK, PHASE = AgentId("clerk"), TaskId("draft/clerk"), PhaseId("draft")
MODEL = "openai:gpt-5"
ASKED = "Find what is known about the tides at the harbour mouth, and write to the harbour master about it."
INSTRUCTIONS = "You are a clerk of the library. You quote what you found, with its year. " * 4
REASONING = "The person wants the measurements first. I search widely, and read the newest paper at once."
FOUND = [
    {"title": f"Tides at the harbour mouth, part {n}", "year": 1990 + n, "pages": 12 * n} for n in (1, 2)
]
ANSWER = """I found two papers that matter here.

1. "Tides at the harbour mouth, part 1" (1991) measures the currents over one spring.
2. "Tides at the harbour mouth, part 2" (1992) compares three places for an instrument.

I could not read the second one, so what it says about cost is left out of the letter."""
LETTER = {"to": "harbour master", "text": "Dear harbour master, may we place one instrument in spring?"}


class _Letters:
    def __init__(self, manager: CheckpointManager, clock: PlayClock) -> None:
        self.manager, self.clock, self._said = manager, clock, 0

    async def play(self) -> RunId:
        at = self.clock.now()
        self.active = await self.manager.begin(
            ev.RunStarted(at=at, run=RUN, workflow=WorkflowRef(name="letters")),
            ev.PhaseStarted(at=at, phase=PHASE),
            ev.TaskPlanned(at=at, task=TASK, agent=AGENT, phase=PHASE, description=ASKED),
            ev.AgentLaunched(at=at, agent=AGENT, task=TASK, attempt=1, role="mercury"),
        )
        await self.tell(self.said("system", INSTRUCTIONS), self.said("user", ASKED))
        calls = (("search", {"query": "tides harbour mouth"}), ("read", {"title": FOUND[1]["title"]}))
        await self.tell(*self.answer(1, "I look that up.", *calls, reasoning=REASONING), seconds=4)
        await self.tell(self.call(0, *calls[0], status="done", result=self.frozen(FOUND)))
        error = "LookupError: it is lent out until Friday"
        await self.tell(self.call(1, *calls[1], status="failed", error=error))
        await self.tell(*self.answer(2, ANSWER, ("send_letter", LETTER), first=2), seconds=9)
        waits = self.call(2, "send_letter", LETTER, status="waiting", risky=True)
        details = self.frozen(
            {"tool": "send_letter", "arguments": LETTER, "call": "2", "editable": ["arguments"]}
        )
        asked = ev.WaitOpened(
            at=self.clock.now(),
            wait=f"{TASK}?approve:2",
            waits_for="question",
            text="May clerk call send_letter?",
            agent=AGENT,
            task=TASK,
            choices=("approve", "refuse"),
            details=details,
        )
        await self.tell(waits, asked, ev.RunWaiting(at=self.clock.now()))
        await self.manager.release(self.active)
        return RUN

    async def tell(self, *events: ev.Event, seconds: float = 0.2) -> None:
        self.clock.forward(seconds)
        await self.manager.record(self.active, list(events))

    def frozen(self, held: Any) -> Any:
        return freeze(held, self.manager.addresser)

    def said(self, role: Any, *texts: str, **more: Any) -> ev.MessagePosted:
        self._said += 1
        parts = more.pop("parts", tuple(Part(kind="text", text=text) for text in texts))
        return ev.MessagePosted(
            at=self.clock.now(),
            message=f"{TASK}#{self._said - 1}",
            role=role,
            agent=AGENT,
            task=TASK,
            parts=parts,
            **more,
        )

    def answer(
        self, step: int, text: str, *calls: tuple[str, Any], first: int = 0, reasoning: str = ""
    ) -> tuple[ev.Event, ...]:
        asked = (
            {"id": str(n), "name": tool, "arguments": given} for n, (tool, given) in enumerate(calls, first)
        )
        parts = (
            *((Part(kind="reasoning", text=reasoning),) if reasoning else ()),
            Part(kind="text", text=text),
            *(Part(kind="tool_call", data=self.frozen(each)) for each in asked),
        )
        used = Generation(
            model=MODEL,
            tokens_in=310 * step,
            tokens_out=len(text) // 3,
            cost_micros=1_400 * step,
            latency_us=2_310_000 * step,
            finish="tool_call",
        )
        spent = ev.Spent(
            at=self.clock.now(),
            agent=AGENT,
            api_calls=1,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            cost_micros=used.cost_micros or 0,
        )
        return (
            self.said("assistant", parts=parts, step_number=step, model=MODEL, generation=used),
            spent,
        )

    def call(self, number: int, tool: str, given: Any, **more: Any) -> ev.ToolCallChanged:
        over = more["status"] != "waiting"
        record = ToolCall(
            tool=tool,
            agent=AGENT,
            task=TASK,
            arguments=self.frozen(given),
            attempts=int(over),
            started_at=self.clock.now() if over else None,
            ended_at=self.clock.now() if over else None,
            **more,
        )
        return ev.ToolCallChanged(at=self.clock.now(), call=f"{TASK}#{number}", record=record)


async def play(manager: CheckpointManager, clock: PlayClock) -> RunId:
    """Record the run."""
    return await _Letters(manager, clock).play()
