"""Every kind of mistake, with the exact place and the sentence a person reads."""

from pathlib import Path

import pytest

from orchestra.app.workflow_files import load_workflow
from orchestra.errors import BadWorkflow
from tests.unit.config.support import FILE, HEAD, load, places, problems

END = "phases: {p: {}}\n"


def _one(text: str, path: Path) -> str:
    found = problems(text, path)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("phaes: {}\n" + END, "3:1: unknown key `phaes`; did you mean `phases`?"),
        ("steps: {}\n" + END, "3:1: unknown key `steps`; did you mean `phases`?"),
        ("phases: {p: {specialist: {}}}", "3:14: unknown key `specialist`; did you mean `specialists`?"),
        ("phases: {p: {specialists: {one: {tsk: x}}}}", "3:34: unknown key `tsk`; did you mean `task`?"),
        ("phases: {p: {next: [{to: end, wen: x}]}}", "3:31: unknown key `wen`; did you mean `when`?"),
        (
            "phases: {p: {evaluate: {agent: one, revise: {round: 1}}}}",
            "3:46: unknown key `round`; did you mean",
        ),
        ("policy: {retry: {retries: 3}}\n" + END, "3:18: unknown key `retries`; did you mean `attempts`?"),
        (
            "checkpoint: {retention_days: 3}\n" + END,
            "3:14: unknown key `retention_days`; did you mean `retention: {",
        ),
        ("phases:\n", "1:1: `phases` is missing"),
        ("phases: {}\n", "3:9: `phases` needs at least one entry"),
        ("phases: []\n", "3:9: `phases`: a mapping is needed, not a list"),
        ("phases: {p: 3}\n", "3:13: `p`: a mapping is needed, not the number 3"),
        ("phases: {p: {evaluate: {task: x}}}\n", "3:14: `agent` is missing"),
        ("phases: {p: {next: [{when: visit > 1}]}}\n", "3:21: `to` is missing"),
        (
            "phases: {p: {specialists: {one: {task: 3}}}}",
            "3:40: `task`: a text is needed, not the number 3; put it",
        ),
        (
            "phases: {p: {specialists: {one: {task: {a: 1}}}}}",
            "3:40: `task`: a text is needed, not a mapping",
        ),
        ("phases: {p: {breakpoint: yes}}", "3:26: `breakpoint`: `true` or `false` is needed, not 'yes'"),
        (
            "phases: {p: {max_visits: 1.5}}",
            "3:26: `max_visits`: a whole number is needed, not the number 1.5",
        ),
        ("phases: {p: {max_visits: 0}}", "3:26: `max_visits` must be at least 1, not the number 0"),
        (
            "phases: {p: {timeout: soon}}",
            "3:23: `timeout`: 'soon' is not a duration; write it as 30s, 5m or 1h30m",
        ),
        ("phases: {p: {specialists: {one: {threshold: 1.1}}}}", "3:45: `threshold` must be at most 1"),
        ("phases: {p: {specialists: {one: {threshold: -1}}}}", "3:45: `threshold` must be at least 0"),
        (
            "phases: {p: {specialists: {one: {threshold: .nan}}}}",
            "3:45: `threshold`: a finite number is needed",
        ),
        (
            "phases: {p: {evaluate: {agent: one, rubric: {a: 0}}}}",
            "3:49: the weight of `a` must be more than 0",
        ),
        (
            "phases: {p: {specialists: {one: {on_failure: [restart, give_up]}}}}",
            "3:56: `on_failure` (entry 2) cannot",
        ),
        (
            "phases: {p: {specialists: {one: {on_failure: retry}}}}",
            "3:46: `on_failure` (entry 1) cannot be 'retry'; did",
        ),
        (
            "phases: {p: {specialists: {one: {on_failure: [restart, {rollback: 0}]}}}}",
            "3:56: `on_failure` (entry 2): only `rollback` can be tried more than once: `{rollback: N}`",
        ),
        (
            "phases: {p: {specialists: {one: {on_failure: [{degrade: 2}]}}}}",
            "3:47: `on_failure` (entry 1): only `rollback` can be tried more than once",
        ),
        ("context: {a: apend}\n" + END, "3:14: `reducer` cannot be 'apend'; did you mean `append`?"),
        ("inputs: {a: {type: string}}\n" + END, "3:20: `type` cannot be 'string'; did you mean `text`?"),
        (
            "inputs: {a: {type: integer, default: x}}\n" + END,
            "3:38: `default`: a whole number is needed, not 'x'",
        ),
        ("inputs: {a: {choices: [1, 2], default: 3}}\n" + END, "3:40: `default` is not among the choices"),
        ("inputs: {a: {type: text, choices: [x, 2]}}\n" + END, "3:39: `choices` (entry 2): a text is needed"),
        (
            "context: {a: {reducer: append, initial: 3}}\n" + END,
            "3:41: `initial` must be a list, because the",
        ),
        ("checkpoint: {on: [eror]}\n" + END, "3:19: `on` (entry 1) cannot be 'eror'; there are `agent_l"),
        ("checkpoint: {encryption: true}\n" + END, "3:26: `encryption`: stores cannot be encrypted yet"),
        ("checkpoint: {size_limit_bytes: 1GB}\n" + END, "3:32: `size_limit_bytes`: it must be between"),
        ("checkpoint: {compression_level: 99}\n" + END, "3:33: `compression_level` must be at most 19"),
        ("inputs: {a b: 1}\n" + END, "3:10: `a b` cannot be a name; a name is up to 64 letters"),
        ("inputs: {" + "x" * 65 + ": 1}\n" + END, "3:10: `xxxxx"),
        ("phases: {end: {}}", "3:10: a phase cannot be called `end`; that is where a run ends"),
        (
            "phases: {p: {specialists: {evaluation: {agent: one}}}}",
            "3:28: a specialist cannot be called `evaluation`",
        ),
    ],
)
def test_keys_types_and_values(text: str, expected: str, tmp_path: Path) -> None:
    found = _one(HEAD + text, tmp_path)
    assert found.startswith(expected), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agents: {a: 3}", "2:13: `a`: a mapping is needed, not the number 3"),
        ("agents: {a: {}}", "2:10: the agent `a` needs a `path` or a `command`"),
        ("agents: {a: {path: one.py, command: x}}", "2:28: an agent has a `path` or a `command`, not both"),
        ("agents: {a: gone.py}", "2:13: there is no file `gone.py` (looked in"),
        ("agents: {a: {path: gone.py}}", "2:20: there is no file `gone.py` (looked in"),
        (
            "agents: {a: notes.txt}",
            "2:13: `notes.txt` is of no known kind of agent; use a file that ends in `.py`",
        ),
        ("agents: {a: {path: 3}}", "2:20: `path`: a text is needed, not the number 3"),
        ("agents: {a: {command: []}}", "2:23: the command names no program"),
        ("agents: {a: {command: env, attribute: x}}", "2:28: unknown key `attribute`; there are `command`"),
        ("agents: {a: .py}", "2:13: there is no file `.py`"),
        ('agents: {a: "a\\0.py"}', "2:13: `a\\x00.py` cannot be read"),
        ("agents: {a: 'one.py:agnt'}", "2:13: `one.py` has no `agnt`; did you mean `agent`?"),
        ("agents: {a: {path: one.py, attribute: x y}}", "2:39: `one.py` has no `x y`"),
        ("agents: {a: {command: 'x \"'}}", "2:23: `command`: the command has a quote that is not closed"),
        ("agents: {a: {command: [bsh-of-old, x]}}", "2:24: there is no program `bsh-of-old` in `PATH`"),
        ("agents: {a: {command: bsh-of-old x}}", "2:23: there is no program `bsh-of-old` in `PATH`"),
        ("agents: {a: {command: [./gone, x]}}", "2:24: there is no program `./gone` (looked in"),
        ("agents: {a: {command: [./broken.py]}}", "2:24: `./broken.py` may not be executed"),
        ("agents: {a: {command: [env, -i, ./gone.sh]}}", "2:33: there is no file `./gone.sh` (looked in"),
        ('agents: {a: {command: [env, "a\\0/b.sh"]}}', "2:23: a command has no zero bytes in it"),
        ("agents: {a: broken.py}", "2:13: `broken.py` is not Python"),
        (
            "agents: {a: {path: one.py, isolation: procss}}",
            "2:39: `isolation` cannot be 'procss'; did you mean",
        ),
        ("agents: {a: {path: one.py, with: 3}}", "2:34: `with`: a mapping is needed, not the number 3"),
    ],
)
def test_agents(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def agent(:\n")
    found = _one(f"name: x\n{text}\nphases: {{p: {{}}}}\n", tmp_path)
    assert found.startswith(expected), found


def test_a_script_that_was_probably_meant_is_named(tmp_path: Path) -> None:
    found = _one("name: x\nagents: {a: {command: [env, ./twoo.py]}}\nphases: {p: {}}\n", tmp_path)
    assert found.endswith("; did you mean `./two.py`?"), found


@pytest.mark.parametrize(
    "command",
    [
        "[env, ./one.py]",
        "[env, made/later.json]",  # it may be what the program makes
        "[env, 'made/*.sh']",
        "[env, ./one.py, made/later.py]",
        "[env, notes/no-ending]",
        "[env, later.py]",
        "[env, --out=made/later.py]",
    ],
)
def test_arguments_that_may_be_anything_are_left_alone(command: str, tmp_path: Path) -> None:
    load(f"name: x\nagents: {{a: {{command: {command}}}}}\nphases: {{p: {{}}}}\n", tmp_path)


def test_a_program_may_lie_beside_a_workflow_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.sh").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    load("name: x\nagents: {a: {command: ./run.sh}}\nphases: {p: {}}\n", Path())


def test_an_additional_specialist_may_look_at_all_items(tmp_path: Path) -> None:
    head = "agents: {one: one.py, two: two.py}\nphases:\n p:\n  specialists: {one: {foreach: [1]}}\n"
    load(f"name: x\n{head}  on_low_confidence: [{{spawn: one, agent: two}}, {{spawn: two}}]\n", tmp_path)


def test_a_script_may_lie_in_the_project_where_the_program_works(tmp_path: Path) -> None:
    configs = tmp_path / "configs"
    configs.mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.sh").touch()
    load("name: x\nagents: {a: {command: [env, tools/a.sh]}}\nphases: {p: {}}\n", configs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{specialists: {on: }}",
            "4:20: there is no agent `on`; name another with `agent:`; did you mean `one`?",
        ),
        ("{specialists: {x: {agent: twoo}}}", "4:31: there is no agent `twoo`; did you mean `two`?"),
        ("{specialists: {one: {substitute: x}}}", "4:38: there is no agent `x`; there are `one`, `two`"),
        ("{specialists: {one: {on_failure: [substitute]}}}", "4:39: `substitute: AGENT` is missing"),
        ("{specialists: {one: {needs: [one]}}}", "4:34: `one` cannot need itself"),
        ("{specialists: {one: {needs: two}}}", "4:33: there is no specialist `two` in this phase"),
        (
            "{specialists: {one: , two: {needs: [one, on]}}}",
            "4:46: there is no specialist `on` in this phase; did",
        ),
        ("{specialists: {one: , two: {needs: [one, one]}}}", "4:46: `one` is named twice"),
        (
            "{specialists: {one: {needs: [two]}, two: {needs: [one]}}}",
            "4:33: these wait for one another: `one` → `tw",
        ),
        (
            "{specialists: {one: {into: fnd}}}",
            "4:32: `fnd` is not declared under `context`; did you mean `found`?",
        ),
        ("{specialists: {one: {outputs: [/etc/x]}}}", "4:36: the output `/etc/x` must be relative"),
        ("{specialists: {one: {outputs: [a/../../x]}}}", "4:36: the output `a/../../x` must stay inside"),
        ("{specialists: {one: {outputs: ['C:\\x']}}}", "4:36: the output `C:\\x` must be relative"),
        ("{specialists: {one: {outputs: ['']}}}", "4:36: an output is the path of a file"),
        ("{specialists: {one: {outputs: [a, a]}}}", "4:39: the output `a` is named twice"),
        ("{evaluate: nobody}", "4:16: there is no agent `nobody`"),
        ("{on_low_confidence: [{spawn: x}]}", "4:34: there is no specialist and no agent `x`"),
        ("{on_low_confidence: [{spawn: one}]}", "4:34: this phase has no specialist whose task"),
        ("{on_low_confidence: [{max: 2}]}", "4:26: one of `proceed`, `fail`, `{spawn: …}` and"),
        ("{on_low_confidence: [{ask: 3}]}", "4:32: `ask`: a text is needed"),
        ("{on_low_confidence: [{ask: x, max: 2}]}", "4:35: `max` belongs to `spawn`"),
        (
            "{specialists: {one: {foreach: [1]}}, on_low_confidence: [{spawn: one}]}",
            "4:70: `one` has a `foreach`, and an additional one would have no item",
        ),
        (
            "{specialists: {one: {foreach: [1]}}, on_low_confidence: [{spawn: one, agent: one}]}",
            "4:70: `one` has a `foreach`, and an additional one would have no item",
        ),
        (
            "{specialists: {one: {foreach: [1], task: 'Do {{ item }}'}}, on_low_confidence: [{spawn: two}]}",
            "4:93: it would get the task of `one`, which names an item, and have none",
        ),
        ("{on_low_confidence: [carry_on]}", "4:26: `on_low_confidence` (entry 1) cannot be 'carry_on'"),
        ("{on_low_confidence: [proceed, {ask: x}]}", "4:35: nothing after `proceed` is ever reached"),
    ],
)
def test_phases(text: str, expected: str, tmp_path: Path) -> None:
    head = "agents: {one: one.py, two: two.py}\ncontext: {found: append}\nphases:\n"
    found = _one(f"{head} p: {text}\nname: x\n", tmp_path)
    assert found.startswith(expected), found


