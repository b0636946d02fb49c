"""Kills a process in the middle of a conversation with a model, resumes it in another, says what it found.

    python -m tests.llm.killing SCENE DIALECT FOLDER FIRST STEP

goes through the places FIRST, FIRST+STEP, … of a conversation (see `SCENES`): just before and just after its
commits, at pieces of streamed text, and in tools while they run. Each line of output is one case as JSON,
with how the record stood after the death. Children are forked from a process that has loaded everything,
because that takes longer than the conversation.
"""

import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import pydantic_ai.models.anthropic
import pydantic_ai.models.openai
from pydantic_ai.usage import RequestUsage

import orchestra.agents.llm.runner
from orchestra.agents.llm.journal import Journal
from orchestra.agents.llm.prices import cost_micros, price_of
from orchestra.app.orchestra import Orchestra
from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.ids import Digest, run_id
from orchestra.model.records import Generation
from orchestra.model.state import State
from orchestra.ports.agent import ChatCall
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.faulty import FaultPlan, FaultyStore, Kill
from tests.fault.support.killing import KILLED, Child, Outcome, in_child
from tests.fault.support.work import manager_of
from tests.llm.ledger import Ledger
from tests.llm.provider import ProviderClient, provider_process
from tests.outcome import outcome_digest

LOADED: Final = (orchestra.agents.llm.runner, pydantic_ai.models.anthropic, pydantic_ai.models.openai)
"""Once, not in every child."""
RUN: Final = run_id("conversation")
MODELS: Final = {
    "chat": "openai-chat:gpt-4o",
    "responses": "openai-responses:gpt-4o",
    "messages": "anthropic:claude-sonnet-4-5",
}
"""Models that have a price; it is the script that answers."""
_PLAIN: Final = [
    {
        "reasoning": "Two notes, and a sum that is not needed yet.",
        "text": "I shall note both and look at the time it takes to say so.",
        "calls": [
            {"name": "note", "arguments": {"text": "first"}},
            {"name": "note", "arguments": {"text": "second"}},
        ],
    },
    {"text": "Now the letter.", "calls": [{"name": "send", "arguments": {"to": "everybody"}}]},
    {
        "text": "Both notes are there and the letter is on its way, as far as anybody can tell.",
        "faults": [{"kind": "rate_limit", "retry_after_ms": 300}],
    },
]
TOOLS: Final = '''
import os
import time

def _append(file, text):
    path = os.path.join(os.environ["NOTES"], file)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, (text + "\\n").encode())
    os.close(descriptor)
    if os.environ.get("DIE_IN") == text:
        os.kill(os.getpid(), 9)

def note(text: str) -> str:
    """Note something; the second is noted when the first is on the record."""
    while text == "second" and not os.path.exists(os.path.join(os.environ["NOTES"], "first is kept")):
        time.sleep(0.001)
    _append("tools", "note " + text)
    return "noted " + text

def send(to: str) -> str:
    """Send a letter."""
    _append("tools", "send " + to)
    return "sent to " + to
'''
FLOW: Final = """
name: conversation
agents:
  clerk: {path: clerk.md, on_unknown: rerun, %s}
  finder: finder.md
phases:
  work:
    specialists:
      talk: {agent: clerk, task: "Note two things and send a letter."}
policy: {retry: {attempts: 1}}
"""


def _note(text: str) -> dict[str, Any]:
    return {"text": "Next.", "calls": [{"name": "note", "arguments": {"text": f"{text} " + "long " * 80}}]}


def _compacted(*turns: dict[str, Any]) -> dict[str, Any]:
    summary = {"text": "TWO ARE NOTED, and that is summed up in so many words as there are."}
    after = [[], _note("fourth"), {"text": "All four are noted."}]
    found = {"summary": ("Sum up", [summary]), "after": ("TWO ARE NOTED", after), "main": ("", [*turns])}
    named = [{"name": name, "match": match, "turns": said} for name, (match, said) in found.items()]
    return {"conversations": named}


