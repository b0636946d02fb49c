"""The agents that ship, loaded by path as the runner does, and a context that notes what they say."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import attrs

from orchestra.agents.python.packages import import_agent
from orchestra.ports.agent import RubricLine

ROOT = Path(__file__).parents[3]
AGENTS = ROOT / "agents"
PLANTED = ROOT / "tests" / "fixtures" / "planted"
KINDS = ("structure", "security", "tests", "docs", "dependencies")
Finding = dict[str, Any]


def load(name: str) -> Any:
    """The module of an agent, such as `mercury/structure`."""
    return import_agent(AGENTS / f"{name}.py")


def helper(name: str) -> Any:
    """A helper module of the specialists."""
    return import_agent(AGENTS / "mercury" / f"_{name}.py")


@attrs.define(kw_only=True)
class Said:
    """A blocking context for agents: takes what they say and answers at once."""

    project: Path
    inputs: dict[str, Any] = attrs.field(factory=lambda: {"path": "."})
    context: dict[str, Any] = attrs.field(factory=dict)
    results: dict[str, Any] = attrs.field(factory=dict)
    needs: dict[str, Any] = attrs.field(factory=dict)
    settings: dict[str, Any] = attrs.field(factory=dict)
    feedback: tuple[str, ...] = ()
    rubric: tuple[RubricLine, ...] = ()
    private: Any = None
    saved: list[Any] = attrs.field(factory=list)
    written: dict[str, str] = attrs.field(factory=dict)
    scores: dict[str, float] = attrs.field(factory=dict)
    decided: list[str] = attrs.field(factory=list)
    text: str = ""

    def save(self, private: Any = None, **_: Any) -> None:
        self.saved.append(deepcopy(private))

    def emit(self, text: str) -> None:
        self.text += text

    def write(self, path: str, content: str) -> str:
        self.written[path] = content
        return path

    def decide(self, description: str, *, rationale: str = "", **_: Any) -> None:
        self.decided.append(f"{description}: {rationale}")

    def score(self, criterion: str, score: float, **_: Any) -> None:
        self.scores[criterion] = score


def surveyed(project: Path, **more: Any) -> Said:
    """A context for a project whose files are listed already."""
    said = Said(project=project, **more)
    said.context["survey"] = load("mercury/survey").agent(said).output
    return said


def findings(project: Path, *kinds: str) -> list[Finding]:
    """What the specialists find in a project."""
    said = surveyed(project)
    found = [each for kind in kinds or KINDS for each in load(f"mercury/{kind}").agent(said).output]
    assert said.decided == [], said.decided
    return found


def results(project: Path) -> Mapping[str, list[Finding]]:
    """What each specialist finds."""
    return {kind: findings(project, kind) for kind in KINDS}


def made(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A project of the given files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def rules(project: Path, *kinds: str) -> list[str]:
    """The rules that are broken in a project."""
    return sorted(each["rule"] for each in findings(project, *kinds))
