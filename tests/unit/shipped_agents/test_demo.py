"""The agents of the demos misbehave exactly as told."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from tests.unit.shipped_agents.review import load


def context(**known: Any) -> Any:
    """An async context that notes what is written and answers with what it was given."""
    noted: dict[str, Any] = {"written": {}, "confidences": [], "done": []}

    async def nothing(*_: Any, **__: Any) -> None:
        return None

    async def write(path: str, content: str) -> str:
        noted["written"][path] = content
        return path

    async def ask(*_: Any, **__: Any) -> Any:
        return known["answer"]

    async def effect(name: str, do: Any, **_: Any) -> Any:
        noted["done"].append(name)
        return await do(f"key/{name}")

    verbs = {"save": nothing, "decide": nothing, "write": write, "ask": ask, "effect": effect}
    said = noted["confidences"]
    return SimpleNamespace(**verbs, **noted, **known, confidence=said.append, emit=lambda text: None)


def run(name: str, ctx: Any) -> Any:
    return anyio.run(load(f"demo/{name}").agent, ctx)


def test_flaky_crashes_as_often_as_told(tmp_path: Path) -> None:
    ctx = context(workspace=tmp_path / "own", settings={"crashes": 2})
    for number in (1, 2):
        with pytest.raises(RuntimeError, match=f"crash {number} of 2"):
            run("flaky", ctx)
    assert run("flaky", ctx) == "flaky: came through at start 3"


def test_unsure_ends_below_the_threshold() -> None:
    ctx = context()
    assert run("unsure", ctx).confidence == 0.73
    assert ctx.confidences == [0.92, 0.81, 0.73]
    assert run("second_opinion", ctx).confidence == 0.95


def test_stubborn_succeeds_once_rolled_back() -> None:
    with pytest.raises(RuntimeError, match="restarting does not help"):
        run("stubborn", context(effect_key="run/build/1/stubborn/0", attempt=1))
    assert run("stubborn", context(effect_key="run/build/1/stubborn/1", attempt=1)).endswith(
        "after 1 rollback"
    )


def test_the_story_has_every_note() -> None:
    ctx = context(context={"notes": ["a", ["b", "c"]]})
    assert run("summary", ctx) == 3
    assert ctx.written["story.md"] == "# What happened\n\n- a\n- b\n- c\n"


@pytest.mark.parametrize(("answer", "published"), [("yes", True), ("no", False)])
def test_a_person_decides(answer: str, published: bool) -> None:
    ctx = context(inputs={"topic": "Release"}, answer=answer)
    ctx.context = {"draft": run("draft", ctx)}
    assert run("publish", ctx) is published
    assert ("published.md" in ctx.written) is published
    assert ctx.done == (["publish"] if published else [])
