"""`orchestra questions`: what runs wait for."""

from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, StoreUrl
from orchestra.cli.play.waits import waits_for_people
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.summary import answer_arguments
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.times import age
from orchestra.cli.store import archive, option
from orchestra.history.archive import Archive
from orchestra.history.places import plain_json
from orchestra.history.references import resolve_run
from orchestra.ids import RunId, iso
from orchestra.model.records import Wait

_COLUMNS: Final = (
    Column("run", least=24, name=True),
    Column("who", least=6, drop=2),
    Column("waits for"),
    Column("question", least=20),
    Column("choices", least=8),
    Column("age", align="right", drop=1),
)


def questions(
    run: Annotated[str | None, Parameter(help="Only this run.")] = None,
    /,
    *,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """List what runs wait for somebody to say, provide or release, oldest first."""
    with archive(store) as opened:
        found = waits_for_people(opened, None if run is None else resolve_run(opened, run))
        if json:
            print_json([_json(opened, *each) for each in found])
            return
        _print(screen(), found, store)


def _print(out: Screen, found: list[tuple[RunId, str, Wait]], store: str | None) -> None:
    if not found:
        out.line("No run waits for anybody.")
        return
    print_table(out, _COLUMNS, [_cells(*each) for each in found])
    run, _, wait = found[0]
    at = option(store)
    if wait.kind == "question":
        alone = [name for name, _, held in found if held.kind == "question"].count(run) == 1
        out.hints((f"orchestra answer {run} {answer_arguments(wait, alone=alone)}{at}", "answers it"))
    elif wait.kind == "dependency":
        out.hints((f"orchestra provide {run} {wait.text}{at}", "once it is set"))
    else:
        out.hints((f"orchestra resume {run}{at}", "lets it go on"))


def _cells(run: RunId, _name: str, wait: Wait) -> list[Line]:
    return [
        [(run, "bold")],
        [(wait.agent or "", "accent")],
        [(wait.kind, "warn")],
        [(wait.text, "")],
        [(", ".join(wait.choices), "dim")],
        [(age(wait.opened_at), "dim")],
    ]


def _json(opened: Archive, run: RunId, name: str, wait: Wait) -> dict[str, Any]:
    return {
        "run": run,
        "question": name,
        "kind": wait.kind,
        "text": wait.text,
        "choices": list(wait.choices),
        "who": wait.agent,
        "task": wait.task,
        "details": None if wait.details is None else plain_json(opened.value(wait.details)),
        "opened_at": iso(wait.opened_at),
    }
