"""`orchestra answer`: answer a question of a run."""

from copy import deepcopy
from json import dumps
from typing import Annotated, Any

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Resume, RunArgument, StoreUrl, read_values
from orchestra.cli.play.resume import ask, order_and_report
from orchestra.cli.render.summary import waits_for_people
from orchestra.cli.store import archive
from orchestra.codec.json_values import to_json
from orchestra.engine.orders import Order
from orchestra.errors import BadOrder, BadSetting
from orchestra.history.archive import Archive
from orchestra.history.references import resolve_run
from orchestra.ids import RunId
from orchestra.model.records import Wait
from orchestra.ports.agent import EDITABLE


def answer(
    run: RunArgument,
    value: Annotated[str | None, Parameter(help="The answer; without it the question is shown.")] = None,
    /,
    *,
    question: Annotated[
        str,
        Parameter(metavar="PART", help="Which question, when several are open: a part of its name or text."),
    ] = "",
    set: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            metavar="PATH=VALUE",
            help="What to change of what is asked for: arguments.NAME, as YAML; may be repeated.",
        ),
    ] = None,
    resume: Resume = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Answer a question that a run waits with, wherever it is played.

    When there are choices the answer is one of them. Without an answer the question is shown, and on a
    terminal asked.
    """
    with archive(store) as opened:
        name = resolve_run(opened, run)
        wait, held = _the_question(opened, name, question)
        details = None if held.details is None else to_json(opened.value(held.details))
        if value is None:
            shown = [] if details is None else dumps(details, ensure_ascii=False, indent=2).splitlines()
            value = ask(held.text, f" [{'/'.join(held.choices)}]" if held.choices else "", shown)
    said = _check_answer(name, held, value)
    changed = change_details(details, read_values(set))
    order = Order(kind="answer", target=wait, value={"choice": said, **changed} if changed else said)
    told = f"answered {held.text!r} with {said!r}" + (f", changed {', '.join(changed)}" if changed else "")
    return order_and_report(name, order, told, resume, store, json)


def change_details(details: Any, values: dict[str, Any]) -> dict[str, Any]:
    """What a question lets people edit, with values set in it; raises `BadSetting` for anything else."""
    editable = details.get(EDITABLE, ()) if isinstance(details, dict) else ()
    changed: dict[str, Any] = {}
    for path, value in values.items():
        first, *rest = path.split(".")
        if first not in editable or not isinstance(details[first], dict):
            known = ", ".join(f"{each}.NAME" for each in editable) or "nothing of this question"
            raise BadSetting(setting="--set", value=path, reason=f"what can be changed is {known}")
        if not rest:
            changed[first] = value
            continue
        place = changed.setdefault(first, deepcopy(details[first]))
        for name in rest[:-1]:
            place = place.setdefault(name, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise BadSetting(setting="--set", value=path, reason="it leads into something without names")
        place[rest[-1]] = value
    return changed


def _the_question(opened: Archive, run: RunId, part: str) -> tuple[str, Wait]:
    """The one open question that is meant; raises `BadOrder`, which lists them."""
    questions = [(name, wait) for _, name, wait in waits_for_people(opened, run) if wait.kind == "question"]
    near = [each for each in questions if part in each[0] or part.lower() in each[1].text.lower()]
    exact = [each for each in near if each[0] == part]
    if len(exact or near) == 1:
        return (exact or near)[0]
    if not questions:
        raise BadOrder(order="answer", reason=f"{run} has no open question")
    listed = "; ".join(f"{name} ({wait.text})" for name, wait in near or questions)
    reason = f"{len(near) or 'none'} of the open questions fit; name one with --question: {listed}"
    raise BadOrder(order="answer", reason=reason)


def _check_answer(run: RunId, wait: Wait, value: str | None) -> str:
    """The answer when it fits; raises `BadOrder`, which lists the choices."""
    if value is not None and (not wait.choices or value in wait.choices):
        return value
    choices = f"the choices are {', '.join(wait.choices)}" if wait.choices else "any text will do"
    given = "no answer was given" if value is None else f"{value!r} is no answer"
    raise BadOrder(order="answer", reason=f"{given} to {wait.text!r} of {run}; {choices}")