@attrs.frozen
class Scene:
    """A conversation: what the model says, the agent's options, and what comes of it when nothing happens."""

    script: Any
    options: str
    answers: int
    approvals: int = 0
    commits: range = range(40)
    pieces: range = range(0, 40, 4)
    tools: tuple[str, ...] = ()  # in which it dies


_NOTES: Final = [_note("first"), _note("second"), _note("third")]
_REFUSED: Final = {"text": "never", "faults": [{"kind": "context_length", "times": None}]}
_ERRAND: Final = [
    {"text": "Who?", "calls": [{"name": "finder", "arguments": {"task": "Find out who everybody is."}}]},
    {"text": "Everybody is told."},
]
_FINDER: Final = [_note("found"), {"text": "Everybody is whoever reads this."}]
_BOTH: Final = {
    "conversations": [
        {"name": "finder", "match": "You find out", "turns": _FINDER},
        {"name": "clerk", "match": "", "turns": _ERRAND},
    ]
}
_NEAR: Final[dict[str, Any]] = {"commits": range(12, 22), "pieces": range(3, 12, 2)}
SCENES: Final = {
    "plain": Scene(
        _PLAIN, "risky: send", 3, approvals=1, tools=("note first", "note second", "send everybody")
    ),
    "compacted": Scene(_compacted(*_NOTES), "compact_at: 700", 6, **_NEAR),
    "errand": Scene(_BOTH, 'tools: ["agent:finder"]', 4, commits=range(4, 16), pieces=range(2, 10, 4)),
    "overflow": Scene(_compacted(*_NOTES, _REFUSED), "max_tokens: 100", 6, **_NEAR),
}
"""`compacted` passes the mark before its fourth answer, `overflow` is refused there; they die near it."""


