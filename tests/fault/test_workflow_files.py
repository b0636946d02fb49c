"""Workflow files that are hostile or broken: refused with file, line and column, before anything is run."""

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra.agents.registry import KINDS
from orchestra.app.workflow_files import load_workflow
from orchestra.config.load import LoadedWorkflow, parse_workflow
from orchestra.errors import BadWorkflow
from orchestra.limits import MB

GOOD = "name: x\nagents: {one: one.py}\nphases:\n  p:\n    specialists:\n      one: Do it\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text("def agent(ctx):\n    return 1\n")
    return tmp_path


def _refused(data: bytes, folder: Path) -> str:
    file = folder / "flow.yaml"
    file.write_bytes(data)
    with pytest.raises(BadWorkflow) as caught:
        load_workflow(file)
    return str(caught.value).replace(str(file), "flow.yaml")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (BOMB.encode(), "flow.yaml:1:4: the anchor `&a` cannot be used"),
        (b"a: " + b"[" * 900 + b"]" * 900, "flow.yaml:1:67: this is nested deeper than 64 levels"),
        (b"a:\n" + b"".join(b" " * at + b"a:\n" for at in range(1, 900)), "nested deeper than 64 levels"),
        (GOOD.encode() + b"name: y\n", "flow.yaml:7:1: `name` is given twice here; the first is on line 1"),
        (b"name: x\nphases:\n\tp: {}\n", "flow.yaml:3:1: a tab; YAML is indented with spaces"),
        (
            "name: x\ndescription: caf\xe9\n".encode("latin-1"),
            "flow.yaml:2:17: the byte 0xe9 is not UTF-8 (in Lat",
        ),
        ("name: ü\xe9".encode() + b"\xff", "flow.yaml:1:9: the byte 0xff is not UTF-8"),
        (GOOD.encode("utf-16"), "flow.yaml:1:1: the file is UTF-16; save it as UTF-8"),
        (
            b"name: x\n" + b"# filler\n" * (10 * MB // 9),
            "flow.yaml:1:1: the file has 10.0 MB and the limit is 1 MB",
        ),
        (
            b"name: !!python/object/apply:os.system ['touch pwned']\n",
            "flow.yaml:1:7: the tag `!!python/object/apply",
        ),
        (
            b"a: !!python/name:os.system\nb: !!python/module:os\n",
            "flow.yaml:2:4: the tag `!!python/module:os`",
        ),
        (GOOD.encode() + b"unknown: 1\n", "flow.yaml:7:1: unknown key `unknown`"),
        (GOOD.encode() + b"policy: [1]\n", "flow.yaml:7:9: `policy`: a mapping is needed, not a list"),
        (b"", "flow.yaml:1:1: the file is empty; a workflow has at least a `name` and `phases`"),
        (b"# nothing but a comment\n", "flow.yaml:1:1: the file is empty"),
        (b"- a\n- b\n", "flow.yaml:1:1: the file: a mapping is needed, not a list"),
        (b"just text\n", "flow.yaml:1:1: the file: a mapping is needed, not 'just text'"),
        (GOOD.encode() + b"---\n" + GOOD.encode(), "flow.yaml:7:1: a second document begins here"),
        (b"name: a\x00b\n", "flow.yaml:1:8: the character U+0000 cannot be used"),
        ("name: a\u2028b\n".encode(), "flow.yaml:1:8: the character U+2028 (line separator) cannot be used"),
        ("name: a\ufeffb\n".encode(), "flow.yaml:1:8: the character U+FEFF cannot be used"),
        (b"name: \x1b[31mred\n", "flow.yaml:1:7: the character U+001B cannot be used"),
        (b'name: "\\e[31m"\n' + GOOD.encode()[8:], "flow.yaml:1:7: `name` cannot be '\\x1b[31m'"),
        (b"x: [" + b"1, " * 150_000 + b"]\n", "the file has more than 100,000 keys and values"),
        (b"{" * 500_000, "nested deeper than 64 levels"),
        (b"? " * 300_000, "nested deeper than 64 levels"),
        (b"a: " + b"9" * 900_000 + b"\n", "flow.yaml:1:4: a number of 900000 digits is too long"),
        (b"&a " * 100_000, "flow.yaml:1:"),
    ],
    ids=lambda value: None if isinstance(value, str) else value[:12].hex(),
)
def test_broken_files_are_refused_with_their_place(data: bytes, expected: str, folder: Path) -> None:
    assert expected in _refused(data, folder)
    assert not (folder / "pwned").exists()


