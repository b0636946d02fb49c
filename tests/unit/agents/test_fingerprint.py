"""The key that decides whether a result is used again follows from everything an agent is made of."""

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.agents.command.kind import CommandKind, CommandOptions
from orchestra.agents.llm.kind import LimitOptions
from orchestra.agents.python import kind as python_kind
from orchestra.agents.python.kind import PythonKind, PythonOptions
from orchestra.agents.registry import KINDS
from orchestra.codec.address import Addresser
from orchestra.codec.definitions import options_value
from orchestra.codec.values import freeze, thaw
from orchestra.engine.view import View
from orchestra.ids import AgentId, Digest, Instant, RunId
from orchestra.limits import AGENT_FILE_BYTES
from orchestra.model.apply.apply import begin
from orchestra.model.events import RunStarted
from orchestra.model.state import WorkflowRef
from orchestra.model.workflow import Agent, Workflow

WORDS = {"isolation": "process", "limits": LimitOptions(requests=1)}
"""Values of options that cannot be any text."""
HELPER = AgentId("helper")
_ADDRESSER = Addresser()


def _agent(**changes: Any) -> Agent:
    return Agent(**{"id": AgentId("one"), "kind": "python", **changes})


def _key(agent: Agent) -> Digest:
    workflow = Workflow(name="x", agents=(agent, _agent(id=HELPER)))
    held = WorkflowRef(name="x", digest=None)
    state = begin(RunStarted(at=Instant(0), run=RunId("x"), workflow=held))
    return View(workflow, state, thaw, _ADDRESSER).key(agent.id, "Do it", [])


def _another(field: "attrs.Attribute[Any]") -> Any:
    """A value that a field does not have."""
    if field.default is attrs.NOTHING:
        return AgentId("another")
    if isinstance(field.default, tuple):
        return (HELPER,)
    return "another" if isinstance(field.default, str) else freeze({"another": 1}, _ADDRESSER)


@pytest.mark.parametrize("field", attrs.fields(Agent), ids=lambda field: str(field.name))
def test_the_key_follows_from_every_field(field: "attrs.Attribute[Any]") -> None:
    agent = _agent()
    changed = attrs.evolve(agent, **{field.name: _another(field)})
    assert _key(changed) != _key(agent)
    assert _key(attrs.evolve(agent)) == _key(agent)


OPTIONS = [(kind.options, field) for kind in KINDS.kinds for field in attrs.fields(kind.options)]


@pytest.mark.parametrize(
    ("options", "field"), OPTIONS, ids=[f"{of.__name__}.{field.name}" for of, field in OPTIONS]
)
def test_the_key_follows_from_every_option(options: type[Any], field: "attrs.Attribute[Any]") -> None:
    needed = {each.name: ("env",) for each in attrs.fields(options) if each.default is attrs.NOTHING}
    other = ("another",) if isinstance(field.default, tuple) or field.name in needed else "another"
    before = options(**needed)
    after = options(**{**needed, field.name: WORDS.get(field.name, other)})
    assert _key(_agent(options=options_value(after))) != _key(_agent(options=options_value(before)))


def test_the_fingerprint_follows_from_the_file_and_its_helpers(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def agent(ctx): return 1")
    agent, kind, seen = _agent(path="one.py"), PythonKind(), set()
    for name, text in (("one.py", "x = 1"), ("_help.py", "y = 1"), ("_help.py", "y = 2"), ("_more.py", "")):
        seen.add(kind.fingerprint(agent, tmp_path))
        (tmp_path / name).write_text(text)
    seen.add(kind.fingerprint(agent, tmp_path))
    assert len(seen) == 5
    (tmp_path / "two.py").write_text("z = 1")  # another agent
    assert kind.fingerprint(agent, tmp_path) in seen


def test_that_of_a_process_follows_from_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.py").write_text("x = 1")
    local = _agent(path="one.py")
    process = attrs.evolve(local, options=options_value(PythonOptions(isolation="process")))
    kind = PythonKind()
    before = kind.fingerprint(local, tmp_path), kind.fingerprint(process, tmp_path)
    assert sys.executable in python_kind.INTERPRETER
    monkeypatch.setattr(python_kind, "INTERPRETER", "another")
    assert kind.fingerprint(local, tmp_path) == before[0]
    assert kind.fingerprint(process, tmp_path) not in before


def test_that_of_a_command_follows_from_its_program_and_script(tmp_path: Path) -> None:
    def found(*command: str) -> str:
        options = options_value(CommandOptions(command=command))
        return CommandKind().fingerprint(_agent(kind="command", options=options), tmp_path)

    for name in ("tool", "agent.sh", "data.json"):
        (tmp_path / name).write_text("1")
    assert found("env") == found("env", "./data.json") == found("env", "agent.sh") == ""
    command = ("./tool", "-x", "./agent.sh", "./data.json")
    seen = {found(*command)}
    (tmp_path / "data.json").write_text("2")  # the program itself may have written it
    assert found(*command) in seen
    for name in ("tool", "agent.sh"):
        (tmp_path / name).write_text("2")
        seen.add(found(*command))
    (tmp_path / "tool").write_bytes(bytes(AGENT_FILE_BYTES + 1))
    assert len({*seen, found(*command)}) == 4
