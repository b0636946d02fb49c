"""Kinds of agents: ours, others', two of one claim, and those that cannot be imported."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from orchestra.agents import registry
from orchestra.agents.attempt import start_attempt
from orchestra.agents.registry import GROUP, OURS, KindRegistry, Offer
from orchestra.agents.runners import Runners
from orchestra.codec.definitions import (
    definition_from_plain,
    definition_to_plain,
    options_value,
    read_options,
)
from orchestra.config.load import parse_workflow
from orchestra.config.schema import schema
from orchestra.errors import AgentFailed, BadAgentKind, BadWorkflow, Damaged
from orchestra.ids import AgentId
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Link, Result, Stop
from orchestra.ports.agent_kind import AgentKind, AgentMistake, Workplace, option
from tests.unit.agents.support import Recorder, assignment


@attrs.frozen(kw_only=True)
class Limits:
    """How far a robot goes."""

    steps: int = option(10, help="At most so many steps.")


@attrs.frozen(kw_only=True)
class RobotOptions:
    """The keys of robots."""

    robot: str = option(help="Its name.")
    limits: Limits | None = option(None, help="How far it goes.")
    tools: tuple[str, ...] = option((), help="What it may use.")


class RobotRunner:
    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        async def run() -> Result:
            return Result(output=read_options(agent, RobotOptions).robot)

        return start_attempt(run(), ended)


class RobotKind(AgentKind):
    """Robots."""

    name = claim = "robot"
    options: ClassVar[Any] = RobotOptions

    def mistakes(self, agent: Agent, folder: Path) -> Iterator[AgentMistake]:
        if read_options(agent, RobotOptions).robot == "rust":
            yield ("robot",), "it does not move any more"

    def fingerprint(self, agent: Agent, folder: Path) -> str:
        return "f1"

    def make_runner(self, place: Workplace) -> RobotRunner:
        return RobotRunner()


class FileKind(RobotKind):
    """Robots in files."""

    name, claim = "bot", ".bot"
    options = Limits

    def mistakes(self, agent: Agent, folder: Path) -> Iterator[AgentMistake]:
        return iter(())


class Misnamed(RobotKind):
    name = "other"


class Taken(RobotKind):
    options = attrs.make_class("Options", {"robot": option(help=""), "path": option(help="")}, frozen=True)


class Keyless(RobotKind):
    options = Limits


class Plain(RobotKind):
    options = dict


Announce = Callable[..., KindRegistry]


class Package(Distribution):
    """A distribution of which nothing but the name is known."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read_text(self, filename: str) -> str | None:
        return f"Name: {self._name}\nVersion: 1\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


@pytest.fixture
def announce(monkeypatch: pytest.MonkeyPatch) -> Announce:
    """A registry in a world where packages announce kinds: (package, claim, value)."""

    def announce(*points: tuple[str, str, str]) -> KindRegistry:
        found = []
        for package, name, value in points:
            point = EntryPoint(name, value, GROUP)
            vars(point).update(dist=Package(package))
            found.append(point)
        monkeypatch.setattr(registry, "_announced", lambda: found)
        return KindRegistry()

    return announce


HERE = __name__
ROBOT = ("robots", "robot", f"{HERE}:RobotKind")


def problems(text: str, kinds: KindRegistry, folder: Path) -> list[str]:
    with pytest.raises(BadWorkflow) as caught:
        load(text, kinds, folder)
    return str(caught.value).splitlines()[:-1]


def load(text: str, kinds: KindRegistry, folder: Path) -> tuple[Agent, ...]:
    whole = f"name: x\nagents: {text}\nphases: {{p: {{}}}}\n"
    return parse_workflow(whole, file="flow.yaml", folder=folder, kinds=kinds).workflow.agents


def test_ours_are_found_by_claim_and_by_name() -> None:
    kinds = KindRegistry()
    assert [kinds.by_name(offer.name).name for offer in OURS] == ["python", "command", "llm", "function"]
    assert kinds.find(".py") is kinds.by_name("python")
    assert kinds.claims == (".py", "command", ".md")
    assert kinds.find("") is None


def test_only_what_is_not_ours_is_looked_for_in_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "_announced", lambda: pytest.fail("looked through"))
    (tmp_path / "one.py").write_text("def agent(ctx): ...")
    assert len(load("{a: one.py, b: {command: env, environment: A}}", KindRegistry(), tmp_path)) == 2


