"""Workflows built in Python are those of files: the same values, the same checks, told with their lines."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.agents.registry import KINDS
from orchestra.app.building.builder import WorkflowBuilder, workflow
from orchestra.app.building.elements import (
    AgentRef,
    RecoveryOptions,
    SourceLine,
    agent,
    agent_command,
    agent_entry,
    agent_file,
    ask,
    evaluation,
    spawn,
    to,
)
from orchestra.codec.address import Addresser
from orchestra.config.load import parse_workflow
from orchestra.engine.start import definition_digest
from orchestra.errors import BadWorkflow
from orchestra.model.workflow import Workflow
from tests.unit.app.building.flows import RICH, write_agents

HERE = Path(__file__)


RECOVERY: RecoveryOptions = {
    "auto": False,
    "max_recoveries": 1,
    "timeout": "1m",
    "fallback_to_previous": False,
    "on_failure": ["restart", "fail"],
}


def rich() -> WorkflowBuilder:
    """The workflow of `RICH`."""
    one = agent_file(
        "one.py",
        attribute="other",
        isolation="process",
        description="d",
        settings={"deep": 1},
        environment=["HOME"],
    )
    two = agent_command(["sh", "-c", "true"], name="two", description="shells")
    three = agent_entry("three", {"path": "three.py"})
    first = one("Look at {{ item }}", foreach="inputs.items", into="found", threshold=0.6, breakpoint=True)
    return (
        workflow("rich", description="All that a file can say.")
        .input("items", type="list", default=[1, 2], help="what to look at")
        .input("mode", choices=["mild", "strict"], default="mild")
        .input("token", type="text", secret=True, required=False)
        .context("found", "append")
        .context("total", "sum", initial=1)
        .agents(one, two)
        .policy(
            confidence={"threshold": 0.7, "watch": (0.5, 0.7), "rollback_factor": 0.8},
            retry={"attempts": 2, "backoff": "10ms", "max_backoff": 1, "timeout": None},
            recovery=RECOVERY,
            concurrency=3,
            max_iterations=9,
            grace=2.0,
            limits={"requests": 9, "cost": 1.5, "on_limit": "ask"},
        )
        .price("openai:*", input=1.5, output=2)
        .price("mistral:x", input=1, output=2, cache_read=0.5, cache_write=3)
        .phase(
            "look",
            first,
            one(
                name="again",
                needs=[first],
                when='inputs.mode == "mild"',
                retry={"attempts": 1},
                timeout="3s",
                outputs="a",
            ),
            three(
                "Look at all", on_failure=["restart", "substitute"], substitute=two, into="total", when=False
            ),
            description="Look at each.",
            evaluate=evaluation(
                three,
                "J",
                threshold=0.9,
                rubric={"proof": 2, "reach": 1},
                rounds=2,
                retry={"attempts": 5},
            ),
            on_low_confidence=[
                spawn("three", agent=two, max=2),
                ask("Go on?", choices=["go", "stop"]),
                "proceed",
            ],
            next=[to("look", when='evaluation.verdict == "revise" and visits.look < 3'), to("rest")],
            max_visits=3,
            timeout="10m",
            limits={"tokens": 100, "tool_calls": 3, "seconds": 4},
            breakpoint=True,
        )
        .phase("rest", two("Rest"))
        .phase("idle", next="end")
    )


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with agents, in which workflows of this file count as built."""
    write_agents(tmp_path)
    for module in ("builder", "elements"):
        monkeypatch.setattr(f"orchestra.app.building.{module}.caller", _caller_in(tmp_path))
    return tmp_path


def _caller_in(folder: Path) -> Callable[[], Any]:
    return lambda: SourceLine(str(folder / "program.py"), 1)


def test_a_program_and_a_file_give_the_same_workflow(beside: Path) -> None:
    written = parse_workflow(RICH, file="rich.yaml", folder=beside, kinds=KINDS)
    built = rich().build()
    assert built.workflow == written.workflow
    assert built.settings == written.settings
    assert _digest(built.workflow) == _digest(written.workflow)


