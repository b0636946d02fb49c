"""`orchestra audit`, and the line that every command leaves that reads or removes snapshots."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app.compose import open_manager
from orchestra.cli.catalog import COMMANDS
from orchestra.ids import RunId
from orchestra.model import events as ev
from orchestra.model.state import WorkflowRef
from orchestra.testing.clock import START
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, FORK, HEAD, REVIEW

READERS: dict[str, tuple[str, ...]] = {
    "status": (REVIEW,),
    "log": (REVIEW,),
    "outputs": (REVIEW,),
    "questions": (FORK,),
    "snapshots": (REVIEW,),
    "show": (f"{REVIEW}@4",),
    "diff": (f"{REVIEW}@2", f"{REVIEW}@5"),
    "blame": (REVIEW, "status"),
    "chat": (REVIEW,),
    "bisect": (REVIEW, 'status == "completed"'),
    "stats": (),
    "verify": (REVIEW,),
    "pin": (f"{REVIEW}@3",),
    "note": (f"{REVIEW}@3", "look"),
    "prune": ("--dry-run",),
    "export": (REVIEW, "out.orchestra"),
    "doctor": (),
    "watch": (REVIEW,),
    "list-checkpoints": ("--task", "review"),
    "diff-checkpoints": ("--from", f"{REVIEW}@2", "--to", f"{REVIEW}@4"),
}
PLAYERS = {
    "run", "resume", "answer", "provide", "pause", "cancel", "snapshot", "retry", "rollback", "fork",
    "replay", "browse",
}  # fmt: skip
"""These need a run that is played: see `tests/integration/test_audit.py`."""
REMOVERS = {"delete"}
READ_NONE = {
    "init", "check", "agents", "schema", "config", "runs", "audit", "import", "store info", "store check",
    "store compact", "store accept-loss", "completion", "validate-checkpoint",
}  # fmt: skip
"""These open no store, or read no snapshot of it."""


@pytest.fixture
def on(own: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls a command on a store of its own, which is audited."""
    monkeypatch.setenv("ORCHESTRA_CHECKPOINT_AUDIT", "true")
    return own


def _file() -> Path:
    return Path(os.environ["ORCHESTRA_STORE"].removeprefix("sqlite:") + "-audit.jsonl")


def _lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _file().read_text(encoding="ascii").splitlines()]


def test_every_command_is_looked_at_here() -> None:
    assert {*READERS, *PLAYERS, *REMOVERS, *READ_NONE} == {command.name for command in COMMANDS}


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_leaves_its_line(on: Cli, command: str) -> None:
    outcome = on(command, *READERS[command])
    assert outcome.code in (0, 1), outcome.err
    found = _lines()
    assert found, command
    assert {line["what"] for line in found} == {command}
    assert {line["act"] for line in found} == {"read"}
    assert len(found) == len({line["run"] for line in found}), "one line for each run"
    assert on("audit", "--check").code == 0


@pytest.mark.parametrize("command", [*READERS, "runs", "store info", "store check"])
def test_without_the_setting_nothing_is_left(own: Cli, command: str) -> None:
    own(*command.split(), *READERS.get(command, ()))
    assert not list(_file().parent.glob("*audit*"))


def test_a_list_of_runs_reads_how_completed_ones_ended(on: Cli) -> None:
    assert on("runs").code == 0
    assert [(line["run"], line["first"], line["last"]) for line in _lines()] == [(REVIEW, HEAD, HEAD)]


@pytest.mark.parametrize("command", ["store info", "store check", "config"])
def test_what_reads_no_snapshots_leaves_no_line(on: Cli, command: str) -> None:
    assert on(*command.split()).code == 0
    assert command == "config" or _lines() == []


def test_a_line_says_what_was_read(on: Cli) -> None:
    on("show", f"{REVIEW}@4", "--json")
    on("snapshots", REVIEW, "--limit", "2")
    shown, listed = _lines()
    assert (shown["run"], shown["first"], shown["last"], shown["count"]) == (REVIEW, 0, 4, 5)
    assert shown["content"] is True
    assert (listed["last"], listed["content"]) == (HEAD, True)


def test_removing_leaves_a_line(on: Cli) -> None:
    assert on("delete", AUDIT, "--yes").code == 0
    removed = [line for line in _lines() if line["act"] == "deleted"]
    assert [(line["what"], line["run"], line["count"]) for line in removed] == [("delete", AUDIT, 4)]
    assert AUDIT in on("audit", "audit_").out  # its lines stay, and it is still found by its beginning


async def _record_long_run() -> None:
    async with open_manager() as manager:
        active = await manager.begin(
            ev.RunStarted(at=START, run=RunId("long"), workflow=WorkflowRef(name="l"))
        )
        for _ in range(70):
            await manager.record(active, [ev.RunPaused(at=START, reason="rest"), ev.RunResumed(at=START)])
        await manager.record(active, [ev.RunEnded(at=START, outcome="completed")])
        await manager.release(active)
        manager.archive.store.close()


def test_pruning_leaves_a_line(on: Cli) -> None:
    anyio.run(_record_long_run)
    assert on("prune", "long", "--per-phase", "0", "--days", "0").code == 0
    removed = [line for line in _lines() if line["act"] == "pruned"]
    assert [(line["what"], line["run"]) for line in removed] == [("prune", "long")]
    assert removed[0]["count"] > 0


