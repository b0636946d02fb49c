"""`orchestra agents`: the agents in a folder."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.agents.registry import KINDS
from orchestra.cli.options import AsJson
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.errors import BadAgent, BadSetting
from orchestra.ports.agent_kind import AgentKind

_COLUMNS: Final = (
    Column("agent", least=8),
    Column("what it does", least=56),
    Column("file", least=16, drop=1),
)
_DEFAULT: Final = Path("agents")


def agents(
    folder: Annotated[Path, Parameter(help="Where to look, also below it.", show_default=True)] = _DEFAULT,
    /,
    *,
    json: AsJson = False,
) -> None:
    """List the agents in a folder and what each does. Their code is read, not run."""
    if not folder.is_dir():
        raise BadSetting(setting="FOLDER", value=str(folder), reason="there is no such folder")
    kinds = {kind.claim: kind for kind in KINDS.kinds if kind.claim.startswith(".")}
    paths = (path for path in sorted(folder.rglob("*")) if path.suffix in kinds and _is_agent(path, folder))
    found = [_agent(path, kinds[path.suffix]) for path in paths]
    if json:
        print_json(found)
        return
    out = screen()
    if not found:
        out.line(f"No agents in {folder}.")
        return
    print_table(out, _COLUMNS, [_cells(each) for each in found])


def _is_agent(path: Path, folder: Path) -> bool:
    """Helpers begin with an underscore; what Python or a tool keeps for itself is hidden."""
    return not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)


def _agent(path: Path, kind: AgentKind) -> dict[str, Any]:
    description, problem = "", None
    try:
        description = kind.describe(path)
    except BadAgent as bad:
        problem = str(bad.data["reason"])
    return {"name": path.stem, "description": description, "file": str(path), "problem": problem}


def _cells(each: dict[str, Any]) -> list[Line]:
    said: Line = [(each["description"], "")]
    if each["problem"]:
        said = [("✖ ", "bad"), (each["problem"], "bad")]
    return [[(each["name"], "bold")], said, [(each["file"], "dim")]]