def test_a_byte_order_mark_is_no_mistake(folder: Path) -> None:
    (folder / "flow.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_workflow(folder / "flow.yaml").workflow.name == "x"


def test_other_line_ends_are_no_mistake(folder: Path) -> None:
    for end in ("\r\n", "\r"):
        (folder / "flow.yaml").write_bytes(GOOD.replace("\n", end).encode())
        assert load_workflow(folder / "flow.yaml").workflow.name == "x"
        (folder / "flow.yaml").write_bytes((GOOD + "odd: 1\n").replace("\n", end).encode())
        with pytest.raises(BadWorkflow, match="yaml:7:1: unknown key"):
            load_workflow(folder / "flow.yaml")


def test_graph_faults_are_told_together(folder: Path) -> None:
    text = (
        "name: x\nagents: {one: one.py}\nphases:\n"
        "  round: {next: trip}\n  trip: {next: round}\n"  # a cycle without exit
        "  lost: {specialists: {two: }}\n"  # unreachable, and an unknown agent
        "  lost: {}\n"  # two of one name
        "  escape: {specialists: {one: '{{ \"\".__class__.__mro__ }} {{ self }} {{ open(1) }}'}}\n"
        "  endless: {specialists: {one: {when: 'range(9)'}}}\n"
    )
    found = _refused(text.encode(), folder).splitlines()
    assert [line.partition(": ")[0] for line in found[:-1]] == [
        "flow.yaml:4:17",
        "flow.yaml:6:3",
        "flow.yaml:6:24",
        "flow.yaml:7:3",
        "flow.yaml:8:3",
        "flow.yaml:8:31",
        "flow.yaml:9:3",
        "flow.yaml:9:39",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "-" * 100_000 + "1",
        "not " * 100_000 + "true",
        "1" + "+1" * 100_000,
        "inputs" + ".a" * 100_000,
        "(" * 100_000,
        "'" + "a" * 100_000 + "'",
    ],
    ids=lambda text: text[:8],
)
@pytest.mark.parametrize("key", ["when", "foreach", "task", "quoted", "open"])
def test_an_expression_that_would_end_the_process_is_refused(key: str, text: str, folder: Path) -> None:
    forms = {"task": "task: '{{ %s }}'", "quoted": "task: '{{ \"}}\" ~ %s }}'", "open": "task: '{{ %s'"}
    written = forms.get(key, f"{key}: '%s'") % text.replace("'", "''")
    data = f"name: x\nagents: {{one: one.py}}\nphases: {{p: {{specialists: {{one: {{{written}}}}}}}}}\n"
    assert "the limit is 2000" in _refused(data.encode(), folder)


def test_a_chain_that_would_end_the_process_is_refused(folder: Path) -> None:
    chain = "{% if visit %}" + "{% elif visit %}" * 30_000 + "{% endif %}"
    data = f"name: x\nagents: {{one: one.py}}\nphases: {{p: {{specialists: {{one: '{chain}'}}}}}}\n"
    assert "it has more than 200 blocks" in _refused(data.encode(), folder)


def test_a_large_workflow_loads(folder: Path) -> None:
    text = "name: x\nagents: {one: one.py}\ncontext: {found: append}\nphases:\n"
    for at in range(250):
        text += f"  p{at}:\n    specialists:\n"
        for each in range(4):
            text += (
                f"      s{each}:\n        agent: one\n        task: Do {at} {{{{ context.found }}}} {each}\n"
            )
            text += "        into: found\n        when: visit > 0\n"
    assert text.count("\n") > 5_500
    made = parse_workflow(text, file="flow.yaml", folder=folder, kinds=KINDS).workflow
    assert len(made.phases) == 250


_LINE = (
    "name phases agents inputs context policy checkpoint specialists evaluate next to when task needs "
    "foreach into on_low_confidence spawn ask retry retention x one.py end 1 ~ - & * ! ' | > # {{ }} { } [ ] "
    ", \\ : <<"
)
_WORDS = _LINE.split()
_KEYS = st.sampled_from(_WORDS[:21])
_PIECES = st.sampled_from(
    [*_WORDS, ": ", "\n", "\n  ", "- ", ", ", "&a", "*a", "!!str ", '"', "\t", "\ud800"]
)


def _load(text: str) -> LoadedWorkflow | BadWorkflow:
    try:
        return parse_workflow(text, file="flow.yaml", folder=Path(), kinds=KINDS)
    except BadWorkflow as error:
        return error


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(_PIECES, max_size=60).map("".join)))
@example("name: x\nphases: {p: {next: [p, p]}}")
@example("name: x\nphases: {p: {specialists: {one: {foreach: [.nan]}}}}")
@example("name: x\ninputs: {a: {type: any, default: {b: [.inf]}, choices: [{}]}}\nphases: {p: }")
def test_no_text_raises_anything_else(text: str) -> None:
    lines = str(_load(text)).splitlines()
    assert all(line.isprintable() for line in lines)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("one.py"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | _KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, max_size=8))
def test_no_data_raises_anything_else(data: dict[str, object]) -> None:
    found = _load(yaml.safe_dump({"name": "x", **data}, allow_unicode=True))
    assert isinstance(found, LoadedWorkflow) or found.data["problems"]
