"""Programs of any kind: their reports and answers, and what they may see."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestra.errors import AgentFailed, StoreFull
from orchestra.ports.agent import Decided, Emitted, Judgement, Result, Saved, Used, Wrote
from tests.tidy.project import ROOT
from tests.unit.agents.support import Recorder, command_agent, run_bash, run_command

pytestmark = pytest.mark.anyio
EXAMPLES = ROOT / "docs" / "examples"
RESULT = """echo '{"type": "result", "output": 1}'"""


async def _failure(script: str, link: Recorder | None = None, **changes: Any) -> dict[str, Any]:
    with pytest.raises(AgentFailed) as caught:
        await run_bash(script, link, **changes)
    return dict(caught.value.data)


async def test_the_assignment_is_the_first_line() -> None:
    script = """read -r line; printf '{"type": "result", "output": %s}\\n' "$line" """
    result = await run_bash(script, inputs={"a": [1, {"b": None}], "c": (1, b"x")}, feedback=("more",))
    assert isinstance(result, Result)
    given = result.output
    assert (given["type"], given["protocol"]) == ("assignment", 1)
    assert given["inputs"] == {"a": [1, {"b": None}], "c": (1, b"x")}
    assert given["feedback"] == ["more"]
    assert (given["description"], given["effect_key"]) == ("Do it", "demo_1/job/1/one/0")


async def test_an_evaluator_judges() -> None:
    script = """echo '{"type": "judgement", "scores": {"depth": 0.5}, "verdict": "revise"}'"""
    assert await run_bash(script, role="apollo") == Judgement(scores={"depth": 0.5}, verdict="revise")


async def test_reports_come_in_order() -> None:
    link = Recorder()
    lines = [
        {"type": "saved", "private": {"n": 1}, "progress": 0.5},
        {"type": "emitted", "text": "a\n"},
        {"type": "decided", "description": "left", "alternatives": ["right"]},
        {"type": "used", "tokens_in": 5},
        {"type": "emitted", "text": "b"},
    ]
    script = "\n".join(f"echo '{json.dumps(line)}'" for line in lines)
    await run_bash(f"{script}\n{RESULT}", link)
    assert link.reports == [
        Saved(private={"n": 1}, progress=0.5),
        Emitted(text="a\n"),
        Decided(description="left", alternatives=("right",)),
        Used(tokens_in=5),
        Emitted(text="b"),
    ]


async def test_calls_are_answered_by_id_in_any_order() -> None:
    script = """
    read -r assignment
    echo '{"type": "asked", "id": "slow", "question": "never answered"}'
    echo '{"type": "asked", "id": 7, "question": "Go?"}'
    read -r answer
    printf '{"type": "result", "output": %s}\\n' "$answer" """
    result = await run_bash(script, Recorder({"Go?": {"yes": True}}))
    assert result == Result(output={"type": "answer", "id": 7, "value": {"yes": True}})


async def test_a_refused_report_is_answered_with_the_error() -> None:
    script = """
    read -r assignment
    echo '{"type": "confident", "id": 1, "value": 7}'
    read -r answer
    printf '{"type": "result", "output": %s}\\n' "$answer" """
    result = await run_bash(script)
    assert isinstance(result, Result)
    assert result.output["error"] == "ValueError"
    assert "a number from 0 to 1, not 7" in result.output["message"]


async def test_a_refused_report_without_an_id_fails_the_attempt() -> None:
    data = await _failure(f"""echo '{{"type": "confident", "value": 7}}'; sleep 60; {RESULT}""")
    assert "a number from 0 to 1, not 7" in data["message"]


async def test_an_error_of_the_engine_is_not_blamed_on_the_program() -> None:
    with pytest.raises(StoreFull):
        await run_bash(
            """echo '{"type": "saved", "id": 1}'; sleep 60""",
            Recorder(error=StoreFull(place="x", needed="1")),
        )


async def test_a_program_can_be_asked_for_its_progress() -> None:
    class Asking(Recorder):
        def on_save(self, ask: Any, /) -> None:
            super().on_save(ask)
            assert ask() is None

    link = Asking()
    script = """
    read -r assignment
    echo '{"type": "on_save"}'
    read -r request
    [ "$request" = '{"type": "save"}' ] && echo '{"type": "saved", "private": 3}'
    """
    await run_bash(script + RESULT, link)
    assert link.reports == [Saved(private=3)]


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"content": "text"}, b"text"),
        ({"content_base64": "AAH/"}, b"\0\1\xff"),
        ({"file": "made.bin"}, b"made"),
        ({"file": "link"}, b"made"),
        ({}, b"by path"),
    ],
)
async def test_an_output_comes_in_several_ways(
    tmp_path: Path, fields: dict[str, Any], content: bytes
) -> None:
    (tmp_path / "made.bin").write_bytes(b"made")
    (tmp_path / "link").symlink_to("made.bin")
    (tmp_path / "out.bin").write_bytes(b"by path")
    link = Recorder()
    line = json.dumps({"type": "wrote", "id": 1, "path": "out.bin", **fields})
    script = f"""read -r a; echo '{line}'; read -r b; printf '{{"type": "result", "output": %s}}' "$b" """
    result = await run_bash(script, link, workspace=str(tmp_path))
    assert link.reports == [Wrote(path="out.bin", content=content)]
    assert isinstance(result, Result)
    assert result.output["value"] == "outputs/out.bin"


async def test_what_the_system_refuses_is_told_to_the_program() -> None:
    script = """read -r a; echo '{"type": "wrote", "id": 1, "path": "a", "content": "x"}'; read -r b
        printf '{"type": "result", "output": %s}' "$b" """
    result = await run_bash(script, Recorder(error=NotADirectoryError(20, "Not a directory", "a")))
    assert isinstance(result, Result)
    assert (result.output["type"], result.output["error"]) == ("error", "NotADirectoryError")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"content_base64": "***"}, "no base64"),
        ({"content": "a", "file": "b"}, "not both"),
        ({"file": "../secret"}, "not in the workspace"),
        ({"file": "link"}, "not in the workspace"),
        ({"file": "nothing"}, "No such file"),
        ({"file": "pipe"}, "'pipe' in the workspace is no regular file"),
        ({"file": "."}, "'.' in the workspace is no regular file"),
        ({"content": 7}, "must be text or bytes"),
    ],
)
async def test_a_wrong_output_is_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    (tmp_path / "secret").write_text("s")
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(workspace / "pipe")
    line = json.dumps({"type": "wrote", "path": "out.bin", **fields})
    data = await _failure(f"echo '{line}'; sleep 60", workspace=str(workspace))
    assert words in data["message"]


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        (
            "echo hello",
            "GarbageLine",
            "line 1 of its output is no message of the protocol: it is no JSON: 'hello'",
        ),
        ("echo; echo '{\"answer\": 42}'", "GarbageLine", "line 2 of its output is no message"),
        ("echo '[1]'", "GarbageLine", "it is no JSON object"),
        ("echo 42", "GarbageLine", "it is no JSON object"),
        ('echo \'{"type": "dance"}\'', "GarbageLine", "there is no message of type 'dance'"),
        ("printf '{\\n  \"type\": 1\\n}'", "GarbageLine", "line 1"),
        ("printf '\\xff\\xfe'", "GarbageLine", "no JSON"),
        ('echo \'{"type": "result", "output": NaN}\'', "GarbageLine", "no JSON"),
        ('echo \'{"type": "result", "output": {"$what": 1}}\'', "GarbageLine", "no form '$what'"),
        (f"{RESULT}; echo more; sleep 60", "GarbageLine", "line 2"),
        (f"{RESULT}; {RESULT}", "GarbageLine", "it came after the result"),
        ("true", "NoResult", "ended without a result; it printed nothing"),
        ('echo \'{"type": "emitted", "text": "x"}\'', "NoResult", 'its last line was line 1: \'{"type"'),
        ("exit 3", "ProgramFailed", "ended with exit code 3"),
        (f"{RESULT}; exit 3", "ProgramFailed", "ended with exit code 3"),
        ("exit 137", "ProgramFailed", "exit code 137, as after signal 9 (SIGKILL)"),
        ("kill -9 $$", "ProgramFailed", "the program was killed by signal 9 (SIGKILL)"),
        ("kill -SEGV $$", "ProgramFailed", "the program was killed by signal 11 (SIGSEGV)"),
        ("echo trouble >&2; exit 1", "ProgramFailed", "exit code 1: trouble"),
        ('echo \'{"type": "judgement", "scores": {}}\'', "WrongResult", "a result was expected"),
        ('echo \'{"type": "result", "confidence": 3}\'', "WrongResult", "a number from 0 to 1, not 3"),
        ('echo \'{"type": "result", "value": 3}\'', "WrongResult", "result has no field 'value'"),
    ],
    ids=str,
)
async def test_what_a_program_does_wrong_is_named(script: str, error: str, words: str) -> None:
    data = await _failure(script)
    assert data["error"] == error
    assert words in data["message"]


async def test_a_long_garbage_line_is_shown_in_part() -> None:
    data = await _failure("printf 'x%.0s' {1..5000}")
    assert "x" * 200 + "…" in data["message"]
    assert "x" * 201 not in data["message"]


async def test_the_end_is_told_as_data() -> None:
    data = await _failure("echo one >&2; echo two >&2; kill -9 $$")
    assert data["details"] == {"exit_code": 137, "signal": 9, "stderr": "one\ntwo"}


async def test_a_program_can_say_that_it_failed() -> None:
    line = '{"type": "failed", "message": "no luck", "recoverable": false, "details": {"a": 1}}'
    data = await _failure(f"echo why >&2; echo '{line}'; exit 1")
    assert data["message"] == "no luck"
    assert data["recoverable"] is False
    assert data["details"] == {"a": 1, "stderr": "why"}


async def test_a_program_that_lingers_after_its_result_is_ended() -> None:
    assert await run_bash(f"{RESULT}; sleep 600", grace=0.2) == Result(output=1)


async def test_children_that_hold_the_output_open_do_not_hold_the_run(tmp_path: Path) -> None:
    assert await run_bash(f"sleep 600 & {RESULT}") == Result(output=1)
    escaped = "setsid sh -c 'touch out; sleep 4' & while [ ! -e out ]; do sleep 0.01; done;"
    assert await run_bash(f"{escaped} {RESULT}", project=str(tmp_path)) == Result(output=1)


async def test_a_program_that_never_reads_is_no_trouble() -> None:
    assert await run_bash(RESULT, inputs={"big": "x" * 1_000_000}) == Result(output=1)


async def test_only_chosen_variables_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "s")
    monkeypatch.setenv("WANTED", "w")
    monkeypatch.setenv("LC_TIME", "C")
    script = """printf '{"type": "result", "output": "%s"}' "$(env | cut -d= -f1 | sort | tr '\\n' ' ')" """
    agent = command_agent("bash", "-c", script, environment=("WANTED",))
    result = await run_command(agent)
    assert isinstance(result, Result)
    names = set(result.output.split())
    assert {"PATH", "WANTED", "LC_TIME"} <= names
    assert "SECRET_KEY" not in names
    assert names <= {*os.environ, "PWD", "SHLVL", "_"}


async def test_a_path_is_looked_up_from_the_workflow(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "agent"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{RESULT}\n")
    script.chmod(0o755)
    assert await run_command(command_agent("bin/agent"), folder=tmp_path) == Result(output=1)
    assert await run_command(command_agent("sh", "./bin/agent"), folder=tmp_path) == Result(output=1)


async def test_it_works_in_the_project(tmp_path: Path) -> None:
    result = await run_bash("""printf '{"type": "result", "output": "%s"}' "$PWD" """, project=str(tmp_path))
    assert result == Result(output=str(tmp_path))


async def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    for command in ("no-such-program-anywhere", "./missing"):
        with pytest.raises(AgentFailed, match="it cannot be started: No such file") as caught:
            await run_command(command_agent(command), folder=tmp_path)
        assert caught.value.data["recoverable"] is False


async def test_the_bash_example_works(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    link = Recorder()
    agent = command_agent("./agent.sh")
    result = await run_command(agent, link, folder=EXAMPLES, project=str(tmp_path))
    assert result == Result(output={"lines": 2}, confidence=0.9)
    assert link.reports == [Emitted(text="attempt 1\n"), Saved(private={"lines": 2}, progress=0.5)]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_the_node_example_works() -> None:
    link = Recorder({"Which style?": "loud"})
    agent = command_agent("node", "./agent.mjs")
    result = await run_command(agent, link, folder=EXAMPLES, inputs={"words": ["ab", "cde"]})
    assert result == Result(
        output={"counted": {"ab": 2, "cde": 3}, "path": "outputs/words.json"}, confidence=1.0
    )
    assert link.reports[-1] == Wrote(path="words.json", content=b'{"AB":2,"CDE":3}')
