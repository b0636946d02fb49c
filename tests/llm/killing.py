"""Kills a process in the middle of a conversation with a model, resumes it in another, says what it found.

    python -m tests.llm.killing SCENE DIALECT FOLDER FIRST STEP

goes through the places FIRST, FIRST+STEP, … of a conversation (see `SCENES`): just before and just after its
commits, and at pieces of streamed text. Each line of output is one case as JSON. Children are forked from a
process that has loaded everything, because that takes longer than the conversation.
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

import orchestra.agents.llm.runner
from orchestra.agents.llm.journal import Journal
from orchestra.app.orchestra import Orchestra
from orchestra.engine.atlas import Ending
from orchestra.ids import Digest, run_id
from orchestra.model.records import Generation
from orchestra.model.state import State
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.faulty import FaultPlan, FaultyStore, Kill
from tests.fault.support.killing import KILLED, Child, Outcome, in_child
from tests.llm.provider import ProviderClient, provider_process
from tests.outcome import outcome_digest

LOADED: Final = (orchestra.agents.llm.runner, pydantic_ai.models.anthropic, pydantic_ai.models.openai)
"""Once, not in every child."""
RUN: Final = run_id("conversation")
MODELS: Final = {
    "chat": "openai-chat:scripted",
    "responses": "openai-responses:scripted",
    "messages": "anthropic:scripted",
}
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
        "faults": [{"kind": "rate_limit", "retry_after_ms": 1}],
    },
]
TOOLS: Final = '''
import os

def _append(file, text):
    path = os.path.join(os.environ["NOTES"], file)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, (text + "\\n").encode())
    os.close(descriptor)

def note(text: str) -> str:
    """Note something."""
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
    pieces: range = range(0, 40, 2)


_NOTES: Final = [_note("first"), _note("second"), _note("third")]
_REFUSED: Final = {"text": "never", "faults": [{"kind": "context_length", "times": None}]}
_NEAR: Final[dict[str, Any]] = {"commits": range(12, 22), "pieces": range(3, 12, 2)}
SCENES: Final = {
    "plain": Scene(_PLAIN, "risky: send", 3, approvals=1),
    "compacted": Scene(_compacted(*_NOTES), "compact_at: 700", 6, **_NEAR),
    "overflow": Scene(_compacted(*_NOTES, _REFUSED), "max_tokens: 100", 6, **_NEAR),
}
"""`compacted` passes the mark before its fourth answer, `overflow` is refused there; they die near it."""


def write_project(folder: Path, dialect: str, options: str) -> None:
    """A workflow with one agent that talks."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "flow.yaml").write_text(FLOW % options)
    (folder / "clerk.md").write_text(
        f"---\nname: clerk\nmodel: {MODELS[dialect]}\ntools: tools.py\n---\nYou are a clerk.\n"
    )


def point_at(provider: ProviderClient, dialect: str, folder: Path) -> None:
    """Let models of this process talk to a provider."""
    kind = "ANTHROPIC" if dialect == "messages" else "OPENAI"
    os.environ |= {f"{kind}_BASE_URL": provider.url(dialect), f"{kind}_API_KEY": "k", "NOTES": str(folder)}


@attrs.frozen
class Spot:
    """Where a process dies: at a commit, before or after it, or at a piece of streamed text; or nowhere."""

    commit: Kill | None = None
    piece: int | None = None


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
        plan = FaultPlan([spot.commit] if spot.commit is not None else [])
        with SqliteStore(folder / "orchestra.db", create=True) as inner:
            if inner.run(RUN) is not None and inner.run(RUN).status == "completed":  # type: ignore[union-attr]
                return
            ending = anyio.run(play, FaultyStore(inner, plan), folder)
            assert ending.kind == "completed", ending.state.failure
            child.acknowledge(RUN, plan.calls["commit"], Digest(outcome_digest(ending.state)))

    return in_child(do)


def state_of(folder: Path) -> dict[str, Any]:
    """What the record says at the end."""
    found = folder / "state.json"

    def do(child: Child) -> None:
        from tests.fault.support.work import manager_of

        with SqliteStore(folder / "orchestra.db", create=False) as store:
            archive = manager_of(store).archive
            state = archive.snapshot(archive.newest(RUN)).state
            found.write_text(json.dumps(_books(state)))

    outcome = in_child(do)
    assert outcome.status == 0, outcome.complaint
    told: dict[str, Any] = json.loads(found.read_text())
    return told


def _books(state: State) -> dict[str, Any]:
    paid: list[Generation] = [
        each.generation
        for each in state.messages.values()
        if each.generation is not None and each.status == "complete"
    ]
    return {
        "digest": outcome_digest(state).hex(),
        "status": state.status,
        "answers": len(paid),
        "tokens": state.metrics.tokens,
        "summaries": [
            each.stands_for
            for each in state.messages.values()
            if each.stands_for and each.status == "complete"
        ],
        "compacted": sum(each.kind == "conversation_compacted" for each in state.decisions),
        "paid": sum(each.tokens_in + each.tokens_out for each in paid),
        "calls": Counter(each.status for each in state.tool_calls.values()),
        "streaming": [name for name, each in state.messages.items() if each.status == "streaming"],
        "approvals": sum(wait.text.startswith("May ") for wait in state.waits.values()),
    }


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
    point_at(session, dialect, folder)
    deaths = sum(played(folder, spot).status == KILLED for spot in spots)
    last = played(folder, Spot())
    assert last.status == 0, last.complaint
    books, ledger = state_of(folder), session.settle()
    complaints: list[str] = []
    asked = Counter((each["conversation"], each["step"]) for each in ledger.completed())
    if sum(asked.values()) > scene.answers + deaths or (not deaths and sum(asked.values()) < scene.answers):
        complaints.append(f"{dict(asked)} answers were paid for, with {deaths} deaths")
    refused = len(ledger.begun(fault="context_length"))
    if refused > 1 + deaths:
        complaints.append(f"{refused} requests were refused as too long, with {deaths} deaths")
    runs = tool_runs(folder)
    if max(runs.values()) > 1 + deaths:  # both of a batch may have been in flight
        complaints.append(f"tools ran {dict(runs)}, with {deaths} deaths")
    if books["tokens"] != books["paid"]:
        complaints.append(f"{books['tokens']} tokens were counted, {books['paid']} stand in messages")
    if (
        books["answers"] == sum(asked.values())
        and books["tokens"] != ledger.usage().input + ledger.usage().output
    ):
        complaints.append(f"{books['tokens']} tokens were counted, the provider says {ledger.usage()}")
    if books["streaming"] or books["approvals"] != scene.approvals:
        complaints.append(f"{books}")
    return {"case": str(spots), "deaths": deaths, "books": books, "complaint": "; ".join(complaints)}


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
                for when in ("before", "after")
            ),
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
