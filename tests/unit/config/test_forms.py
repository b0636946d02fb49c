"""Every way to write something means the same, and becomes the frozen workflow."""

import json
from pathlib import Path

import attrs
import pytest

from orchestra.agents.command.kind import CommandOptions
from orchestra.agents.python.kind import PythonOptions
from orchestra.app.workflow_files import load_workflow
from orchestra.codec.definitions import read_options
from orchestra.codec.values import thaw
from orchestra.expressions.expression import constant
from orchestra.ids import AgentId, PhaseId
from orchestra.model.workflow import (
    Ask,
    Criterion,
    Fail,
    Input,
    Policy,
    Proceed,
    Retry,
    Spawn,
    Specialist,
    Transition,
    Workflow,
)
from tests.unit.config.support import HEAD, load, phase, problems, workflow

MINIMAL = "name: tiny\nagents: {one: one.py}\nphases: {only: {specialists: {one: }}}\n"


def test_the_least_there_can_be(tmp_path: Path) -> None:
    made = workflow(MINIMAL, tmp_path)
    assert made.name == "tiny"
    assert made.policy == Policy()
    assert made.phases[0].specialists == (Specialist(id="one", agent=AgentId("one")),)
    assert made.phases[0].next is None
    assert load(MINIMAL, tmp_path).settings == {}


def _inputs(text: str, path: Path) -> tuple[Input, ...]:
    return workflow(f"inputs: {text}\n{MINIMAL}", path).inputs


def test_inputs_short_and_long(tmp_path: Path) -> None:
    text = '{a: ".", b: 3, c: 0.5, d: true, e: [x], f: , g: {type: path, default: .}, h: {default: null}}'
    found = {each.name: each for each in _inputs(text, tmp_path)}
    types = [found[name].type for name in "abcdefgh"]
    assert types == ["text", "integer", "number", "boolean", "list", "any", "path", "any"]
    assert [name for name in "abcdefgh" if found[name].required] == ["f"]
    assert [thaw(held) for name in "abcde" if (held := found[name].default)] == [".", 3, 0.5, True, ["x"]]


def test_an_input_with_choices(tmp_path: Path) -> None:
    text = "{a: {type: text, choices: [x, y], default: y, secret: true, help: why, required: true}}"
    (made,) = _inputs(text, tmp_path)
    assert [thaw(each) for each in made.choices] == ["x", "y"]
    assert (made.secret, made.help, made.required) == (True, "why", True)


def test_context_short_and_long(tmp_path: Path) -> None:
    made = workflow("context: {a: append, b: , c: {reducer: sum, initial: 3}}\n" + MINIMAL, tmp_path)
    assert [(each.name, each.reducer) for each in made.context] == [
        ("a", "append"),
        ("b", "replace"),
        ("c", "sum"),
    ]
    initial = made.context[2].initial
    assert initial is not None
    assert thaw(initial) == 3


def _agents(text: str, path: Path) -> Workflow:
    return workflow(f"name: x\nagents: {text}\nphases: {{p: {{}}}}\n", path)


def test_agents_short_and_long(tmp_path: Path) -> None:
    made = _agents(
        "{a: one.py, b: 'one.py:agent', c: {path: one.py, isolation: process, with: {k: [1]},"
        " environment: HOME}, d: {command: 'env --now \"a b\"'}, e: {command: [env, x], description: runs}}",
        tmp_path,
    )
    a, b, c, d, e = made.agents
    assert (a.kind, a.path, a.options) == ("python", "one.py", None)
    assert b == attrs.evolve(a, id=AgentId("b"))
    assert read_options(c, PythonOptions) == PythonOptions(isolation="process", environment=("HOME",))
    assert c.settings is not None
    assert thaw(c.settings) == {"k": [1]}
    assert (d.kind, d.source) == ("command", "")
    assert read_options(d, CommandOptions).command == ("env", "--now", "a b")
    assert (read_options(e, CommandOptions).command, e.description) == (("env", "x"), "runs")


def test_the_source_of_an_agent_follows_its_bytes(tmp_path: Path) -> None:
    before = _agents("{a: one.py, b: two.py}", tmp_path).agents
    assert before[0].source == before[1].source != ""
    (tmp_path / "three.py").write_text("def agent(ctx):\n    return 2\n")
    assert _agents("{a: three.py}", tmp_path).agents[0].source != before[0].source