def test_a_kind_of_another_package_is_written_checked_and_kept(announce: Announce, tmp_path: Path) -> None:
    kinds = announce(ROBOT, ("bots", ".bot", f"{HERE}:FileKind"))
    robot, bot = load("{a: {robot: robbie, limits: {steps: 3}, tools: [arm]}, b: x.bot}", kinds, tmp_path)
    assert (robot.kind, robot.source, bot.kind, bot.path) == ("robot", "f1", "bot", "x.bot")
    made = RobotOptions(robot="robbie", limits=Limits(steps=3), tools=("arm",))
    assert read_options(robot, RobotOptions) == made
    plain = definition_to_plain(robot)
    assert plain["limits"] == {"steps": 3}
    assert definition_from_plain(plain, Agent, what="an agent") == robot
    assert kinds.by_name("bot") is kinds.find(".bot")
    keys = schema(kinds.kinds)["$defs"]
    assert keys["RobotAgent"]["required"] == ["robot"]
    assert keys["BotAgent"]["properties"]["path"]["pattern"] == r"\.bot$"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a: {robot: rust}}", "2:21: it does not move any more"),
        ("{a: {robot: 3}}", "2:21: `robot`: a text is needed, not the number 3; put it in quotes"),
        ("{a: {robot: r, limits: {stps: 3}}}", "2:33: unknown key `stps`; did you mean `steps`?"),
        ("{a: {robot: r, limits: {steps: x}}}", "2:40: `steps`: a whole number is needed, not 'x'"),
        ("{a: {robot: r, command: env}}", "2:24: an agent has a `robot` or a `command`, not both"),
        ("{a: {path: one.py, robot: r}}", "2:28: an agent has a `path` or a `robot`, not both"),
        ("{a: x.txt}", "2:13: `x.txt` is of no known kind of agent; use a file that ends in `.py` or `.md`,"
         " or give a `command` or a `robot`"),
        ("{a: {robt: r}}", "2:14: unknown key `robt`; did you mean `robot`?"),
        ("{a: {description: r}}", "2:10: the agent `a` needs a `path` or a `command` or a `robot`"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(announce: Announce, tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "one.py").write_text("def agent(ctx): ...")
    assert f"flow.yaml:{expected}" in problems(text, announce(ROBOT), tmp_path)


def test_a_kind_that_is_registered_twice_names_both_packages(announce: Announce, tmp_path: Path) -> None:
    kinds = announce(ROBOT, ("androids", "robot", f"{HERE}:RobotKind"))
    (found,) = problems("{a: {robot: r}}", kinds, tmp_path)
    assert found.startswith(
        "flow.yaml:2:14: Agents of the kind 'robot' cannot be used: it is registered twice"
    )
    assert "by robots and androids" in found
    assert "pip uninstall androids" in found


def test_ours_are_not_taken_over(announce: Announce, tmp_path: Path) -> None:
    kinds = announce(("robots", "command", f"{HERE}:RobotKind"))
    assert load("{a: {command: env}}", kinds, tmp_path)[0].kind == "command"
    with pytest.raises(BadAgentKind, match="registered twice, by orchestra and robots"):
        kinds.kinds  # noqa: B018


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("a_module_that_is_not_there:Kind", "robots"), ("a_module_that_is_not_there:Kind [arm]", "robots[arm]")],
)
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    announce: Announce, tmp_path: Path, value: str, wanted: str
) -> None:
    kinds = announce(("robots", "robot", value), ("bots", ".bot", value))
    (found,) = problems("{a: {robot: r}}", kinds, tmp_path)
    assert found.startswith("flow.yaml:2:14: ")
    assert "No module named 'a_module_that_is_not_there'" in found
    assert f"pip install '{wanted}'" in found
    (found,) = problems("{a: x.bot}", kinds, tmp_path)
    assert found.startswith("flow.yaml:2:13: Agents of the kind '.bot' cannot be used")


def test_a_kind_of_ours_may_need_an_extra(tmp_path: Path) -> None:
    def load_kind() -> AgentKind:
        raise ModuleNotFoundError("No module named 'a_model'")

    kinds = KindRegistry((*OURS, Offer("model", ".prompt", load_kind, extra="model")))
    (found,) = problems("{a: x.prompt}", kinds, tmp_path)
    assert "pip install 'orchestra[model]'" in found


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("RobotOptions", "cannot be imported"),
        ("HERE", "is not an AgentKind"),
        ("Misnamed", "is called 'other' and claims 'robot'"),
        ("Taken", "has options that all agents have: path"),
        ("Keyless", "has no option 'robot', which it claims"),
        ("Plain", "has options that are no attrs class"),
    ],
)
def test_what_is_announced_can_be_wrong(announce: Announce, kind: str, reason: str) -> None:
    with pytest.raises(BadAgentKind, match=reason):
        announce(("robots", "robot", f"{HERE}:{kind}")).find("robot")


@pytest.mark.anyio
async def test_a_runner_is_made_for_each_kind(announce: Announce, tmp_path: Path) -> None:
    runners = Runners(tmp_path, kinds=announce(ROBOT))
    options = options_value(RobotOptions(robot="robbie"))
    robot = Agent(id=AgentId("one"), kind="robot", options=options)
    assert await runners.run(robot, assignment(), Recorder()) == Result(output="robbie")
    with pytest.raises(AgentFailed, match="There are python, command, llm, function, robot") as caught:
        await runners.run(attrs.evolve(robot, kind="gone"), assignment(), Recorder())
    assert caught.value.data["recoverable"] is False


def test_stored_options_that_do_not_fit_are_damage() -> None:
    agent = definition_from_plain({"id": "a", "kind": "robot", "wheels": 4}, Agent, what="an agent")
    with pytest.raises(Damaged, match="the options of an agent"):
        read_options(agent, RobotOptions)


def test_definitions_of_before_are_read_and_written_as_they_were() -> None:
    old = {
        "id": "a",
        "kind": "python",
        "path": "a.py",
        "attribute": "x",
        "isolation": "process",
        "source": "0",
    }
    assert definition_to_plain(definition_from_plain(old, Agent, what="an agent")) == old


def test_naming_our_kinds_loads_no_runner() -> None:
    script = (
        "import sys\nfrom orchestra.agents.registry import KINDS\nKINDS.find('.py')\nKINDS.find('command')\n"
        "heavy = 'importlib.metadata', 'asyncio', 'orchestra.agents.command.runner'\n"
        "print(*(each for each in heavy if each in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("\n", "")
