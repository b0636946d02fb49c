"""The front door from outside: a short program type-checks and runs, and a checker sees real types."""

import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from orchestra import recording
from orchestra.agents.registry import KINDS
from orchestra.app.building.program_text import program_text
from orchestra.app.orchestra import Orchestra
from orchestra.config.load import parse_workflow
from tests.unit.app.building.flows import RICH, write_agents

BUILDING = import_module("orchestra.workflow")
ROOT = Path(__file__).parents[2]
PUBLIC = ("orchestra", "orchestra.recording", "orchestra.testing", "orchestra.workflow")
INTERNAL = {"order"}
"""Methods for our own command line and page."""

HELLO = """\
import anyio

from orchestra import Context, Orchestra, agent, workflow


@agent
async def greet(ctx: Context) -> str:
    return f"Hello {ctx.task}"


hello = workflow("hello").phase("greet", greet("{{ inputs.who }}", into="said"))


async def main() -> None:
    async with Orchestra() as orchestra:
        ending = await orchestra.run(hello, who="world")
        print(ending.result("greet"))


anyio.run(main)
"""

REVEALED = {
    "orchestra.BadWorkflow": "def (**data: object) -> orchestra.errors.BadWorkflow",
    "orchestra.Context.task": "str",
    "orchestra.Ending.run": "orchestra.ids.RunId",
    "orchestra.Ending.kind": "Literal['completed']",
    "orchestra.Orchestra('memory:')": "orchestra.app.orchestra.Orchestra",
    "orchestra.Orchestra.run": "-> typing.Coroutine[Any, Any, orchestra.engine.atlas.Ending]",
    "orchestra.Orchestra.state": "-> typing.Coroutine[Any, Any, orchestra.engine.run_state.RunState]",
    "orchestra.Orchestra.decisions": "list[orchestra.model.records.Decision]",
    "orchestra.CheckpointSettings().store": "str",
    "orchestra.Result(output=1).confidence": "float | None",
    "orchestra.agent_file('x.py')": "orchestra.app.building.elements.AgentRef",
    "orchestra.agent_file('x.py')('do it')": "orchestra.app.building.elements.SpecialistSpec",
    "orchestra.load_workflow('x.yaml')": "orchestra.config.load.LoadedWorkflow",
    "orchestra.workflow('x')": "orchestra.app.building.builder.WorkflowBuilder",
    "recording.open_manager()": "orchestra.checkpoint.manager.CheckpointManager",
    "recording.Snapshot": "orchestra.model.snapshot.Snapshot",
    "testing.sample_row": "orchestra.ports.store.Row",
    "evaluation('x')": "orchestra.app.building.elements.PhasePart",
}

MISUSED = """\
import orchestra
import orchestra.testing as testing
from orchestra import Orchestra, workflow

orchestra.nobody
testing.nobody
orchestra.workflow("x").phase(3)
orchestra.agent_file("x.py")("task", ino="said")
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with programs, and what mypy says of them under `--strict`."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "hello.py").write_text(HELLO)
    imports = "import orchestra\nfrom orchestra import recording, testing\n"
    imports += "from orchestra.workflow import evaluation\n"
    revealed = "".join(f"reveal_type({each})\n" for each in REVEALED)
    (folder / "revealing.py").write_text(imports + revealed)
    (folder / "misusing.py").write_text(MISUSED)
    write_agents(folder)
    printed = program_text(parse_workflow(RICH, file="rich.yaml", folder=folder, kinds=KINDS))
    (folder / "printed.py").write_text(printed, encoding="utf-8")
    names = ("hello.py", "revealing.py", "misusing.py", "printed.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return folder, done.stdout + done.stderr


def test_a_short_program_type_checks_and_runs(checked: tuple[Path, str]) -> None:
    folder, said = checked
    assert "hello.py:" not in said
    done = subprocess.run(
        [sys.executable, "hello.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("Hello world\n", "", 0)


def test_a_printed_workflow_type_checks(checked: tuple[Path, str]) -> None:
    assert "printed.py:" not in checked[1]


def test_a_type_checker_sees_the_real_types(checked: tuple[Path, str]) -> None:
    found = re.findall(r'revealing\.py:\d+: note: Revealed type is "(.*)"', checked[1])
    assert len(found) == len(REVEALED), checked[1]
    wrong = {
        name: seen for (name, wanted), seen in zip(REVEALED.items(), found, strict=True) if wanted not in seen
    }
    assert wrong == {}


def test_a_type_checker_refuses_what_is_not_there(checked: tuple[Path, str]) -> None:
    errors = re.findall(r"misusing\.py:(\d+): error: (.*)", checked[1])
    assert [int(line) for line, _ in errors] == [5, 6, 7, 8]
    assert "has no attribute" in errors[0][1]


def _annotated(kind: type) -> Iterator[Any]:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") and name not in INTERNAL:
            yield from typing.get_type_hints(method, localns={**vars(recording), **vars(BUILDING)}).values()


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and hint.__module__.startswith("orchestra"):
        yield hint
    if isinstance(hint, typing.NewType):
        yield hint  # type: ignore[misc] # it stands for a class
    for part in typing.get_args(hint):
        yield from _classes(part)


def test_everything_that_is_taken_or_returned_is_exported() -> None:
    modules = [import_module(name) for name in PUBLIC]
    known = {id(getattr(module, name)) for module in modules for name in module.__all__}
    builder = BUILDING.WorkflowBuilder
    hints = [
        *typing.get_type_hints(Orchestra.__init__).values(),
        *_annotated(Orchestra),
        *_annotated(builder),
    ]
    used = {each for hint in hints for each in _classes(hint)}
    assert len(used) > 20
    assert sorted(each.__name__ for each in used if id(each) not in known) == []


def test_the_front_door_has_about_twenty_names() -> None:
    assert 15 <= len(import_module("orchestra").__all__) <= 25
