"""Tools that misbehave: whatever they do, the model is told in a bounded way and the run goes on."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.errors import BadWorkflow
from tests.llm.talk import Talk, calls, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
TOOLS = '''
import sys
import threading

def blocks() -> str:
    """Never end, in a thread, whoever asks it to."""
    while True:
        threading.Event().wait()

def refused() -> str:
    """Meet a server that is not there."""
    raise ConnectionRefusedError("nobody is there")

def stops() -> str:
    """Come to the end of something."""
    return next(iter([]))

def leaves() -> str:
    """End the program."""
    sys.exit(3)

async def leaves_async() -> str:
    """End the program, in the loop."""
    sys.exit(3)

def shouts() -> str:
    """Fail with many words."""
    raise ValueError("no" * 1_000_000)

def retries() -> str:
    """Have the model try again, with many words."""
    from pydantic_ai import ModelRetry
    raise ModelRetry("again" * 1_000_000)

def odd() -> str:
    """Give back half a character."""
    return "half: \\ud83d"

def strange() -> object:
    """Give back what is no data."""
    return object()

def huge() -> str:
    """Give back a hundred megabytes."""
    return "x" * 100_000_000

def many() -> list[int]:
    """Give back a list of ten million numbers."""
    return [0] * 10_000_000

def endless() -> list[object]:
    """Give back a list that holds itself."""
    held: list[object] = []
    held.append(held)
    return held

class Loud(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")

def mute() -> str:
    """Fail with an error that cannot be told."""
    raise Loud
'''


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


async def _call(open_with: Opener, tool: str, options: str = "") -> tuple[str, Any]:
    """How a call of a tool without arguments ended, and with what; the run goes on."""
    script = [{"calls": [{"name": tool, "arguments": {}}]}, {"text": "I see."}]
    async with open_with(script) as talk:
        talk.agent(options, tools=TOOLS)
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        ((name, status, told),) = calls(ending.state)
        assert name == tool
        return status, told


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("refused", "ConnectionRefusedError: nobody is there"),
        ("stops", "StopIteration"),
        ("leaves", "SystemExit: 3"),
        ("leaves_async", "SystemExit: 3"),
        ("mute", "Loud"),
    ],
)
async def test_a_tool_that_raises(open_with: Opener, tool: str, words: str) -> None:
    status, told = await _call(open_with, tool)
    assert (status, words in told) == ("failed", True), told


@pytest.mark.parametrize("tool", ["shouts", "retries"])
async def test_an_error_with_many_words_is_cut(open_with: Opener, tool: str) -> None:
    status, told = await _call(open_with, tool)
    assert status == "failed"
    assert len(told) < 51_000


async def test_a_tool_whose_thread_never_ends(open_with: Opener) -> None:
    """Its thread is left behind: neither the run nor the end of the program waits for it."""
    status, told = await _call(open_with, "blocks", "tool_timeout: 0.05")
    assert (status, told) == ("failed", "blocks took longer than 0.05 s")


@pytest.mark.parametrize("tool", ["odd", "strange", "endless"])
async def test_a_result_that_is_no_data(open_with: Opener, tool: str) -> None:
    status, _ = await _call(open_with, tool)
    assert status in ("done", "failed")


@pytest.mark.parametrize("tool", ["huge", "many"])
async def test_a_result_of_a_hundred_megabytes(open_with: Opener, tool: str) -> None:
    status, told = await _call(open_with, tool)
    assert status == "done"
    assert len(told) < 51_000


@pytest.mark.parametrize(
    "matter",
    ["tools: [tools.py, more.py]", "tools: [tools.py, 'tools.py:odd']", "tools: [read_file, Read, files.py]"],
    ids=["two modules", "a module and its function", "a module and ours"],
)
async def test_a_tool_that_is_named_twice(open_with: Opener, matter: str) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent(matter=matter)
        talk.write(
            tools__py=TOOLS,
            more__py='def odd() -> str:\n    """Odd."""\n    return ""\n',
            files__py='def read_file() -> str:\n    """Read."""\n    return ""\n',
        )
        with pytest.raises(BadWorkflow, match=r"two tools are called `\w+`: in `.*` and in `.*`"):
            await talk.play()
        assert talk.provider.ledger.begun() == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("timeout: soon", "`timeout`"),
        ("timeout: 0", "`timeout`"),
        ("output_chars: -1", "`output_chars`"),
        ("on_unknown: again", "`on_unknown`"),
        ("risky: perhaps", "`risky`"),
    ],
)
async def test_what_is_said_of_a_tool_is_checked(open_with: Opener, option: str, words: str) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent(matter=f"tools:\n  - name: tools.py\n    {option}")
        talk.write(tools__py=TOOLS)
        with pytest.raises(BadWorkflow, match=words):
            await talk.play()
