"""Python agents in a process of their own: the same agent, the same result, and a death that is told."""

import os
from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.runners import Runners
from orchestra.errors import AgentFailed
from orchestra.limits import AGENT_LINE_BYTES
from orchestra.ports.agent import Emitted, Judgement, Result, RubricLine, Saved, Wrote
from tests.unit.agents.support import GRACE, Recorder, assignment, process_agent

pytestmark = pytest.mark.anyio


async def run(
    folder: Path, text: str, link: Recorder | None = None, *, grace: float = GRACE, **changes: Any
) -> Result | Judgement:
    (folder / "one.py").write_text(text)
    runners = Runners(folder, grace=grace)
    return await runners.run(process_agent(), assignment(**changes), link or Recorder())


async def _failure(folder: Path, text: str, **changes: Any) -> dict[str, Any]:
    with pytest.raises(AgentFailed) as caught:
        await run(folder, text, **changes)
    return dict(caught.value.data)


async def test_an_async_agent_sees_and_says_the_same_as_at_home(tmp_path: Path) -> None:
    text = """
import os
from _help import word
async def agent(ctx):
    print("to stderr")
    ctx.on_save(lambda: {"on": "save"})
    await ctx.save({"n": (1, b"x")}, progress=0.5)
    ctx.emit(ctx.task)
    answer = await ctx.ask("Go?")
    done = await ctx.effect("post", lambda key: key)
    path = await ctx.write("a.bin", b"\\0" * 3_000_000)
    small = await ctx.write("b.txt", "text")
    return [answer, done, path, small, word, ctx.inputs["x"], os.getpid()]
"""
    (tmp_path / "_help.py").write_text("word = 'helped'")
    link = Recorder({"Go?": "yes"})
    workspace = tmp_path / "w"
    workspace.mkdir()
    result = await run(
        tmp_path,
        text,
        link,
        inputs={"x": {"$odd": (1, 2)}},
        workspace=str(workspace),
        feedback=("a",),
        rubric=(RubricLine(name="depth"),),
    )
    assert isinstance(result, Result)
    *rest, pid = result.output
    assert rest == [
        "yes",
        "demo_1/job/1/one/0/post",
        "outputs/a.bin",
        "outputs/b.txt",
        "helped",
        {"$odd": (1, 2)},
    ]
    assert pid != os.getpid()
    assert link.reports[:2] == [Saved(private={"n": (1, b"x")}, progress=0.5), Emitted(text="Do it")]
    assert link.reports[-2] == Wrote(path="a.bin", content=b"\0" * 3_000_000)
    assert list(workspace.iterdir()) == []


async def test_a_plain_agent_and_an_evaluator(tmp_path: Path) -> None:
    assert await run(tmp_path, "def agent(ctx):\n    ctx.save(1)\n    return 7") == Result(output=7)
    text = "class agent:\n    def run(self, ctx): return {'scores': {'depth': 1}}"
    assert await run(tmp_path, text, role="apollo") == Judgement(scores={"depth": 1.0})


async def test_progress_is_asked_for_across_the_pipe(tmp_path: Path) -> None:
    class Asking(Recorder):
        def on_save(self, ask: Any, /) -> None:
            super().on_save(ask)
            assert ask() is None

    link = Asking()
    text = """
import anyio
async def agent(ctx):
    asked = anyio.Event()
    def progress():
        asked.set()
        return {"at": 3}
    ctx.on_save(progress)
    await asked.wait()
"""
    await run(tmp_path, text, link)
    assert link.reports == [Saved(private={"at": 3})]


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ("raise ValueError('no')", "ValueError", "no"),
        ("raise SystemExit(3)", "SystemExit", "3"),
        ("import os; os._exit(3)", "ProgramFailed", "exit code 3"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "ProgramFailed",
            "the program was killed by signal 9 (SIGKILL)",
        ),
        (
            "import ctypes; ctypes.string_at(0)",
            "ProgramFailed",
            "the program was killed by signal 11 (SIGSEGV)",
        ),
        ("return object()", "UnstorableValue", "cannot be stored exactly"),
        ("await ctx.save(object())", "UnstorableValue", "cannot be stored exactly"),
        ("import os; os.close(2); os._exit(0)", "NoResult", "without a result"),
    ],
)
async def test_every_end_is_one_failure(tmp_path: Path, body: str, error: str, words: str) -> None:
    data = await _failure(tmp_path, f"async def agent(ctx):\n    {body}")
    assert data["error"] == error
    assert words in data["message"]


async def test_the_failure_has_the_agents_stack_and_stderr(tmp_path: Path) -> None:
    text = "import sys\nasync def agent(ctx):\n    print('bad', file=sys.stderr)\n    1 / 0"
    data = await _failure(tmp_path, text)
    assert "one.py" in data["stack"]
    assert "1 / 0" in data["stack"]
    assert "frames of orchestra" in data["stack"]
    assert "runners" not in data["stack"]
    assert data["details"] == {"stderr": "bad"}


async def test_a_crash_shows_where_python_was(tmp_path: Path) -> None:
    data = await _failure(tmp_path, "import signal\ndef agent(ctx):\n    signal.raise_signal(11)")
    assert data["details"]["exit_code"] == 139
    assert data["details"]["signal"] == 11
    assert "one.py" in data["details"]["stderr"]


async def test_what_cannot_be_loaded_will_not_do_next_time(tmp_path: Path) -> None:
    data = await _failure(tmp_path, "def agent(ctx:\n")
    assert data["error"] == "BadAgent"
    assert "one.py:1" in data["message"]
    assert data["recoverable"] is False


async def test_a_result_above_the_limit_is_refused_with_its_size(tmp_path: Path) -> None:
    data = await _failure(tmp_path, f"async def agent(ctx): return 'x' * {AGENT_LINE_BYTES}")
    assert data["error"] == "TooMuchOutput"
    assert str(AGENT_LINE_BYTES)[:4] in data["message"]


async def test_an_error_of_the_engine_reaches_the_agent_only_as_words(tmp_path: Path) -> None:
    text = """
async def agent(ctx):
    try:
        ctx.emit("fine")
        await ctx.limited(-1)
    except ValueError as error:
        return str(error)
"""
    result = await run(tmp_path, text)
    assert isinstance(result, Result)
    assert "seconds of limited must be" in result.output


async def test_the_environment_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "s")
    result = await run(tmp_path, "import os\nasync def agent(ctx): return 'SECRET_KEY' in os.environ")
    assert result == Result(output=False)


async def test_the_folder_it_works_in_cannot_replace_modules(tmp_path: Path) -> None:
    (tmp_path / "anyio.py").write_text("raise SystemExit(9)")
    text = "async def agent(ctx): return 1"
    assert await run(tmp_path, text, project=str(tmp_path)) == Result(output=1)
