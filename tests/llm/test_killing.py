"""A process dies in the middle of a conversation: nothing that was finished is paid or done again.

CHECKLIST 002.5 to 002.9: what was said before the death is there, and the run ends as if nothing had been.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from orchestra.cli.dispatch import run_command_line
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store
from tests.fault.support.work import manager_of
from tests.llm.killing import RUN, environment_for, write_project
from tests.llm.provider import provider_process

ROOT = Path(__file__).parents[2]
_PLACES = pytest.mark.parametrize(
    ("firsts", "step"),
    [
        pytest.param((0, 3), 4, id="every other place"),
        pytest.param((0, 1), 2, id="every place", marks=pytest.mark.slow),
    ],
)
"""Of the places where a process may die: two processes go through them, each from its first by steps."""


def _start(
    dialect: str, folder: Path, first: int, step: int, scene: str = "plain"
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.llm.killing", scene, dialect, str(folder), str(first), str(step)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _cases(*processes: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    cases = []
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        cases += [json.loads(line) for line in out.splitlines()]
    bad = [case for case in cases if case["complaint"]]
    assert not bad, "\n".join(f"{case['case']}: {case['complaint']}" for case in bad[:3])
    return [case for case in cases if case["deaths"]]


def test_dying_anywhere_in_a_conversation(tmp_path: Path) -> None:
    """At least fifty places: at commits, before and after them, between pieces of text, and in tools."""
    died = _cases(*[_start("chat", tmp_path / str(first), first, 2) for first in range(2)])
    assert len(died) >= 50
    then = [case["then"] for case in died if case["then"] is not None]
    calls, waits = [each["calls"] for each in then], [each["waits"] for each in then]
    assert any(each["streaming"] for each in then), "in the middle of an answer"
    assert any(each["answers"] and not each["calls"] for each in then), "between the answer and its calls"
    assert ["done", "started"] in calls, "in a batch of which one is done and one is not"
    assert ["done", "done"] in calls, "between the calls and the next request"
    assert ["done", "done", "waiting"] in calls, "while a person is asked"
    assert ["question"] in waits
    assert ["rate_limit"] in waits, "while a provider is waited for"


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_dying_in_a_conversation_with_other_providers(tmp_path: Path, dialect: str) -> None:
    assert len(_cases(_start(dialect, tmp_path, 3, 9))) >= 5


@_PLACES
@pytest.mark.parametrize("scene", ["compacted", "overflow"])
def test_dying_while_a_conversation_is_compacted(
    tmp_path: Path, scene: str, firsts: tuple[int, int], step: int
) -> None:
    """Before the summary, while it streams and after it; no answer is asked for twice."""
    died = _cases(*[_start("chat", tmp_path / str(first), first, 2, scene) for first in range(2)])
    assert len(died) >= 20
    assert {len(case["books"]["summaries"]) for case in died} == {1}
    assert {case["books"]["compacted"] for case in died} == {1}, "it was decided once"


@_PLACES
def test_dying_while_an_agent_does_an_errand_for_another(
    tmp_path: Path, firsts: tuple[int, int], step: int
) -> None:
    """It is given once; finished, it is found again, and unfinished, it goes on inside its conversation."""
    died = _cases(*[_start("chat", tmp_path / str(first), first, step, "errand") for first in firsts])
    assert len(died) >= 40 // step
    assert all(case["books"]["errands"] == [["work/talk:finder", "completed"]] for case in died)
    then = [case["then"]["errands"] for case in died if case["then"] is not None]
    assert [["work/talk:finder", "running"]] in then
    assert [["work/talk:finder", "completed"]] in then, "between its end and its caller's next request"


def test_what_was_streamed_before_the_death_is_kept_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CHECKLIST 002.5, 002.15, 002.30: the text is there while it comes, and after the process has died."""
    said = "One sentence of it. And another one, which comes later."
    script = [{"text": said, "gates": [{"name": "half", "after": 3}]}]
    write_project(tmp_path, "chat", "risky: send")
    monkeypatch.setenv("ORCHESTRA_STORE", f"sqlite:{tmp_path}/talk.db")

    def chat() -> list[dict[str, Any]]:
        assert run_command_line(["chat", RUN, "talk", "--json"]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["messages"][2:]
        return found

    with provider_process(script, tmp_path) as provider:
        for name, held in environment_for(provider, "chat", tmp_path).items():
            monkeypatch.setenv(name, held)
        command = [sys.executable, "-m", "orchestra", "run", str(tmp_path / "flow.yaml"), "--run-id", RUN]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            assert provider.wait_for("half").deltas == 3
            with open_store(f"sqlite:{tmp_path}/talk.db", create=False) as store:
                while not any(_texts(store)):
                    sleep(0.01)  # the store of another process has no event to wait for
            process.kill()
        (message,) = chat()
        assert message["status"] == "streaming"
        before = _text(message)
        assert said.startswith(before)
        provider.open_gate("half")
        assert run_command_line(["resume", RUN, "--quiet"]) == 0
        assert capsys.readouterr().out == f"completed {RUN}\n"
    kept, whole = chat()
    assert (kept["status"], _text(kept)) == ("interrupted", before)
    assert (whole["status"], _text(whole)) == ("complete", said)


def _text(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["kind"] == "text")


def _texts(store: Store) -> list[str]:
    archive = manager_of(store).archive
    messages = archive.snapshot(archive.newest(RUN)).state.messages.values()
    return [part.text for each in messages if each.role == "assistant" for part in each.parts]
