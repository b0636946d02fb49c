"""Every Python example in README and docs runs, every workflow in docs loads, played pages are true."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestra.app.workflow_files import load_workflow
from orchestra.config.read.yaml_tree import read_tree
from orchestra.config.settings.resolve import read_settings
from tests.tidy.console import Typed, play, played_blocks
from tests.tidy.project import DOCS, ROOT, code_blocks, name_of

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

PLAYED = (
    "tutorial.md",
    "tutorials/first-model-team.md",
    "how-to/write-an-agent.md",
    "how-to/add-an-agent-kind.md",
    "how-to/handle-failures.md",
    "how-to/confidence-and-evaluation.md",
    "how-to/ask-people.md",
    "how-to/go-back-and-fork.md",
    "how-to/run-in-production.md",
)
"""Pages whose shell examples are typed, from the first to the last."""


def _pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def _with(pattern: str) -> list[Path]:
    return [page for page in _pages() if re.search(pattern, page.read_text(encoding="utf-8"), re.MULTILINE)]


@pytest.mark.parametrize("page", _with("^```python$"), ids=name_of)
def test_examples_of_a_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("page", PLAYED)
def test_the_shell_examples_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    faults = play((DOCS / page).read_text(encoding="utf-8"), tmp_path)
    assert not faults, "\n".join(faults)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_what_the_readme_does_about_failures_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    """From top to bottom, in a folder with the workflows that come along; runs that ask end with 3."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## When something goes wrong\n")[2]
    lines = next(body for _, body in code_blocks(section)).splitlines()
    prepared = "".join(f"$ cp -r {ROOT / name} .\n" for name in ("agents", "configs"))
    page = prepared + "".join(f"$ {_typed(line)}\n$ echo $?\n{_ends(line)}\n" for line in lines)
    faults = play(f"```console\n{page}```\n", tmp_path)
    assert not faults, "\n".join(faults)


def _typed(line: str) -> str:
    """A line without its comment; nobody is there who could be asked."""
    command = line.partition(" #")[0].rstrip()
    return f"{command} --yes" if command.startswith("orchestra rollback") else command


def _ends(line: str) -> int:
    return 3 if re.match(r"orchestra (run .*approval|resume|fork)", line) else 0


@pytest.mark.parametrize("page", _with("^```yaml"), ids=name_of)
def test_the_workflows_of_a_page_load(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "configs" / "example.yaml"
    file.parent.mkdir()
    for language, body in code_blocks(page.read_text(encoding="utf-8")):
        if language != "yaml":
            continue
        data = read_tree(body).data
        if body.startswith("# configs/orchestra.yaml"):
            file.write_text(body, encoding="utf-8")
            assert read_settings(file)
            continue
        whole = body if "phases" in data else body + _rest(data)
        file.write_text(whole, encoding="utf-8")
        _make_agents(file.parent, data)
        load_workflow(file)


def _rest(data: dict[str, Any]) -> str:
    """What makes a workflow of a part of one."""
    first = next(iter(data.get("agents", {"someone": ""})))
    name = "" if "name" in data else "name: example\n"
    agents = "" if "agents" in data else "agents: {someone: someone.py}\n"
    return f"\n{name}{agents}phases: {{only: {{specialists: {{{first}: Do it}}}}}}\n"


def _make_agents(folder: Path, data: dict[str, Any]) -> None:
    """Files for the agents a workflow names."""
    given = [*data.get("agents", {}).values(), "someone.py"]
    for agent in given:
        written = agent if isinstance(agent, str) else agent.get("path", "")
        path, _, attribute = written.partition(":")
        if path:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            code = f"async def agent(ctx): ...\n{attribute or 'agent'} = agent\n"
            (folder / path).write_text("---\nmodel: test\n---\n" if path.endswith(".md") else code)
            _make_tools(folder, agent)
        elif not isinstance(agent, str):
            _make_command(folder, *agent["command"])


def _make_tools(folder: Path, agent: str | dict[str, Any]) -> None:
    """The modules that an agent names as tools, with the functions that it calls risky."""
    told = {} if isinstance(agent, str) else agent
    for name in told.get("tools", ()):
        if name.endswith(".py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            functions = (f"def {each}(text: str) -> str: ...\n" for each in told.get("risky", ()))
            (folder / name).write_text("".join(functions))


def _make_command(folder: Path, program: str, script: str) -> None:
    """A program that can be found, and the script it is given."""
    (folder.parent / program).touch(mode=0o755)
    (folder / script).parent.mkdir(parents=True, exist_ok=True)
    (folder / script).touch()


def test_a_page_is_taken_apart() -> None:
    page = "```python agents/x.py\nx = 1\n```\n\n```console\n$ ls\nagents\n$ false\n$ echo $?\n1\n```\n"
    written, *typed = played_blocks(page)
    assert written.command.startswith("mkdir -p agents && cat > agents/x.py")
    assert typed == [Typed("ls", ("agents",)), Typed("false", ()), Typed("echo $?", ("1",))]


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("$ printf 'a  b\\nc\\nd\\n'\na b\n…\nd\n", ""),
        ("$ echo run_12 done\nrun_… done\n", ""),
        ("$ cd /; pwd\n/\n$ pwd\n/\n", ""),
        ("$ false\n$ echo $?\n1\n", ""),
        ("$ echo a; echo b\nb\na\n", "should print"),
        ("$ echo more than that\nmore than\n", "should print"),
        ("$ false\n", "ended with 1"),
        ("$ exit 0\n", "ended early"),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_what_is_printed_is_compared(page: str, fault: str, tmp_path: Path) -> None:
    faults = play(f"```console\n{page}```\n", tmp_path)
    assert bool(faults) == bool(fault)
    assert fault in "\n".join(faults)
