"""`orchestra agents`: the agents in a folder."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.agents.registry import KINDS
from orchestra.cli.options import AsJson
from orchestra.cli.render.screen import Column, print_json, print_table, screen
from orchestra.errors import BadAgent, BadSetting
from orchestra.ports.agent_kind import AgentKind

_COLUMNS: Final[tuple[Column[dict[str, Any]], ...]] = (
    Column("agent", lambda each: (each["name"], "bold"), least=8),
    Column(
        "what it does",
        lambda each: (f"✖ {each['problem']}", "bad") if each["problem"] else each["description"],
        least=56,
    ),
    Column("file", lambda each: (each["file"], "dim"), least=16, drop=1),
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
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in kinds]
    # Helpers begin with an underscore; what Python or a tool keeps for itself is hidden.
    hidden = {path for path in paths if any(part[0] in "_." for part in path.relative_to(folder).parts)}
    found = [_agent(path, kinds[path.suffix]) for path in paths if path not in hidden]
    if json:
        print_json(found)
    elif found:
        print_table(screen(), _COLUMNS, found)
    else:
        screen().line(f"No agents in {folder}.")


def _agent(path: Path, kind: AgentKind) -> dict[str, Any]:
    description, problem = "", None
    try:
        description = kind.describe(path)
    except BadAgent as bad:
        problem = str(bad.data["reason"])
    return {"name": path.stem, "description": description, "file": str(path), "problem": problem}
