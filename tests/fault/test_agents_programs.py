"""Programs that never end, flood, die or outlive their parent. Real processes, real signals."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.agents.runners import Runners
from orchestra.errors import AgentFailed
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Emitted, Report, Saved
from tests.tidy.project import ROOT
from tests.unit.agents import support
from tests.unit.agents.support import GRACE, Recorder, assignment, command_agent, run_bash

pytestmark = pytest.mark.anyio
DEATH_SECONDS = 180.0


class Pids(Recorder):
    """Takes the process ids that an agent emits, one to a line, and says when all are there."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self.wanted = wanted
        self.pids: list[int] = []
        self.all_there = anyio.Event()

    def send(self, report: Report, /) -> None:
        super().send(report)
        assert isinstance(report, Emitted)
        self.pids += [int(pid) for pid in report.text.split()]
        if len(self.pids) == self.wanted:
            self.all_there.set()


def is_dead(pid: int) -> bool:
    """Whether a process ends soon; told by the kernel, not by looking again and again."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEATH_SECONDS)[0])
    finally:
        os.close(descriptor)


async def cancelled(agent: Agent, link: Pids, folder: Path = Path(), grace: float = 0.2) -> None:
    runners = Runners(folder, grace=grace)
    async with anyio.create_task_group() as group:
        group.start_soon(runners.run, agent, assignment(), link)
        await link.all_there.wait()
        group.cancel_scope.cancel()


def process_agent(folder: Path, text: str) -> Agent:
    (folder / "one.py").write_text(text)
    return support.process_agent()


EMIT_PIDS = """printf '{"type": "emitted", "text": "%s"}\\n' "$$ $!" """


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
async def test_a_cancelled_program_is_killed_with_its_children(trap: str) -> None:
    link = Pids(2)
    await cancelled(command_agent("bash", "-c", f"{trap} sleep 600 & {EMIT_PIDS}; wait; sleep 600"), link)
    assert [is_dead(pid) for pid in link.pids] == [True, True]


async def test_a_program_is_told_before_it_is_killed() -> None:
    link = Pids(2)
    script = f"""
    trap 'echo "{{\\"type\\": \\"saved\\", \\"private\\": 1}}"; exit 0' TERM
    sleep 600 & {EMIT_PIDS}
    wait"""
    await cancelled(command_agent("bash", "-c", script), link, grace=GRACE)
    assert link.reports[-1] == Saved(private=1)


async def test_a_process_that_swallows_everything_is_killed(tmp_path: Path) -> None:
    text = """
import os, signal, time
def agent(ctx):
    ctx.emit(str(os.getpid()))
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""
    link = Pids(1)
    await cancelled(process_agent(tmp_path, text), link, tmp_path)
    assert is_dead(link.pids[0])


async def test_a_process_that_blocks_its_loop_is_killed(tmp_path: Path) -> None:
    text = "import os, time\nasync def agent(ctx):\n    ctx.emit(str(os.getpid()))\n    time.sleep(600)"
    link = Pids(1)
    await cancelled(process_agent(tmp_path, text), link, tmp_path)
    assert is_dead(link.pids[0])


async def test_a_process_saves_before_it_ends(tmp_path: Path) -> None:
    text = """
import os, anyio
async def agent(ctx):
    try:
        ctx.emit(str(os.getpid()))
        await anyio.sleep_forever()
    finally:
        await ctx.save("kept")
"""
    link = Pids(1)
    await cancelled(process_agent(tmp_path, text), link, tmp_path, grace=GRACE)
    assert link.reports[-1] == Saved(private="kept")


async def test_a_cancelled_start_leaves_nothing_behind() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await Runners(Path()).run(command_agent("sleep", "600"), assignment(), Recorder())
    assert scope.cancelled_caught


@pytest.mark.parametrize("blocks", ["time.sleep(600)", "await anyio.sleep_forever()"])
def test_a_process_dies_with_its_parent(tmp_path: Path, blocks: str) -> None:
    process_agent(
        tmp_path,
        f"import os, time, anyio\nasync def agent(ctx):\n    ctx.emit(str(os.getpid()))\n    {blocks}",
    )
    program = f"""
import anyio
from pathlib import Path
from orchestra.agents.runners import Runners
from tests.unit.agents.support import Recorder, assignment, process_agent

class Printing(Recorder):
    def send(self, report):
        print(report.text, flush=True)

anyio.run(Runners(Path({str(tmp_path)!r})).run, process_agent(), assignment(), Printing())
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        assert is_dead(child)


# --- floods


async def _failure(script: str, **changes: Any) -> dict[str, Any]:
    with pytest.raises(AgentFailed) as caught:
        await run_bash(script, **changes)
    return dict(caught.value.data)


async def test_an_endless_line_is_stopped() -> None:
    data = await _failure("head -c 2G /dev/zero | tr '\\0' x")
    assert data["error"] == "TooMuchOutput"
    assert "line 1 is longer than 16 MB" in data["message"]


async def test_an_endless_flood_of_garbage_is_stopped_at_its_first_line() -> None:
    data = await _failure("yes garbage")
    assert data["error"] == "GarbageLine"


async def test_a_flood_of_fair_lines_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestra.agents.command.program.AGENT_OUTPUT_BYTES", 1024 * 1024)
    data = await _failure("""yes '{"type": "emitted", "text": "on and on"}'""")
    assert data["error"] == "TooMuchOutput"
    assert "it wrote more than 1 MB" in data["message"]


async def test_a_flood_of_complaints_is_stopped_and_its_end_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestra.agents.command.program.AGENT_OUTPUT_BYTES", 1024 * 1024)
    data = await _failure("yes trouble >&2")
    assert data["error"] == "ProgramFailed"
    assert "killed by signal 9" in data["message"]
    assert "wrote too much" in data["details"]["stderr"]
    assert len(data["details"]["stderr"]) < 9 * 1024


async def test_more_calls_than_are_taken_at_once_wait() -> None:
    link = Recorder()
    script = """for i in {1..300}; do echo '{"type": "saved", "id": 1, "private": '$i'}'; done
    echo '{"type": "result"}'"""
    await run_bash(script, link)
    assert [report.private for report in link.reports if isinstance(report, Saved)] == list(range(1, 301))


@pytest.mark.parametrize("size", [1, 8, 15])
async def test_large_results_within_the_limit_arrive(size: int) -> None:
    script = (
        f"""printf '{{"type": "result", "output": "'; head -c {size}M /dev/zero | tr '\\0' x; echo '"}}'"""
    )
    result = await run_bash(script)
    assert len(getattr(result, "output")) == size * 1024 * 1024  # noqa: B009


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_many_programs_leave_no_descriptor_and_no_process_behind() -> None:
    async def once(script: str) -> None:
        with suppress(AgentFailed):
            await run_bash(script)

    scripts = ["""echo '{"type": "result"}'""", "echo garbage", "exit 3", "sleep 60 & echo garbage; wait"]
    await once(scripts[0])
    before = descriptors()
    for script in scripts * 5:
        await once(script)
    assert descriptors() <= before