def test_only_where_the_code_is_tells_a_function_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text("async def agent(ctx): ...\n")
    text = "name: hello\ninputs: {who: }\ncontext: {said: }\nagents: {greet: greet.py}\n"
    phases = (
        'phases: {a: {specialists: {greet: {task: "{{ inputs.who }}", into: said}}}, '
        "b: {specialists: {greet: }}}"
    )
    written = parse_workflow(text + phases, file="hello.yaml", folder=tmp_path, kinds=KINDS).workflow
    built = workflow("hello").phase("a", greet("{{ inputs.who }}", into="said")).phase("b", greet()).build()
    assert [each.kind for each in built.workflow.agents] == ["function"]
    assert built.workflow.agents[0].source != ""
    assert attrs.evolve(built.workflow, agents=written.agents) == written


def _digest(made: Workflow) -> bytes:
    return definition_digest(made, Addresser())


@agent
async def greet(ctx: Any) -> str:
    return f"Hello {ctx.task}"


@agent(name="look", retry={"attempts": 2, "backoff": "1s"}, timeout="9s", on_failure="degrade")
def look_closely(ctx: Any) -> str:
    return "seen"


def _phase(made: WorkflowBuilder) -> Any:
    return made.build().workflow.phases[0]


def test_a_function_keeps_its_name_and_its_code() -> None:
    assert (greet.name, look_closely.name) == ("greet", "look")
    assert look_closely.function(None) == "seen"


def test_options_of_an_agent_hold_for_its_specialists_unless_they_say_otherwise() -> None:
    one, two = _phase(
        workflow("x").phase("p", look_closely(), look_closely(name="b", timeout="1s", on_failure=["fail"]))
    ).specialists
    assert (one.retry.attempts, one.retry.timeout_us, one.on_failure) == (2, 9_000_000, ("degrade",))
    assert (two.retry.attempts, two.retry.timeout_us, two.on_failure) == (2, 1_000_000, ("fail",))


def test_next_means_what_it_means_in_a_file(tmp_path: Path) -> None:
    write_agents(tmp_path)
    phases = "{a: {specialists: {three: }}, b: {specialists: {three: }, next: c}, c: {next: []}}"
    text = f"name: x\nagents: {{three: three.py}}\nphases: {phases}\n"
    written = parse_workflow(text, file="x.yaml", folder=tmp_path, kinds=KINDS).workflow
    three = agent_file(tmp_path / "three.py")
    built = workflow("x").phase("a", three()).phase("b", three(), next="c").phase("c", next=[]).build()
    assert built.workflow.phases == written.phases


def test_inputs_and_context_are_inferred_where_none_are_declared() -> None:
    made = (
        workflow("x")
        .phase(
            "a",
            greet("{{ inputs.b }} {{ inputs.a.deep }}", foreach="inputs.items", into="said"),
            evaluate=evaluation(greet, "{{ inputs.judged }}"),
            next=to("b", when="inputs.go == true"),
        )
        .phase("b", greet("{{ context.said }}", when="inputs.a == 1"))
        .build()
        .workflow
    )
    assert [each.name for each in made.inputs] == ["a", "b", "items", "judged", "go"]
    assert all(each.required and each.type == "any" for each in made.inputs)
    assert [(each.name, each.reducer) for each in made.context] == [("said", "replace")]


def test_a_builder_never_changes() -> None:
    base = workflow("x").phase("a", greet())
    longer = base.phase("b", greet())
    assert [each.id for each in base.build().workflow.phases] == ["a"]
    assert [each.id for each in longer.build().workflow.phases] == ["a", "b"]
    assert base.build() is base.build()


def _told(made: WorkflowBuilder) -> list[str]:
    with pytest.raises(BadWorkflow) as caught:
        made.build()
    return str(caught.value).splitlines()[:-1]


def _line(offset: int) -> int:
    return sys._getframe(1).f_lineno + offset


