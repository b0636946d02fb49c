"""`orchestra config`: every setting, its value, and where it came from."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.app.workflow_files import load_workflow
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.play.settings import resolve_settings
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.config.settings.resolve import ResolvedSetting
from orchestra.config.units import shown_duration

_COLUMNS: Final = (Column("setting"), Column("value", least=12), Column("from", least=8))
_DURATIONS: Final = frozenset({"checkpoint.every", "recovery.timeout"})


def config(
    *,
    workflow: Annotated[
        Path | None, Parameter(metavar="FILE", help="With what this workflow file says.")
    ] = None,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Print every setting, its value and where it came from.

    Defaults, then configs/orchestra.yaml, then the workflow, then ORCHESTRA_… variables, then flags: the last
    one wins.
    """
    said = None if workflow is None else load_workflow(workflow).settings
    found = resolve_settings(store, said, str(workflow))
    if json:
        print_json([{"name": each.name, "value": _plain(each.value), "from": each.source} for each in found])
        return
    print_table(screen(), _COLUMNS, [_cells(each) for each in found])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple | set | frozenset) else value


def _cells(each: ResolvedSetting) -> list[Line]:
    given = each.source != "default"
    return [
        [(each.name, "bold" if given else "")],
        [(_shown(each), "accent" if given else "")],
        [(each.source, "warn" if given else "dim")],
    ]


def _shown(each: ResolvedSetting) -> str:
    value = each.value
    if each.name in _DURATIONS and isinstance(value, int):
        return shown_duration(value)
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