def write_project(folder: Path, dialect: str, options: str) -> None:
    """A workflow with one agent that talks."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "flow.yaml").write_text(FLOW % options)
    for name, text in (("clerk", "You are a clerk."), ("finder", "You find out.")):
        matter = f"name: {name}\nmodel: {MODELS[dialect]}\ntools: tools.py"
        (folder / f"{name}.md").write_text(f"---\n{matter}\n---\n{text}\n")


def environment_for(provider: ProviderClient, dialect: str, folder: Path) -> dict[str, str]:
    """What lets models talk to a provider, and tools know where to write."""
    kind = "ANTHROPIC" if dialect == "messages" else "OPENAI"
    return {f"{kind}_BASE_URL": provider.url(dialect), f"{kind}_API_KEY": "k", "NOTES": str(folder)}


@attrs.frozen
class Spot:
    """Where a process dies: at a commit, before or after it, at a piece of text, or in a tool; or nowhere."""

    commit: Kill | None = None
    piece: int | None = None
    tool: str | None = None


def _die_at_piece(number: int) -> None:
    seen, stream_text = 0, Journal.stream_text

    def stream(self: Journal, *args: Any) -> None:
        nonlocal seen
        stream_text(self, *args)
        seen += 1
        if seen > number:
            self._stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    Journal.stream_text = stream  # type: ignore[assignment,method-assign]


def _tell_when_first_is_kept(folder: Path) -> None:
    """Let the second note be made when the first is on the record: then one is done and one is not."""
    find_call, record_call = Journal.find_call, Journal.record_call

    def tell(call: ChatCall | None) -> None:
        if call is not None and call.status == "done" and call.arguments == {"text": "first"}:
            (folder / "first is kept").touch()

    def find(self: Journal, *args: Any) -> ChatCall | None:
        tell(held := find_call(self, *args))
        return held

    async def record(self: Journal, call: ChatCall) -> ChatCall:
        tell(kept := await record_call(self, call))
        return kept

    Journal.find_call, Journal.record_call = find, record  # type: ignore[assignment,method-assign]


async def play(store: Any, folder: Path) -> Ending:
    """Begin the conversation or go on with it, and allow what it asks for, until it ends."""
    async with Orchestra(store, project=folder) as house:
        if store.run(RUN) is None:
            ending = await house.run(folder / "flow.yaml", run=RUN)
        else:
            ending = await house.resume(RUN)
        while ending.kind == "waiting":
            await house.answer(RUN, "approve")
            ending = await house.resume(RUN)
        return ending


def played(folder: Path, spot: Spot) -> Outcome:
    """Play until the end of the run or of the process."""

    def do(child: Child) -> None:
        if spot.piece is not None:
            _die_at_piece(spot.piece)
        os.environ["DIE_IN"] = spot.tool or ""
        _tell_when_first_is_kept(folder)
        plan = FaultPlan([spot.commit] if spot.commit is not None else [])
        with SqliteStore(folder / "orchestra.db", create=True) as inner:
            archive, held = manager_of(inner).archive, inner.run(RUN)
            state = None if held is None else archive.snapshot(archive.newest(RUN)).state
            _write_books(folder / "then.json", state)
            if held is None or held.status != "completed":
                ending = anyio.run(play, FaultyStore(inner, plan), folder)
                assert ending.kind == "completed", ending.state.failure
                state = ending.state
            assert state is not None, "BUG: it is completed"
            _write_books(folder / "books.json", state)
            child.acknowledge(RUN, plan.calls["commit"], Digest(outcome_digest(state)))

    return in_child(do)


def _write_books(file: Path, state: State | None) -> None:
    file.write_text(json.dumps(None if state is None else _books(state)))


def _read_books(file: Path) -> Any:
    """What a child wrote down of a state; None when there was no run yet."""
    return json.loads(file.read_text())


def _books(state: State) -> dict[str, Any]:
    paid: list[Generation] = [
        each.generation
        for each in state.messages.values()
        if each.generation is not None and each.status == "complete"
    ]
    cut = [each for each in state.messages.values() if each.status == "interrupted"]
    return {
        "digest": outcome_digest(state).hex(),
        "status": state.status,
        "answers": len(paid),
        "tokens": [state.metrics.tokens_in, state.metrics.tokens_out],
        "cost": state.metrics.cost_micros,
        "summaries": [
            each.stands_for
            for each in state.messages.values()
            if each.stands_for and each.status == "complete"
        ],
        "compacted": sum(each.kind == "conversation_compacted" for each in state.decisions),
        "paid": [sum(each.tokens_in for each in paid), sum(each.tokens_out for each in paid)],
        "attempts": _attempts(state),
        "calls": sorted(each.status for each in state.tool_calls.values() if each.tool != "finder"),
        "errands": [[name, task.status] for name, task in state.tasks.items() if task.call is not None],
        "streaming": [name for name, each in state.messages.items() if each.status == "streaming"],
        "interrupted": ["".join(part.text for part in each.parts if part.kind == "text") for each in cut],
        "approvals": sum(wait.text.startswith("May ") for wait in state.waits.values()),
        "waits": sorted(wait.kind for wait in state.waits.values() if wait.status == "open"),
    }


def _attempts(state: State) -> dict[str, int]:
    """How often each tool was begun."""
    begun: Counter[str] = Counter()
    for each in (call for call in state.tool_calls.values() if call.tool != "finder"):
        (argument,) = thaw(each.arguments).values() if each.arguments is not None else ("",)
        begun[f"{each.tool} {argument}"] += each.attempts
    return dict(begun)


def tool_runs(folder: Path) -> Counter[str]:
    """How often each tool ran."""
    noted = folder / "tools"
    return Counter(noted.read_text().splitlines()) if noted.exists() else Counter()


def case(
    folder: Path, provider: ProviderClient, scene: Scene, dialect: str, spots: list[Spot]
) -> dict[str, Any]:
    """Die as planned, go on, and compare; what came of it, as data."""
    session = provider.in_session(folder.name)
    write_project(folder, dialect, scene.options)
    os.environ |= environment_for(session, dialect, folder)
    deaths = sum(played(folder, spot).status == KILLED for spot in spots)
    last = played(folder, Spot())
    assert last.status == 0, last.complaint
    then, books = _read_books(folder / "then.json"), _read_books(folder / "books.json")
    ledger = session.settle()
    complaints = list(_complaints(scene, books, ledger, tool_runs(folder), deaths, MODELS[dialect]))
    commits = max((each for _, each in last.acknowledged), default=0)
    told = {"case": str(spots), "deaths": deaths, "commits": commits, "then": then, "books": books}
    return {**told, "complaint": "; ".join(complaints)}


def _complaints(
    scene: Scene, books: dict[str, Any], ledger: Ledger, runs: Counter[str], deaths: int, model: str
) -> Iterator[str]:
    """What is not as it must be; the books of the provider and of the tools are the ones to go by."""
    once = {(each["conversation"], each["step"]): each for each in ledger.completed()}
    paid = len(ledger.completed())
    if len(once) != scene.answers or paid > scene.answers + deaths:
        yield f"{paid} answers to {len(once)} questions were paid for, with {deaths} deaths"
    refused = len(ledger.begun(fault="context_length"))
    if refused > 1 + deaths:
        yield f"{refused} requests were refused as too long, with {deaths} deaths"
    usage, price = Ledger(tuple(once.values())).usage(), price_of(model)
    assert price is not None, f"BUG: {model} has no price"
    counted = [usage.input, usage.output], sum(cost_micros(price, _taken(each)) for each in once.values())
    if (books["tokens"], books["cost"]) != counted or books["paid"] != books["tokens"]:
        yield f"{books['tokens']} and {books['cost']} were counted, the provider says {counted}"
    begun = books["attempts"]
    if set(runs) != set(begun) or any(not 1 <= runs[each] <= begun[each] <= 1 + deaths for each in runs):
        yield f"tools ran {dict(runs)}, begun {begun}, with {deaths} deaths"
    if not all(json.dumps(text)[:-1] in json.dumps(scene.script) for text in books["interrupted"]):
        yield f"{books['interrupted']} was never said"
    if books["streaming"] or books["waits"] or books["approvals"] != scene.approvals:
        yield f"{books}"
    if set(books["calls"]) != {"done"} or len(books["calls"]) != len(begun):
        yield f"tools were called {books['calls']}"


def _taken(entry: dict[str, Any]) -> RequestUsage:
    used = entry["usage"]
    cached = {f"cache_{each}_tokens": used[f"cache_{each}"] for each in ("read", "write")}
    return RequestUsage(input_tokens=used["input"], output_tokens=used["output"], **cached)


def cases(scene: Scene, dialect: str, folder: Path, first: int, step: int) -> Iterator[dict[str, Any]]:
    """The undisturbed conversation, then those with a death."""
    folder.mkdir(parents=True, exist_ok=True)
    with provider_process(scene.script, folder) as provider:
        whole = case(folder / "undisturbed", provider, scene, dialect, [])
        assert not whole["complaint"], whole["complaint"]
        yield whole
        spots = [
            *(
                Spot(commit=Kill(methods={"commit"}, nth=n, when=when))
                for n in scene.commits
                if n < whole["commits"]
                for when in ("before", "after")
            ),
            *(Spot(tool=name) for name in scene.tools),
            *(Spot(piece=n) for n in scene.pieces),
        ]
        for number in range(first, len(spots), step):
            place = folder / f"case-{number}"
            found = case(place, provider, scene, dialect, [spots[number]])
            if found["books"]["digest"] != whole["books"]["digest"]:
                found["complaint"] += f"; it ended otherwise: {found['books']}"
            if found["deaths"]:
                yield found
            shutil.rmtree(place)


if __name__ == "__main__":
    scene, kind, place, first, step = sys.argv[1:]
    for each in cases(SCENES[scene], kind, Path(place), int(first), int(step)):
        print(json.dumps(each), flush=True)
