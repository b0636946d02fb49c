"""`orchestra config`: every setting, its value, and where it came from."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.app.workflow_files import load_workflow
from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.play.settings import resolve_settings
from orchestra.cli.render.screen import Column, print_json, print_table, screen
from orchestra.config.settings.resolve import ResolvedSetting
from orchestra.config.units import shown_duration

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
    else:
        print_table(screen(), _COLUMNS, found)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple | set | frozenset) else value


def _shown(each: ResolvedSetting) -> str:
    value = each.value
    if each.name in _DURATIONS and isinstance(value, int):
        return shown_duration(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


_COLUMNS: Final[tuple[Column[ResolvedSetting], ...]] = (
    Column("setting", lambda each: (each.name, "" if each.source == "default" else "bold")),
    Column("value", lambda each: (_shown(each), "" if each.source == "default" else "accent"), least=12),
    Column("from", lambda each: (each.source, "dim" if each.source == "default" else "warn"), least=8),
)
