"""The JSON in `docs/reference/commands.md` has the names that the commands really print."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project
from tests.unit.cli.recording import REVIEW

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
_BLOCK = re.compile(r"^```json (?P<command>[\w -]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = "…"
"""Stands for names that are shown at another command."""


def _documented() -> dict[str, Any]:
    return {match["command"]: json.loads(match["body"]) for match in _BLOCK.finditer(PAGE.read_text())}


COMMANDS: dict[str, tuple[str, ...]] = {
    "runs": ("runs",),
    "snapshots": ("snapshots", REVIEW),
    "show": ("show", f"{REVIEW}@4"),
    "diff": ("diff", f"{REVIEW}@9"),
    "blame": ("blame", REVIEW, "completed_tasks"),
    "bisect": ("bisect", REVIEW, "completed_tasks > 1"),
    "verify": ("verify",),
    "audit": ("audit",),
    "prune": ("prune",),
    "export": ("export", REVIEW),
    "import": ("import", "run.orchestra"),
    "store info": ("store", "info"),
    "status": ("status", REVIEW),
    "status --brief": ("status", REVIEW, "--brief"),
    "log": ("log", REVIEW, "--decisions"),
    "chat": ("chat", REVIEW),  # tests/llm/test_chat.py looks at what is in its messages
    "outputs": ("outputs", "played"),
    "questions": ("questions", "played"),
    "rollback": ("rollback", "played@phase:p1"),
    "check": ("check", "flow.yaml"),
    "agents": ("agents", "."),
    "config": ("config",),
}
PLAYED = {"outputs", "questions", "rollback", "check", "agents"}
"""Commands that look at a run that was really played, or at its project."""


def _differences(told: Any, real: Any, where: str) -> list[str]:
    """Where the names of two documents differ; lists are compared by their first entries."""
    if isinstance(told, list) and isinstance(real, list):
        return _differences(told[0], real[0], f"{where}[0]") if told and real else []
    if not isinstance(told, dict) or not isinstance(real, dict):
        return []
    found = [f"{where}.{name} is not printed" for name in told if name not in real and name != ELSEWHERE]
    if ELSEWHERE not in told:
        found += [f"{where}.{name} is not documented" for name in real if name not in told]
    for name in told.keys() & real.keys():
        found += _differences(told[name], real[name], f"{where}.{name}")
    return found


def test_every_shape_is_looked_at() -> None:
    assert _documented().keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_names_are_as_documented(own: Cli, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "audit":
        monkeypatch.setenv("ORCHESTRA_CHECKPOINT_AUDIT", "true")
        own("show", REVIEW)
    if name == "import":
        own("export", REVIEW, "run.orchestra")
    if name in PLAYED:
        Project(Path()).workflow("quick", "asks")
        own("run", "flow.yaml", "--run-id", "played")
    outcome = own(*COMMANDS[name], "--json")
    assert outcome.code == (2 if name == "rollback" else 0)
    loose = {"figures", "reasons"}  # their names depend on what happened
    found = [
        each for each in _differences(_documented()[name], outcome.json, name) if not _is_loose(each, loose)
    ]
    assert found == []


def _is_loose(difference: str, loose: set[str]) -> bool:
    return bool(set(difference.split(" ")[0].split(".")[:-1]) & loose)