def test_an_agent_may_be_defined_in_many_ways(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(
        "import os as first\nfrom os import path as second\n"
        "try:\n    third = 1\nexcept Exception:\n    pass\nclass Fourth: pass\nfifth, sixth = 1, 2\n"
    )
    names = ("first", "second", "third", "Fourth", "fifth", "sixth")
    made = _agents(
        "{" + ", ".join(f"a{at}: 'many.py:{name}'" for at, name in enumerate(names)) + "}", tmp_path
    )
    assert tuple(read_options(each, PythonOptions).attribute for each in made.agents) == names
    (tmp_path / "star.py").write_text("from os import *\n")
    star = _agents("{a: 'star.py:anything'}", tmp_path).agents[0]
    assert read_options(star, PythonOptions).attribute == "anything"


def test_specialists_short_and_long(tmp_path: Path) -> None:
    made = phase(
        "    specialists: {one: , two: Do it, x: {agent: one, needs: two, outputs: a.md}}\n", tmp_path
    )
    one, two, x = made.specialists
    assert (one.task, two.task) == ("", "Do it")
    assert (x.agent, x.needs, x.outputs) == ("one", ("two",), ("a.md",))


def test_a_specialist_with_everything(tmp_path: Path) -> None:
    text = (
        "    specialists:\n      one:\n        task: Go {{ item }}\n        when: true\n"
        "        foreach: [a, 'b', 3]\n        retry: {attempts: 5, timeout: null}\n"
        "        on_failure: [substitute, fail]\n        substitute: two\n        threshold: 0.5\n"
        "        breakpoint: true\n"
    )
    (made,) = phase(text, tmp_path).specialists
    assert made.when == "true"
    assert made.foreach == '["a", "b", 3]'
    assert made.retry == Retry(attempts=5, timeout_us=None)
    assert (made.on_failure, made.substitute, made.threshold) == (("substitute", "fail"), "two", 0.5)
    assert made.breakpoint


@pytest.mark.parametrize(
    ("written", "steps"),
    [
        ("[restart, {rollback: 3}, degrade]", ("restart", "rollback", "rollback", "rollback", "degrade")),
        ("{rollback: 2}", ("rollback", "rollback")),
        ("rollback", ("rollback",)),
    ],
)
def test_a_rollback_may_be_tried_more_than_once(written: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    (made,) = phase(f"    specialists: {{one: {{on_failure: {written}}}}}\n", tmp_path).specialists
    assert made.on_failure == steps
    policy = f"policy: {{recovery: {{on_failure: {written}}}}}\n"
    assert workflow(policy + MINIMAL, tmp_path).policy.recovery.on_failure == steps


def test_a_list_that_is_written_out_holds_any_plain_data(tmp_path: Path) -> None:
    items: list[object] = [
        {"name": "a", "in": {"depth": [1, -2.5, {}]}},
        [[{"x": {"y": {}}}]],
        None,
        True,
        'it\'s "so" {}\n',
    ]
    text = f"    specialists:\n      one: {{task: 'Go {{{{ item }}}}', foreach: {json.dumps(items)}}}\n"
    (made,) = phase(text, tmp_path).specialists
    assert made.foreach is not None
    assert constant(made.foreach) == items


def test_a_list_that_is_written_out_cannot_hold_what_is_no_number(tmp_path: Path) -> None:
    text = HEAD + "phases:\n  p:\n    specialists:\n      one: {foreach: [1, .nan]}\n"
    (found,) = problems(text, tmp_path)
    assert "a list that is written out cannot hold nan" in str(found)


def test_what_a_retry_does_not_say_is_the_policys(tmp_path: Path) -> None:
    text = (
        "policy: {retry: {attempts: 7, backoff: 2s}}\nphases:\n  p:\n    specialists:\n"
        "      one: {retry: {backoff: 5s}}\n    evaluate: {agent: two, retry: {timeout: 9s}}\n"
    )
    made = workflow(HEAD + text, tmp_path).phases[0]
    assert made.specialists[0].retry == Retry(attempts=7, backoff_us=5_000_000)
    assert made.evaluate is not None
    assert made.evaluate.retry == Retry(attempts=7, backoff_us=2_000_000, timeout_us=9_000_000)


def test_evaluations_short_and_long(tmp_path: Path) -> None:
    short = phase("    evaluate: one\n", tmp_path).evaluate
    assert short is not None
    assert (short.agent, short.rounds, short.threshold) == ("one", 0, 0.8)
    text = (
        "    evaluate: {agent: one, rubric: {a: 2, b: 0.5}, revise: {rounds: 3}, threshold: 1, task: Judge}\n"
    )
    long = phase(text, tmp_path).evaluate
    assert long is not None
    assert long.rubric == (Criterion(name="a", weight=2.0), Criterion(name="b", weight=0.5))
    assert (long.rounds, long.threshold, long.task) == (3, 1.0, "Judge")
    listed = phase("    evaluate: {agent: one, rubric: [a, b], revise: 2}\n", tmp_path).evaluate
    assert listed is not None
    assert [each.weight for each in listed.rubric] == [1.0, 1.0]
    assert listed.rounds == 2


def test_reactions(tmp_path: Path) -> None:
    text = (
        "    specialists: {one: , x: {agent: two}}\n    on_low_confidence:\n"
        "      [{spawn: x, max: 2}, {spawn: two}, {spawn: one, agent: two},\n"
        "       {ask: Go on?, choices: [a, b]}, fail]\n"
    )
    assert phase(text, tmp_path).on_low_confidence == (
        Spawn(specialist="x", max=2),
        Spawn(specialist="one", agent=AgentId("two")),
        Spawn(specialist="one", agent=AgentId("two")),
        Ask(question="Go on?", choices=("a", "b")),
        Fail(),
    )
    assert phase("    on_low_confidence: proceed\n", tmp_path).on_low_confidence == (Proceed(),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("next: b", [("b", None)]),
        ("next: [b]", [("b", None)]),
        ("next: {to: b}", [("b", None)]),
        ("description: x", [("b", None)]),
        ("next: ", [("b", None)]),
        ("next: [{to: end, when: visit > 1}, b]", [("end", "visit > 1"), ("b", None)]),
    ],
)
def test_transitions(text: str, expected: list[tuple[str, str | None]], tmp_path: Path) -> None:
    made = workflow(f"{HEAD}phases:\n  a: {{{text}}}\n  b: {{next: end}}\n", tmp_path)
    assert made.phases[0].next == tuple(Transition(to=PhaseId(to), when=when) for to, when in expected)
    assert made.phases[1].next == (Transition(to=PhaseId("end")),)


def test_a_phase_may_end_the_run_in_the_middle(tmp_path: Path) -> None:
    made = workflow(
        HEAD + "phases:\n  a: {next: [{to: b, when: visit == 1}, end]}\n  b: {next: []}\n", tmp_path
    )
    assert made.phases[1].next == ()


def test_policies_and_settings(tmp_path: Path) -> None:
    text = (
        "policy:\n  confidence: {threshold: 0.7, watch: [0.5, 1], rollback_factor: 0.8}\n"
        "  recovery: {auto: false, max_recoveries: 0, timeout: 90, on_failure: fail}\n"
        "  concurrency: 2\n  max_iterations: 5\n  grace: 1m\n"
        "checkpoint: {on: [error, phase completion, completed], every: 5m, retention: {days: null}}\n"
        "phases: {p: {max_visits: 2, timeout: 10m, breakpoint: true}}\n"
    )
    loaded = load(HEAD + text, tmp_path)
    policy, first = loaded.workflow.policy, loaded.workflow.phases[0]
    assert (policy.confidence.threshold, policy.confidence.watch) == (0.7, (0.5, 1.0))
    assert (policy.recovery.auto, policy.recovery.timeout_us) == (False, 90_000_000)
    assert policy.recovery.on_failure == ("fail",)
    assert (policy.concurrency, policy.max_iterations, policy.grace_us) == (2, 5, 60_000_000)
    assert (first.max_visits, first.timeout_us, first.breakpoint) == (2, 600_000_000, True)
    assert loaded.settings == {
        "checkpoint.on": ["error_encountered", "phase_completed", "completed"],
        "checkpoint.every": 300_000_000,
        "checkpoint.retention.days": None,
        "recovery.auto": False,
        "recovery.max_recoveries": 0,
        "recovery.timeout": 90_000_000,
        "recovery.on_failure": ["fail"],
    }


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert workflow("\ufeff" + MINIMAL, tmp_path).name == "tiny"
    (tmp_path / "flow.yaml").write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load_workflow(tmp_path / "flow.yaml").text == MINIMAL