def test_the_settings_file_begins_an_audit_too(own: Cli) -> None:
    Path("configs").mkdir()
    Path("configs/orchestra.yaml").write_text("checkpoint: {audit: true}\n", encoding="utf-8")
    own("show", REVIEW)
    assert [line["what"] for line in _lines()] == ["show"]
    setting = next(each for each in own("config", "--json").json if each["name"] == "checkpoint.audit")
    assert setting == {"name": "checkpoint.audit", "value": True, "from": "configs/orchestra.yaml"}


def test_a_value_that_is_neither_on_nor_off_is_refused(own: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRA_CHECKPOINT_AUDIT", "maybe")
    outcome = own("show", REVIEW)
    assert outcome.code == 2
    assert "$ORCHESTRA_CHECKPOINT_AUDIT" in outcome.err
    assert not _file().exists()


def test_turning_the_setting_off_does_not_end_an_audit(on: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    on("show", REVIEW)
    for value in ("false", None):
        if value is None:
            monkeypatch.delenv("ORCHESTRA_CHECKPOINT_AUDIT")
        else:
            monkeypatch.setenv("ORCHESTRA_CHECKPOINT_AUDIT", value)
        on("log", REVIEW)
    assert [line["what"] for line in _lines()] == ["show", "log", "log"]


# --- listing and proving


def test_the_list(on: Cli) -> None:
    on("show", REVIEW)
    on("log", FORK)
    on("stats")
    outcome = on("audit")
    assert outcome.code == 0
    title, *rows = outcome.lines
    assert title.split() == ["#", "time", "user", "process", "what", "run", "did", "snapshots"]
    assert [row.split()[5] for row in rows][:2] == ["show", "log"]
    assert len(rows) == len(_lines())
    assert on("audit", "--json").json == _lines()
    assert [line["what"] for line in on("audit", FORK, "--json").json] == ["log", "stats"]
    assert on("audit", "--since", "1h", "--json").json == _lines()
    assert on("audit", "--since", "2999-01-01", "--json").json == []
    assert on("audit", "--since", "2999-01-01").out == "No such lines.\n"
    assert on("audit", "--limit", "1", "--json").json == _lines()[-1:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "There is no run 'nobody'"),
        (("a b",), "names no run"),
        (("review",), "fits 2 runs"),
        (("--since", "yesterday"), "--since"),
        (("--limit", "-1"), "--limit"),
        (("--check", REVIEW), "leave RUN and --since out"),
        (("--check", "--since", "1h"), "leave RUN and --since out"),
        (("--store", "memory:"), "keeps no audit"),
        (("--store", "sqlite:absent.db"), "There is no store"),
        (("--chekc",), "--check"),
    ],
)
def test_what_cannot_be_asked(on: Cli, arguments: tuple[str, ...], said: str) -> None:
    on("show", REVIEW)
    on("show", FORK)
    outcome = on("audit", *arguments)
    assert outcome.code == 2
    assert said in outcome.err


def test_a_run_that_nobody_read(on: Cli) -> None:
    on("show", REVIEW)
    assert on("audit", AUDIT).out == "No such lines.\n"
    assert len(_lines()) == 1


def test_a_store_that_is_not_audited(own: Cli) -> None:
    outcome = own("audit")
    assert outcome.code == 0
    assert "is not audited" in outcome.out
    assert own("audit", "--json").json == []
    assert own("audit", "--check").code == 2


def test_the_chain_is_proved(on: Cli) -> None:
    on("show", REVIEW)
    on("log", REVIEW)
    outcome = on("audit", "--check")
    assert (outcome.code, outcome.out) == (0, f"✔ {_file()} is whole: 2 lines.\n")
    assert on("audit", "--check", "--json").json == {
        "file": str(_file()),
        "whole": True,
        "lines": 2,
        "broken": None,
    }
    assert f"on: 2 lines in {_file()}" in on("doctor").out


def test_damage_is_named_and_ends_with_4(on: Cli) -> None:
    for command in ("show", "log", "status"):
        on(command, REVIEW)
    whole = _file().read_bytes()
    _file().write_bytes(whole.replace(b'"what":"log"', b'"what":"lag"'))
    outcome = on("audit", "--check")
    assert outcome.code == 4
    assert outcome.lines[0] == f"✖ Line 2 of {_file()}: it, or the line before it, was changed."
    broken = on("audit", "--check", "--json")
    assert broken.code == 4
    assert broken.json["broken"]["line"] == 2
    assert "✖ audit" in on("doctor").out


def test_lines_that_cannot_be_read_are_said_in_the_list(on: Cli) -> None:
    on("show", REVIEW)
    with _file().open("ab") as file:
        file.write(b"nonsense\n")
    outcome = on("audit")
    assert outcome.code == 4
    assert "damaged: 1 line of" in outcome.out


# --- when it cannot be written


def test_a_file_that_cannot_be_written_stops_the_reading(on: Cli) -> None:
    _file().mkdir()
    outcome = on("show", REVIEW)
    assert (outcome.code, outcome.out) == (1, "")
    assert "Is a directory" in outcome.err
    assert "let this user write to the file" in outcome.err
    assert json.loads(on("show", REVIEW, "--json").err)["error"]["kind"] == "AuditFailed"
    assert "✖ store" in on("doctor").out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it needs a full device")
def test_a_full_disk_is_said(on: Cli) -> None:
    _file().symlink_to("/dev/full")
    outcome = on("show", REVIEW)
    assert outcome.code == 1
    assert "No space left on device" in outcome.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(on: Cli) -> None:
    _file().parent.chmod(0o555)
    try:
        outcome = on("show", REVIEW)
    finally:
        _file().parent.chmod(0o755)
    assert outcome.code == 1
    assert "Permission denied" in outcome.err
