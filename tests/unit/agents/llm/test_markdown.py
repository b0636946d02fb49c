"""Markdown agents are read as people write them, and what cannot be read says where and what to do."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.llm.markdown import AgentFile, read_agent_file, split_names
from orchestra.errors import BadAgentFile
from orchestra.limits import AGENT_TEXT_BYTES, FRONT_MATTER_BYTES


def _agent(matter: str, body: str = "Do it.") -> AgentFile:
    return read_agent_file(f"---\n{matter}\n---\n{body}", file="agents/one.md")


def _refusal(text: str) -> BadAgentFile:
    with pytest.raises(BadAgentFile) as caught:
        read_agent_file(text, file="agents/one.md")
    return caught.value


def test_a_file_as_people_have_it() -> None:
    text = (
        "---\n"
        "name: code-reviewer\n"
        'description: Use this agent when: code was written. user: "check it"\n'
        "tools: Read, Grep, Bash(git log:*, ls)\n"
        "model: sonnet\n"
        "color: red\n"
        "---\n"
        "\n"
        "You review code.\n\n- Be brief.\n"
    )
    agent = read_agent_file(text, file="agents/one.md")
    assert agent.name == "code-reviewer"
    assert agent.description == 'Use this agent when: code was written. user: "check it"'
    assert agent.tools == ("Read", "Grep", "Bash(git log:*, ls)")
    assert agent.model == "sonnet"
    assert agent.unknown == ("color",)
    assert agent.instructions == "You review code.\n\n- Be brief."
    assert agent.line == 9
    assert agent.lines == {"name": 2, "description": 3, "tools": 4, "model": 5}


def test_every_key_of_ours() -> None:
    agent = _agent(
        """
name: judge
description: |
  Judges
  texts.
role: evaluator
model: [openai:gpt-5, anthropic:claude-sonnet-5]
tools:
  - search
  - name: send
    risky: true
    timeout: 5
  - fetch: {risky: false}
risky: [search]
skills: pdf, skills/forms
mcp: [tools.json, {local: {command: server}}]
temperature: 0.2
top_p: 1
seed: 0
max-tokens: 4000
maxTurns: 7
samples: 3
effort: high
output_schema:
  type: object
  properties:
    score: {type: number, minimum: 0, maximum: 1}
    flag: {enum: ["yes", "1", on, null]}
  required: [score]
  additionalProperties: false