def test_every_mistake_is_told_at_once_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent)
    line = _line(2)
    made = (
        workflow("x")
        .phase(
            "a",
            greet("{{ context.sad }} {{ item }}", into="said"),
            greet("{{ open", name="b", needs=["c"], substitute="nobody"),
            evaluate=evaluation("nobody", threshold=3),
            on_low_confidence=[spawn("gret")],
            next=[to("bb", when="visits.b"), "end"],
        )
        .phase("b", greet("{{ inputs.a }}"))
        .phase("c", next="c")
    )
    places = [each.partition(": ") for each in _told(made)]
    assert {place.partition(":")[0] for place, _, _ in places} == {"test_builder.py"}
    unreached = "is never reached: no transition leads to it from the first phase"
    assert [(int(place.partition(":")[2]) - line, message) for place, _, message in places] == [
        (3, "`context.sad`: no context name `sad` is declared under `context`; did you mean `said`?"),
        (3, "`item` needs a `foreach`"),
        (4, "`task`: unexpected end of input, expected end of variable block"),
        (4, "there is no agent `nobody`; there is `greet`"),
        (4, "there is no specialist `c` in this phase; there are `b`, `greet`"),
        (5, "`threshold` must be at most 1.0, not the number 3"),
        (5, "there is no agent `nobody`; there is `greet`"),
        (6, "there is no specialist and no agent `gret`; did you mean `greet`?"),
        (7, "`when` must be true or false, and `visits.b` is neither; compare it"),
        (7, "there is no phase `bb`; did you mean `b`?"),
        (9, f"the phase `b` {unreached}"),
        (10, f"the phase `c` {unreached}"),
    ]


def other_greet() -> AgentRef:
    """Another agent of the same name."""

    @agent(name="greet")
    async def other(ctx: Any) -> None: ...

    return other


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (workflow("x"), "`phases` needs at least one entry"),
        (workflow("no name").phase("a", greet()), "`name` cannot be 'no name'"),
        (workflow("x").phase("a", greet(), greet()), "two specialists of this phase are called `greet`"),
        (workflow("x").phase("a", greet()).phase("a", greet()), "`a` is given twice; the first is on line"),
        (workflow("x").phase("a", greet(), other_greet()(name="b")), "two agents are called `greet`"),
        (
            workflow("x").context("said").phase("a", greet(into="sad")),
            "`sad` is not declared under `context`",
        ),
        (workflow("x").input("b").phase("a", greet("{{ inputs.a }}")), "no input `a` is declared"),
        (workflow("x").input("b", default=object()).phase("a", greet()), "`default`: The value at $"),
        (workflow("x").phase("a", agent_file("gone.py")()), "there is no file `gone.py`"),
        (workflow("x").phase("a", agent_command("gone-1", name="c")()), "no program `gone-1` in `PATH`"),
        (workflow("x").phase("a", agent_entry("c", {"pth": "x.py"})()), "unknown key `pth`"),
        (workflow("x").policy(concurrency=0).phase("a", greet()), "`concurrency` must be at least 1"),
        (workflow("x").policy(grace="1s").policy(grace="2s").phase("a", greet()), "`policy` is given twice"),
        (workflow("x").phase("a", greet(), next="nowhere"), "there is no phase `nowhere`"),
        (workflow("x").phase("a", greet(), evaluate="nobody"), "there is no agent `nobody`"),
        (
            workflow("x").phase("a", greet(foreach=[float("inf")])),
            "a list that is written out cannot hold inf",
        ),
    ],
)
def test_what_a_file_is_refused_for_a_program_is_refused_for(made: WorkflowBuilder, message: str) -> None:
    told = [each for each in _told(made) if message in each]
    assert told
    assert all("test_builder.py:" in each for each in told)


def test_files_are_looked_for_beside_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "mine.py").write_text("async def agent(ctx): ...\n")
    names: dict[str, Any] = {}
    text = (
        "from orchestra.workflow import agent_file, workflow\n"
        "made = workflow('x').phase('a', agent_file('../mine.py')())"
    )
    program = tmp_path / "program" / "main.py"
    exec(compile(text, str(program), "exec"), names)
    loaded = names["made"].build()
    assert loaded.workflow.agents[0].source
    assert str(loaded.file) == f"{program}:2"


def test_a_workflow_with_files_is_looked_at_again_for_every_run(tmp_path: Path, beside: Path) -> None:
    made = workflow("x").phase("a", agent_file("three.py")())
    before = made.build()
    (beside / "three.py").write_text("async def agent(ctx):\n    return 2\n")
    assert made.build().workflow.agents[0].source != before.workflow.agents[0].source


def test_the_module_and_the_function_of_one_name() -> None:
    import orchestra.workflow
    from orchestra import workflow as either

    assert either("x").name == "x"
    assert orchestra.workflow.__name__ == "orchestra.workflow"
