"""A small project in a folder, and the command line as a process of its own in it.

Its agents do what files in the folder tell them: `gate` says that it began by making the file `began`, and
works until there is a file `go`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PATIENCE = 300.0
_UNWANTED = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "ORCHESTRA_TRACE", "ORCHESTRA_STORE"}

AGENTS = {
    "quick": '''
"""Writes a note."""
async def agent(ctx):
    await ctx.write("note.md", "# " + str(ctx.inputs.get("topic", "nothing")))
    await ctx.decide("Write it down", rationale="notes last longer than memory", alternatives=["forget it"])
    return ctx.inputs.get("topic")
''',
    "gate": '''
"""Works until it may go on."""
import asyncio
from pathlib import Path
async def agent(ctx):
    await ctx.save({"seen": True}, progress=0.5, step="half of it")
    Path("began").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return "through"
''',
    "asks": '''
"""Asks a person."""
async def agent(ctx):
    answer = await ctx.ask("Publish?", choices=("yes", "no"))
    return answer
''',
    "breaks": '''
"""Fails until a file says otherwise."""
from pathlib import Path
async def agent(ctx):
    if not Path("repaired").exists():
        raise RuntimeError("it is broken")
    return "whole"
''',
    "loud": '''
"""Prints, and so does a program that it starts."""
import os
import subprocess
def agent(ctx):
    print("printed by the agent")
    os.write(1, b"written by the agent\\n")
    subprocess.run(["echo", "printed by its program"], check=True)
    return 1
''',
    "needs": '''
"""Needs a key."""
async def agent(ctx):
    return len(await ctx.require("A_KEY_FOR_TESTS"))
''',
    "deaf": '''
"""Cannot be stopped."""
import time
from pathlib import Path
def agent(ctx):
    Path("began").touch()
    while True:
        try:
            time.sleep(10_000)
        except BaseException:
            pass
''',
}
WORKFLOW = """\
name: {name}
inputs:
  topic: {{type: text, default: tea}}
context:
  found: {{reducer: append}}
agents:
{agents}
policy:
  retry: {{attempts: 1}}
  recovery: {{on_failure: [fail]}}
phases:
{phases}
"""


class Project:
    """A folder with agents and workflows in which commands are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        for name, code in AGENTS.items():
            (folder / f"{name}.py").write_text(code)

    def workflow(self, *agents: str, name: str = "tiny", file: str = "flow.yaml") -> Path:
        """A workflow with a phase for each agent, in that order."""
        listed = "\n".join(f"  {each}: {each}.py" for each in dict.fromkeys(agents))
        phases = "\n".join(
            f"  p{at}:\n    specialists:\n      {each}: {{task: 'Do {each}', into: found}}"
            for at, each in enumerate(agents, start=1)
        )
        path = self.folder / file
        path.write_text(WORKFLOW.format(name=name, agents=listed, phases=phases))
        return path

    def start(self, *arguments: str, **extra: str) -> "subprocess.Popen[str]":
        """A command, started; `close` ends it if it has not ended by then."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestra", *arguments],
            cwd=self.folder,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """End what a test that failed left behind."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def environment(self, **extra: str) -> dict[str, str]:
        """The environment of commands."""
        kept = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
        return {**kept, "PYTHONPATH": str(ROOT), **extra}

    def run(self, *arguments: str, code: int | None = 0, **extra: str) -> "subprocess.CompletedProcess[str]":
        """A command, run to its end; its exit code is checked unless it is None."""
        process = self.start(*arguments, **extra)
        out, err = process.communicate(timeout=PATIENCE)
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        assert code is None or done.returncode == code, f"{done.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The one JSON document a command prints."""
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def only_run(self) -> str:
        """The id of the newest run."""
        return str(self.json("runs")[0]["run"])

    def status(self, run: str) -> str:
        """The status of a run."""
        return str(self.json("status", run)["status"])

    def wait_for(self, name: str, process: "subprocess.Popen[str]") -> None:
        """Wait until there is a file of that name."""
        self.wait_until(lambda: (self.folder / name).exists(), process)

    def wait_until(self, happened: Any, process: "subprocess.Popen[str]") -> None:
        """Wait until something holds, as long as a process lives."""
        end = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < end, "it took too long"
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)

    def go(self) -> None:
        """Let the agent at the gate go on."""
        (self.folder / "go").touch()

    def at_the_gate(self, *arguments: str) -> "subprocess.Popen[str]":
        """A run that is played by a process, whose agent works."""
        self.workflow("quick", "gate", "quick")
        process = self.start("run", "flow.yaml", "--run-id", "r1", *arguments)
        self.wait_for("began", process)
        return process


def ended(process: "subprocess.Popen[str]", code: int) -> tuple[str, str]:
    """What a process printed, once it has ended with that exit code."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f"{process.returncode}\n{out}\n{err}"
    assert "Traceback" not in err
    return out, err


def stop(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> tuple[str, str]:
    """What a process printed when it was stopped by a signal; it must not need its agents for that."""
    process.send_signal(number)
    return ended(process, 130)