""".strip()
    )
    assert agent.description == "Judges\ntexts."
    assert (agent.role, agent.model, agent.fallback) == (
        "evaluator",
        "openai:gpt-5",
        ("anthropic:claude-sonnet-5",),
    )
    assert agent.tools == ("search", "send", "fetch")
    assert agent.tool_options == {"send": {"risky": True, "timeout": 5}, "fetch": {"risky": False}}
    assert agent.risky == ("search",)
    assert agent.skills == ("pdf", "skills/forms")
    assert (agent.mcp, agent.mcp_servers) == (("tools.json",), {"local": {"command": "server"}})
    assert (agent.temperature, agent.top_p, agent.seed) == (0.2, 1.0, 0)
    assert (agent.max_tokens, agent.max_steps, agent.samples, agent.thinking) == (4000, 7, 3, "high")
    assert agent.output_schema == {
        "type": "object",
        "properties": {
            "score": {"type": "number", "minimum": 0, "maximum": 1},
            "flag": {"enum": ["yes", "1", "on", None]},
        },
        "required": ["score"],
        "additionalProperties": False,
    }
    assert agent.unknown == ()


def test_one_bad_line_does_not_spoil_the_others() -> None:
    agent = _agent(
        "description: Use when: it rains\n"
        "tools:\n  - Read\n  - Bash(ls: *)\n"
        "output_schema:\n  type: object\n  properties:\n    x: {type: integer}\n"
        "temperature: 0.5\nname: 'quoted: name'"
    )
    assert agent.description == "Use when: it rains"
    assert agent.tools == ("Read", "Bash(ls: *)")
    assert agent.output_schema == {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert (agent.temperature, agent.name) == (0.5, "quoted: name")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Use when: it rains", "Use when: it rains"),
        ("[WIP] does it", "[WIP] does it"),
        ("*important* work", "*important* work"),
        ("`code` work", "`code` work"),
        ("@somebody", "@somebody"),
        ("{{ input }} work", "{{ input }} work"),
        ("'half a quote", "'half a quote"),
        ('"Does: it"', "Does: it"),
        ("it's: fine\n  and goes on", "it's: fine and goes on"),
        ("first: line\n\tindented by a tab", "first: line indented by a tab"),
        ("first: line\nnot indented at all", "first: line not indented at all"),
        ("&anchor text", "&anchor text"),
        ("!tag text", "!tag text"),
        (">\n  folded\n  text", "folded text"),
        ("1.10", "1.10"),
        ("yes", "yes"),
        ("~", ""),
        ("", ""),
    ],
)
def test_descriptions(written: str, text: str) -> None:
    agent = _agent(f"name: x\ndescription: {written}\nmodel: test")
    assert (agent.name, agent.description, agent.model) == ("x", text, "test")


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        (" Read, Grep", ("Read", "Grep")),
        (" Read Grep", ("Read", "Grep")),
        (" [Read, Grep]", ("Read", "Grep")),
        ('\n- Read\n- "Grep"', ("Read", "Grep")),
        ("\n\t- Read\n\t- Grep", ("Read", "Grep")),
        ("\n  read: true\n  write: false\n  grep:", ("read", "grep")),
        (' "*"', ("*",)),
        (" *", ("*",)),
        (" Bash([ *), Bash(a, b), Bash(c)", ("Bash([ *)", "Bash(a, b)", "Bash(c)")),
        (" Read, Read,", ("Read",)),
        (" []", ()),
        ("", ()),
    ],
)
def test_tools(written: str, tools: tuple[str, ...]) -> None:
    assert _agent(f"tools:{written}\nname: x").tools == tools


@pytest.mark.parametrize("written", ["inherit", "Inherit", "default", "null", "", "[]"])
def test_no_model_of_its_own(written: str) -> None:
    assert _agent(f"model: {written}").model is None


@pytest.mark.parametrize("ends", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks(tmp_path: Path, ends: str, mark: str) -> None:
    file = tmp_path / "scout.md"
    file.write_bytes((mark + "---\nname: x\ntools: a, b\n---\nOne\nTwo\n").replace("\n", ends).encode())
    agent = read_agent_file(file)
    assert (agent.name, agent.tools, agent.instructions) == ("x", ("a", "b"), "One\nTwo")
    assert (agent.file, agent.line) == (str(file), 5)


@pytest.mark.parametrize(
    ("text", "body", "line"),
    [
        ("Just do it.", "Just do it.", 1),
        ("\n\nJust do it.\n", "Just do it.", 3),
        ("", "", 1),
        ("# Title\n---\nname: no\n---\n", "# Title\n---\nname: no\n---", 1),
        ("\n---\nafter a rule", "---\nafter a rule", 2),
        ("---\n---\nbody", "body", 3),
        ("---\n# a comment\n...\nbody", "body", 4),
    ],
)
def test_no_front_matter(text: str, body: str, line: int) -> None:
    agent = read_agent_file(text, file="agents/scout.md")
    assert (agent.name, agent.instructions, agent.line) == ("scout", body, line)
    assert agent.unknown == ()


def test_empty_lines_before_front_matter() -> None:
    assert read_agent_file("\n\n---\nname: x\n---\nbody").name == "x"


def test_what_other_programs_mean_is_named_and_left_alone() -> None:
    agent = _agent("role: Senior engineer\nthinking: {budget: 5}\nhooks: {a: b}\nmemory: user")
    assert agent.unknown == ("role", "thinking", "hooks", "memory")
    assert (agent.role, agent.thinking) == ("specialist", None)


def test_a_colon_without_a_space() -> None:
    agent = _agent("name:x\ndescription: see http://example.org\nhttp://example.org/more")
    assert agent.name == "x"
    assert agent.description == "see http://example.org http://example.org/more"


def test_text_that_looks_like_keys_stays_out_of_the_way() -> None:
    agent = _agent("description: Use when: x\nExample: a\nuser: one\nuser: two\nmodel: test")
    assert agent.unknown == ("Example", "user")
    assert agent.model == "test"


@pytest.mark.parametrize(
    ("text", "line", "reason", "advice"),
    [
        ("---\nname: x\nDo it.", 1, "never ends", "`---`"),
        ("---\nname: x\nname: y\n---\n", 3, "`name` is given twice", "Remove one"),
        ("---\ntools: a\nallowed-tools: b\n---\n", 3, "says again what line 2 says", "Remove one"),
        ("---\njust some words\n---\n", 2, "belongs to no key", "Write a key"),
        ("---\nname: [a]\n---\n", 2, "`name` is a text", "name: …"),
        ("---\nmodel: {a: b}\n---\n", 2, "`model` is a text", "model: …"),
        ("---\ntools: 5\n---\n", 2, "list of tools", "tools: one, two"),
        ("---\ntools: [[a]]\n---\n", 2, "list of tools", "tools: one, two"),
        ("---\nskills: {a: b}\n---\n", 2, "list of names", "skills: one, two"),
        ("---\nrisky: [1]\n---\n", 2, "list of names", "risky: one, two"),
        ("---\ntemperature: hot\n---\n", 2, "not 'hot'", "temperature: 0.5"),
        ("---\ntemperature: -1\n---\n", 2, "number from 0 on", "temperature: 0.5"),
        ("---\ntemperature: true\n---\n", 2, "not True", "temperature: 0.5"),
        ("---\nname: x\nmax_tokens: 1.5\n---\n", 3, "whole number", "max_tokens: 3"),
        ("---\nsamples: 0\n---\n", 2, "from 1 on", "samples: 3"),
        ("---\nmax_tokens: 1" + "0" * 300 + "\n---\n", 2, "whole number", "max_tokens: 3"),
        ("---\noutput_schema: text\n---\n", 2, "JSON Schema, not 'text'", "type: object"),
        ("---\noutput_schema:\n  a: b: c\n---\n", 2, "cannot be read", "type: object"),
        (
            "---\noutput_schema: {title: string}\n---\n",
            2,
            "does not begin with `type: object`",
            "type: object",
        ),
        ("---\nname: \x00\n---\n", 2, "U+0000", "Remove it"),
        ("Do \x1b[31mit", 1, "U+001B", "Remove it"),
    ],
)
def test_what_cannot_be_read(text: str, line: int, reason: str, advice: str) -> None:
    error = _refusal(text)
    assert (error.file, error.line) == ("agents/one.md", line)
    assert reason in str(error.reason)
    assert advice in str(error.advice)
    assert str(error).startswith(f"agents/one.md, line {line}: ")


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"---\nname: caf\xe9\n---\n", 2, "0xe9 is not UTF-8"),
        ("---\nname: x\n---\n".encode("utf-16"), 1, "UTF-16"),
        (b"x" * (AGENT_TEXT_BYTES + 1), 1, "larger than 1 MB"),
        (b"---\nname: x\n" + b"# c\n" * (FRONT_MATTER_BYTES // 3) + b"---\n", 1, "longer than 128 kB"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, line: int, reason: str) -> None:
    file = tmp_path / "one.md"
    file.write_bytes(data)
    with pytest.raises(BadAgentFile, match=reason) as caught:
        read_agent_file(file)
    assert (caught.value.file, caught.value.line) == (str(file), line)


@pytest.mark.parametrize("name", ["missing.md", ".", "zero\0byte.md"])
def test_files_that_are_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadAgentFile, match=r"no such file|cannot be read"):
        read_agent_file(tmp_path / name)


def test_a_lone_surrogate_is_no_text() -> None:
    assert "not UTF-8" in str(_refusal("Do \ud800 it"))


@pytest.mark.parametrize(
    "value",
    [
        "[" * 5000,
        "{a: " * 5000,
        "\n" + "".join("  " * depth + "a:\n" for depth in range(1, 100)),
        "\n  a: &x [1, 1]\n  b: &y [*x, *x]\n  c: [*y, *y]",
        "\n  <<: {a: 1}",
    ],
)
def test_nothing_of_yaml_that_grows_is_read(value: str) -> None:
    error = _refusal(f"---\noutput_schema: {value}\n---\n")
    assert (error.line, "JSON Schema and cannot be read" in str(error.reason)) == (2, True)
    assert _agent(f"metadata: {value}\nname: x").name == "x"  # a key of somebody else does no harm


@pytest.mark.parametrize(
    ("text", "spaces", "names"),
    [
        ("a, b", False, ("a", "b")),
        ("My Skill, other", False, ("My Skill", "other")),
        ("a b", False, ("a b",)),
        ("a b", True, ("a", "b")),
        ("f(a b) g", True, ("f(a b)", "g")),
        ("f(a, b", True, ("f(a, b",)),
        ("a), b", True, ("a)", "b")),
        (" , ", True, ()),
    ],
)
def test_names_in_a_text(text: str, spaces: bool, names: tuple[str, ...]) -> None:
    assert split_names(text, spaces=spaces) == names


def test_the_error_travels_between_processes() -> None:
    import pickle

    error: Any = pickle.loads(pickle.dumps(_refusal("---\nname: x\n")))
    assert (type(error), error.line) == (BadAgentFile, 1)
