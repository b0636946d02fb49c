"""`orchestra questions`: what runs wait for."""

from typing import Any, Final

from orchestra.cli.options import AsJson, OnlyRun, StoreUrl
from orchestra.cli.render.screen import Column, Screen, pick, print_json, print_table, screen
from orchestra.cli.render.summary import answer_arguments, waits_for_people
from orchestra.cli.render.times import age
from orchestra.cli.store import archive, option
from orchestra.codec.json_values import to_json
from orchestra.history.archive import Archive
from orchestra.history.references import resolve_run
from orchestra.ids import RunId, iso
from orchestra.model.records import Wait

_COLUMNS: Final[tuple[Column[tuple[RunId, str, Wait]], ...]] = (
    Column("run", lambda each: (each[0], "bold"), least=24, name=True),
    Column("who", lambda each: (each[2].agent or "", "accent"), least=6, drop=2),
    Column("waits for", lambda each: (each[2].kind, "warn")),
    Column("question", lambda each: each[2].text, least=20),
    Column("choices", lambda each: (", ".join(each[2].choices), "dim"), least=8),
    Column("age", lambda each: (age(each[2].opened_at), "dim"), align="right", drop=1),
)


def questions(run: OnlyRun = None, /, *, store: StoreUrl = None, json: AsJson = False) -> None:
    """List what runs wait for somebody to say, provide or release, oldest first."""
    with archive(store) as opened:
        found = waits_for_people(opened, None if run is None else resolve_run(opened, run))
        if json:
            print_json([_json(opened, *each) for each in found])
        else:
            _print(screen(), found, store)


def _print(out: Screen, found: list[tuple[RunId, str, Wait]], store: str | None) -> None:
    if not found:
        out.line("No run waits for anybody.")
        return
    print_table(out, _COLUMNS, found)
    run, _, wait = found[0]
    hint = f"resume {run}", "lets it go on"
    if wait.kind == "question":
        alone = [name for name, _, held in found if held.kind == "question"].count(run) == 1
        hint = f"answer {run} {answer_arguments(wait, alone=alone)}", "answers it"
    elif wait.kind == "dependency":
        hint = f"provide {run} {wait.text}", "once it is set"
    out.hints((f"orchestra {hint[0]}{option(store)}", hint[1]))


def _json(opened: Archive, run: RunId, name: str, wait: Wait) -> dict[str, Any]:
    return {
        "run": run,
        "question": name,
        **pick(wait, "kind", "text"),
        "choices": list(wait.choices),
        "who": wait.agent,
        "task": wait.task,
        "details": None if wait.details is None else to_json(opened.value(wait.details)),
        "opened_at": iso(wait.opened_at),
    }
