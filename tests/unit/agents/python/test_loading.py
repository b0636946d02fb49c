"""Agents are loaded by path, once per content, and take no name from anybody."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.python.kind import PythonKind, PythonOptions
from orchestra.agents.python.loading import AgentLoader, Code
from orchestra.agents.runners import Runners
from orchestra.codec.definitions import options_value
from orchestra.errors import AgentFailed, BadAgent
from orchestra.ids import AgentId
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Result
from tests.unit.agents.support import GRACE, Recorder, assignment


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def _run(folder: Path, file: str, attribute: str = "agent") -> Any:
    runners = Runners(folder, threads=2, grace=GRACE)
    options = options_value(PythonOptions(attribute=attribute))
    agent = Agent(id=AgentId("one"), kind="python", path=file, options=options)
    result = await runners.run(agent, assignment(), Recorder())
    assert isinstance(result, Result)
    return result.output


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        "async def agent(ctx): return ctx.task",
        "def agent(ctx): return ctx.task",
        "class agent:\n    async def run(self, ctx): return ctx.task",
        "class agent:\n    def run(self, ctx): return ctx.task",
        "class Any:\n    async def __call__(self, ctx): return ctx.task\nagent = Any()",
        "class Any:\n    async def run(self, ctx): return ctx.task\nagent = Any()",
        "from functools import partial\nasync def f(word, ctx): return word\nagent = partial(f, 'Do it')",
    ],
)
async def test_every_shape_of_agent_runs(tmp_path: Path, text: str) -> None:
    _file(tmp_path, "one.py", text)
    assert await _run(tmp_path, "one.py") == "Do it"


@pytest.mark.anyio
async def test_another_attribute_can_be_named(tmp_path: Path) -> None:
    _file(tmp_path, "one.py", "async def first(ctx): return 1\nasync def second(ctx): return 2")
    assert await _run(tmp_path, "one.py", "second") == 2


@pytest.mark.anyio
@pytest.mark.parametrize("line", ["from _help import word", "from ._help import word"])
async def test_helpers_are_found_at_the_top_and_inside_functions(tmp_path: Path, line: str) -> None:
    _file(tmp_path, "a/_help.py", "from _deeper import word")
    _file(tmp_path, "a/_deeper.py", "word = 'a'")
    _file(tmp_path, "b/_help.py", "word = 'b'")
    before = list(sys.path)
    for folder in "ab":
        _file(tmp_path, f"{folder}/top.py", f"{line}\nasync def agent(ctx): return word")
        _file(tmp_path, f"{folder}/inside.py", f"async def agent(ctx):\n    {line}\n    return word")
        assert await _run(tmp_path, f"{folder}/top.py") == folder
        assert await _run(tmp_path, f"{folder}/inside.py") == folder
    assert sys.path == before
    assert not {"_help", "_deeper", "agents", "a", "b", "top", "inside"} & set(sys.modules)


def test_agents_of_a_folder_share_their_helpers(tmp_path: Path) -> None:
    _file(tmp_path, "_shared.py", "class Box: pass")
    loader = AgentLoader()
    codes = [
        loader.load(_file(tmp_path, name, "import _shared as s\ndef agent(ctx): return s.Box"))
        for name in ("one.py", "two.py")
    ]
    assert codes[0].call(None) is codes[1].call(None)


def test_a_file_is_loaded_once_until_it_changes(tmp_path: Path) -> None:
    loader = AgentLoader()
    path = _file(tmp_path, "one.py", "def agent(ctx): return 1")
    first = loader.load(path)
    assert loader.load(path) is first
    assert loader.find(path, "agent") is first
    _file(tmp_path, "one.py", "def agent(ctx): return 2")
    os.utime(path, ns=(1, 1))
    assert loader.find(path, "agent") is None
    assert (first.call(None), loader.load(path).call(None)) == (1, 2)


def test_a_changed_helper_counts_too(tmp_path: Path) -> None:
    loader = AgentLoader()
    helper = _file(tmp_path, "_help.py", "word = 1")
    path = _file(tmp_path, "one.py", "import _help\ndef agent(ctx): return _help.word")
    assert loader.load(path).call(None) == 1
    _file(tmp_path, "_help.py", "word = 2")
    os.utime(helper, ns=(1, 1))
    assert loader.load(path).call(None) == 2


def test_several_threads_load_once(tmp_path: Path) -> None:
    loader = AgentLoader()
    path = _file(tmp_path, "one.py", "def agent(ctx): return 1")
    found: list[Code] = []
    threads = [threading.Thread(target=lambda: found.append(loader.load(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(code) for code in found}) == 1


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        (None, "one.py", "No such file"),
        ("def agent(ctx:\n  pass", "one.py:1", "never closed"),
        ("x = 1\ny = \n", "one.py:2", "invalid syntax"),
        ("x = '\0'", "one.py", "null byte"),
        ("other = 1", "one.py", "it has no 'agent'"),
        ("def other(ctx): pass", "one.py", "it has other"),
        ("agent = 7", "one.py:agent", "of type int, which cannot be called"),
        ("class agent: pass", "one.py:agent", "no method `run`"),
        ("async def agent(ctx):\n    yield 1", "one.py:agent", "it yields"),
        ("def agent(ctx):\n    yield 1", "one.py:agent", "it yields"),
        ("x = 1\n1 / 0", "one.py:2", "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)", "one.py:2", "SystemExit: 3"),
        ("import _nowhere", "one.py:1", "No module named '_nowhere'"),
        ("raise KeyboardInterrupt", "one.py:1", "KeyboardInterrupt"),
    ],
)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, text: str | None, place: str, reason: str) -> None:
    if text is not None:
        _file(tmp_path, "one.py", text)
    with pytest.raises(BadAgent) as caught:
        AgentLoader().load(tmp_path / "one.py", agent="structure")
    assert "'structure'" in str(caught.value)
    assert str(caught.value.data["place"]).endswith(place)
    assert reason in str(caught.value)


def test_an_error_in_a_helper_is_placed_there(tmp_path: Path) -> None:
    _file(tmp_path, "_help.py", "x = 1\nraise ValueError('no')")
    path = _file(tmp_path, "one.py", "import _help")
    with pytest.raises(BadAgent, match=r"_help\.py:2"):
        AgentLoader().load(path)


def test_an_agent_is_described_without_being_run(tmp_path: Path) -> None:
    path = _file(tmp_path, "one.py", '"""Counts things.\n\nAt length.\n"""\nraise SystemExit')
    describe = PythonKind().describe
    assert describe(path) == "Counts things."
    assert describe(_file(tmp_path, "two.py", "x = 1")) == ""
    with pytest.raises(BadAgent):
        describe(tmp_path / "three.py")


@pytest.mark.anyio
async def test_a_function_that_was_not_given_is_named(tmp_path: Path) -> None:
    runners = Runners(tmp_path, {"two": lambda ctx: 2})
    with pytest.raises(AgentFailed, match="no function was given for it; given are: two"):
        await runners.run(Agent(id=AgentId("one"), kind="function"), assignment(), Recorder())
