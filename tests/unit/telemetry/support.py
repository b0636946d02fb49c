"""Runs to observe, and readers of the files they leave."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestra.app.orchestra import Orchestra
from orchestra.engine.atlas import Ending
from orchestra.ids import AgentId, PhaseId, RunId
from orchestra.model.workflow import (
    Agent,
    Criterion,
    Evaluate,
    Phase,
    Policy,
    Retry,
    Specialist,
    Transition,
    Workflow,
)
from orchestra.ports.agent import Judgement, Result

SECRET = "sk-" + "a1b2c3d4" * 4
CONTENT = "the words of a person"
_ROOT = Path(__file__).parents[3]


async def good(ctx: Any) -> Any:
    """Spends tokens, says much, and is rather sure."""
    ctx.spent(tokens_in=30, tokens_out=12, calls=1)
    await ctx.decide(f"to write {CONTENT}", rationale=CONTENT, confidence=0.7)
    return Result(output={"text": CONTENT}, confidence=0.9)


async def flaky(ctx: Any) -> Any:
    """Fails the first time, with a secret in what it says."""
    if ctx.attempt == 1:
        raise ValueError(f"the key {SECRET} was refused")
    return CONTENT


async def judge(ctx: Any) -> Any:
    """Accepts."""
    return Judgement(scores={"clarity": 0.9}, feedback=CONTENT)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"good": good, "flaky": flaky, "judge": judge}


def workflow() -> Workflow:
    """Two phases; the first is judged, the second has an agent that fails once."""
    agents = tuple(Agent(id=AgentId(each), kind="function") for each in FUNCTIONS)
    first = Phase(
        id=PhaseId("draft"),
        specialists=(Specialist(id="writer", agent=AgentId("good"), task=CONTENT),),
        evaluate=Evaluate(agent=AgentId("judge"), rubric=(Criterion(name="clarity"),)),
        next=(Transition(to=PhaseId("print")),),
    )
    second = Phase(
        id=PhaseId("print"), specialists=(Specialist(id="printer", agent=AgentId("flaky"), task="p"),)
    )
    policy = Policy(retry=Retry(attempts=3, backoff_us=1000))
    return Workflow(name="letters", agents=agents, phases=(first, second), policy=policy)


async def played(folder: Path, run: str = "letters_1") -> Ending:
    """One run, observed in every way there is."""
    async with Orchestra(
        f"sqlite:{folder}/store.db", functions=FUNCTIONS, project=folder, telemetry=True, events=True
    ) as house:
        return await house.run(workflow(), run=run)


def spans(folder: Path, run: str) -> list[dict[str, Any]]:
    """The spans of a run's file, with plain attributes."""
    found = []
    for request in _requests(folder, run):
        for resource in request.get("resourceSpans", ()):
            for scope in resource["scopeSpans"]:
                found += [_plain(each) for each in scope["spans"]]
    return found


def metrics(folder: Path, run: str) -> dict[str, dict[str, Any]]:
    """The metrics of a run's file, by name; of several lines the last."""
    found: dict[str, dict[str, Any]] = {}
    for request in _requests(folder, run):
        for resource in request.get("resourceMetrics", ()):
            for scope in resource["scopeMetrics"]:
                found |= {each["name"]: each for each in scope["metrics"]}
    return found


def _requests(folder: Path, run: str) -> list[dict[str, Any]]:
    """The lines of a run's file, each a request of spans or of metrics and of nothing else."""
    text = (folder / "outputs" / run / "telemetry" / "otlp.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    assert all(list(each) in (["resourceSpans"], ["resourceMetrics"]) for each in found)
    return found


def journal(folder: Path, run: str) -> list[dict[str, Any]]:
    """The lines of a run's journal."""
    text = (folder / "outputs" / run / "events.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def _plain(span: dict[str, Any]) -> dict[str, Any]:
    events = [{**each, "attributes": _attributes(each)} for each in span.get("events", ())]
    return {**span, "attributes": _attributes(span), "events": events}


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: _value(each["value"]) for each in holder["attributes"]}


def _value(value: dict[str, Any]) -> Any:
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_value(each) for each in held["values"]]
    return int(held) if kind == "intValue" else held


def by_name(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The spans of that name, in the order in which they ended."""
    return [each for each in found if each["name"] == name]


def stored(folder: Path, run: str) -> list[tuple[int, str]]:
    """Number and digest of every snapshot of a run, as the store has them."""
    from orchestra.ports.store import RowQuery
    from orchestra.stores.registry import open_store

    with open_store(f"sqlite:{folder}/store.db", read_only=True) as store:
        rows = store.rows(RowQuery(run=RunId(run), content=False))
        return [(row.seq, row.digest.hex()) for row in rows]


def crash(folder: Path, run: str) -> None:
    """Play a run in a process of its own that is killed in the middle."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.telemetry.crashing", str(folder), run],
        cwd=_ROOT,
        env={"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
