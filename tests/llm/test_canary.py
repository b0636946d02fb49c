"""Secrets stay out: a run in which everybody blurts them out, and then every byte of what it left.

The canaries have no well-known shape: only who handed them out can know that they are secret.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import pytest

from orchestra.cli.dispatch import run_command_line
from orchestra.codec.values import thaw
from orchestra.ids import run_id
from orchestra.stores.registry import open_store
from tests.fault.support.work import manager_of
from tests.llm.mcp_server import ROOT, mcp_process, server_entry
from tests.llm.provider import provider_in_thread
from tests.llm.talk import FLOW, MODEL
from tests.web.support import served

SECRETS: Final = {
    "key": "canary-of-the-provider-0001",
    "environment": "canary-of-the-environment-0002",
    "file": "canary-of-the-key-file-0003",
    "server": "canary-of-the-server-0004",
    "header": "canary-of-the-header-0005",
}
TOOLS: Final = '''
import os

def leak() -> dict[str, str]:
    """Say what the environment says."""
    return {"token": os.environ["WORK_TOKEN"], "all": repr(dict(os.environ))}

def fails() -> str:
    """Fail with it."""
    raise ValueError("refused: " + os.environ["WORK_TOKEN"])
'''
KEY, FILE, SERVER, HEADER = (SECRETS[each] for each in ("key", "file", "server", "header"))
SCRIPT: Final = [
    {
        "reasoning": f"Is {KEY} the key?",
        "text": f"The key is {KEY}, and the other is {SERVER}.",
        "delta": 1,
        "calls": [
            {"name": "leak"},
            {"name": "fails"},
            {"name": "sums_fail", "arguments": {"message": SERVER}},
        ],
        "faults": [
            {"kind": "rate_limit", "retry_after_ms": 1, "words": f"too many for {KEY}"},
            {"kind": "stream_error", "after": 2, "words": f"{KEY} again"},
            {"kind": "no_model", "words": f"no model for {KEY}"},
        ],
    },
    {"calls": [{"name": "note", "arguments": {"text": f"{KEY} {FILE} {SERVER} {HEADER}"}}]},
    {
        "text": f"All: {' '.join(SECRETS.values())}",
        "faults": [{"kind": "bad_key", "words": f"wrong key: {KEY}", "times": None}],
    },
]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """What a user wrote; the files with secrets lie beside the folder that is searched."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "flow.yaml").write_text(
        FLOW % (", model: [openai-chat:gone, openai-chat:there], mcp: ../mcp.json", 1)
    )
    tools = "tools: [tools.py, 'mcp:sums', 'mcp:far']\nrisky: [note]"
    (folder / "clerk.md").write_text(f"---\nmodel: {MODEL}\n{tools}\n---\nYou are a clerk.\n")
    (folder / "tools.py").write_text(
        TOOLS + '\ndef note(text: str) -> str:\n    """Note."""\n    return text\n'
    )
    entry = server_entry(tmp_path)
    entry["env"] |= {"SERVER_TOKEN": SERVER, "OTHER_TOKEN": "${WANTED}"}
    (tmp_path / "keys").write_text(f"WANTED={FILE}\n")
    with mcp_process(tmp_path) as server:
        far = {"url": server.url, "headers": {"Authorization": f"Bearer {HEADER}"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"sums": entry, "far": far}}))
        yield folder


def _run(folder: Path, url: str, *command: str, code: int) -> bytes:
    environment = {
        **{name: held for name, held in os.environ.items() if not name.startswith("ORCHESTRA")},
        "PYTHONPATH": str(ROOT),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": KEY,
        "WORK_TOKEN": SECRETS["environment"],
        "ORCHESTRA_KEYS": str(folder.parent / "keys"),
        "ORCHESTRA_TRACE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "orchestra", *command], cwd=folder, env=environment, capture_output=True
    )
    assert done.returncode == code, (command, done.stdout.decode(), done.stderr.decode())
    return done.stdout + done.stderr


COMMANDS: Final = (
    ("log", "talk", "--all"), ("chat", "talk", "talk", "--full"), ("show", "talk"),
    ("show", "talk", "--json"),
    ("status", "talk"), ("runs", "--json"), ("questions",), ("stats",), ("verify", "talk"),
    ("export", "talk", "talk.orchestra"), ("export", "talk", "--json-form", "form", "--all"),
    ("export", "talk", "--html", "page.html"), ("chat", "talk", "talk", "--json"),
)  # fmt: skip


def test_no_secret_is_in_any_byte(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with provider_in_thread(SCRIPT) as provider:
        said = [
            (" ".join(command), _run(project, provider.url("chat"), *command, code=code))
            for code, command in (
                (3, ("run", "flow.yaml", "--run-id", "talk", "--record", "answers.jsonl")),
                (0, ("answer", "talk", "approve")),
                (1, ("resume", "talk")),
            )
        ]
        ledger = provider.ledger
    monkeypatch.chdir(project)
    for command in COMMANDS:
        assert run_command_line(command) == 0, capsys.readouterr()
        said.append((" ".join(command), "".join(capsys.readouterr()).encode()))
    assert any("wrong key" in text.decode() for _, text in said), "it was told, without the key"
    assert len(ledger.begun()) > 5
    said += _files(project)
    said += anyio.run(_served, project)
    found = [
        (where, name) for where, data in said for name, secret in SECRETS.items() if secret.encode() in data
    ]
    assert found == []


def _files(project: Path) -> list[tuple[str, bytes]]:
    found = [path for path in project.rglob("*") if path.is_file()]
    wanted = {"orchestra.db", "otlp.jsonl", "events.jsonl", "answers.jsonl", "talk.orchestra", "page.html"}
    assert wanted <= {path.name for path in found}
    return [(str(path), path.read_bytes()) for path in found]


async def _served(project: Path) -> list[tuple[str, bytes]]:
    """What is at every address of the page that can be read, and every value of every snapshot."""
    said: list[tuple[str, bytes]] = []
    with open_store(f"sqlite:{project}/outputs/orchestra.db", create=False) as store:
        archive, run = manager_of(store).archive, run_id("talk")
        for number in range(archive.newest(run).seq + 1):
            snapshot = archive.snapshot(archive.row(run, number))
            for held in (*snapshot.state.tool_calls.values(), *snapshot.state.waits.values()):
                values = [getattr(held, name, None) for name in ("arguments", "result", "details", "answer")]
                opened = [held, *(thaw(each) for each in values if each is not None)]
                said.append((f"@{number}", repr(opened).encode()))
            said.append((f"@{number}", repr((snapshot.header, snapshot.state)).encode()))
        async with served(store) as visitor:
            paths = (await visitor.get("/openapi.json"))["paths"]
            found = [path for path, how in paths.items() if "get" in how and path != "/api/events"]
            answered = 0
            for path in ("/", *found):
                filled = _FIELD.sub(lambda field: _FILL.get(field[1], "talk"), path)
                needed = {each["name"] for each in paths.get(path, {}).get("get", {}).get("parameters", [])}
                told = await visitor.client.get(
                    filled, params={k: v for k, v in _FILL.items() if k in needed}
                )
                answered += told.status_code == 200
                said.append((f"GET {filled}", told.content))
            assert answered > 15, answered
    return said


_FIELD: Final = re.compile(r"\{(\w+)\}")
_FILL: Final = {"seq": "8", "at": "8", "path": '["messages"]', "expr": "true", "ref": "talk@8", "number": "8"}