def test_all_mistakes_are_told_at_once_and_in_order(tmp_path: Path) -> None:
    text = (
        "name: a b\ninputs:\n  pth: {type: string, hlp: x}\nagents:\n  one: one.py\n  gone: gone.py\n"
        "phases:\n  work:\n    specialists:\n"
        "      one: {task: 'Do {{ inputs.path }}', into: found, threshold: 2}\n"
        "      other: {agent: on}\n    next: [{to: wrte, when: 1 + 1}, {to: work}]\n  lost: {}\n"
    )
    found = places(text, tmp_path)
    assert found == sorted(found)
    assert found == [
        (1, 7),
        (3, 15),
        (3, 23),
        (6, 9),
        (10, 19),
        (10, 49),
        (10, 67),
        (11, 22),
        (12, 17),
        (12, 29),
        (13, 3),
    ]


def test_one_mistake_is_not_told_twice(tmp_path: Path) -> None:
    text = (
        "name: x\nagents: {one: 3}\ninputs: {a: {type: 5}}\ncontext: {b: 7}\n"
        "phases:\n  p:\n    specialists: {one: {task: '{{ inputs.a }} {{ context.b }}', into: b}}\n"
        "    evaluate: 3\n    next: [{to: q, when: evaluation.verdict == 'accept'}, {to: end}]\n  q: 3\n"
    )
    assert [place[0] for place in places(text, tmp_path)] == [2, 3, 4, 8, 10]


def test_what_was_refused_as_yaml_is_not_missed_again(tmp_path: Path) -> None:
    text = "name: &n x\nagents: {one: *n}\nphases: {p: {specialists: {one: {task: {{ inputs.a }}}}}}\n"
    assert [each.partition(" cannot")[0] for each in problems(text, tmp_path)][:2] == [
        "1:7: the anchor `&n`",
        "2:15: the alias `*n`",
    ]
    assert len(problems(text, tmp_path)) == 3


def test_the_error_is_one_line_for_each_mistake(tmp_path: Path) -> None:
    with pytest.raises(BadWorkflow) as caught:
        load("name: x\nphases: {p: {next: q}}\nodd: 1\n", tmp_path)
    assert str(caught.value).splitlines() == [
        f"{FILE}:2:20: there is no phase `q`; there are `end`, `p`",
        f"{FILE}:3:1: unknown key `odd`; there are `agents`, `checkpoint`, `context`, `description`, "
        "`inputs`, `name`, `phases`, `policy`, `prices`",
        f"{FILE} cannot be used: 2 mistakes.",
    ]
    assert caught.value.data["count"] == "2 mistakes"


def test_only_the_first_mistakes_of_very_many_are_listed(tmp_path: Path) -> None:
    with pytest.raises(BadWorkflow) as caught:
        load("name: x\nphases: {p: {}}\n" + "".join(f"key{at}: 1\n" for at in range(500)), tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[-2:] == ["… and 300 more", f"{FILE} cannot be used: 500 mistakes."]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "review.yaml").write_text("name: x\n")
    with pytest.raises(BadWorkflow, match=r"there is no such file; did you mean `.*review\.yaml`\?"):
        load_workflow(tmp_path / "reviw.yaml")
    with pytest.raises(BadWorkflow, match="no such file; `orchestra init DIR` makes a project that has one"):
        load_workflow(tmp_path / "nothing" / "like.yaml")
    with pytest.raises(BadWorkflow, match="it cannot be read"):
        load_workflow(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("[wat, wot]", ["`on_low_confidence` (entry 1) cannot be 'wat'", "(entry 2) cannot be 'wot'"]),
        ("{spawn: 7, max: -3}", ["`spawn`: a text is needed", "`max` must be at least 1"]),
        ("[wat, {spawn: ghost}]", ["(entry 1) cannot be 'wat'", "no specialist and no agent `ghost`"]),
    ],
)
def test_the_other_mistakes_of_a_phase_stand_beside_a_wrong_reaction(
    wrong: str, told: list[str], tmp_path: Path
) -> None:
    text = f"""{HEAD}
phases:
  p:
    specialists: {{one: {{needs: [three]}}}}
    on_low_confidence: {wrong}
    evaluate: {{agent: nobody}}
    next: [{{to: nowhere, when: inputs.x == 1}}]
"""
    found = problems(text, tmp_path)
    others = ["no specialist `three`", "no agent `nobody`", "no phase `nowhere`", "no input `x`"]
    assert [word for word in told + others if not any(word in each for each in found)] == []
    assert len(found) == len(told) + len(others), found
