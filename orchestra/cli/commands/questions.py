"""`orchestra questions`, `answer` and `provide`: what runs wait for, and giving it to them."""

from json import dumps
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Resume, RunArgument, StoreUrl
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.summary import answer_arguments, open_waits
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.times import age
from orchestra.cli.store import archive, option
from orchestra.errors import BadOrder
from orchestra.history.archive import Archive
from orchestra.history.places import plain_json
from orchestra.history.references import resolve_run
from orchestra.ids import RunId, iso
from orchestra.model.records import Wait
from orchestra.ports.store import RunQuery

_COLUMNS: Final = (
    Column("run", least=24, name=True),
    Column("who", least=6, drop=2),
    Column("waits for"),
    Column("question", least=20),
    Column("choices", least=8),
    Column("age", align="right", drop=1),
)
_MOST: Final = 10_000
_PEOPLE: Final = frozenset({"question", "dependency", "breakpoint"})


def questions(
    run: Annotated[str | None, Parameter(help="Only this run.")] = None,
    /,
    *,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """List what runs wait for somebody to say, provide or release, oldest first."""
    with archive(store) as opened:
        found = _open(opened, None if run is None else resolve_run(opened, run))
        if json:
            print_json([_json(opened, *each) for each in found])
            return
        _print(screen(), found, store)


def _open(opened: Archive, run: RunId | None) -> list[tuple[RunId, str, Wait]]:
    """Every open wait for a person."""
    if run is not None:
        names = [run]
    else:
        query = RunQuery(status=("running", "waiting", "paused"), limit=_MOST)
        names = [row.run for row in opened.store.runs(query)]
    found = [
        (name, wait, held)
        for name in names
        for wait, held in open_waits(opened.snapshot(opened.newest(name)).state)
        if held.kind in _PEOPLE
    ]
    return sorted(found, key=lambda each: each[2].opened_at)


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


def answer(
    run: RunArgument,
    value: Annotated[str | None, Parameter(help="The answer; without it the question is shown.")] = None,
    /,
    *,
    question: Annotated[
        str,
        Parameter(metavar="PART", help="Which question, when several are open: a part of its name or text."),
    ] = "",
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
        if value is None:
            value = _asked(opened, held)
    value = _fitting(name, held, value)
    from orchestra.cli.play.send import order_and_report
    from orchestra.engine.orders import Order

    order = Order(kind="answer", target=wait, value=value)
    return order_and_report(name, order, f"answered {held.text!r} with {value!r}", resume, store, json)


def _the_question(opened: Archive, run: RunId, part: str) -> tuple[str, Wait]:
    """The one open question that is meant; raises `BadOrder`, which lists them."""
    questions = [(name, wait) for _, name, wait in _open(opened, run) if wait.kind == "question"]
    near = [each for each in questions if part in each[0] or part.lower() in each[1].text.lower()]
    exact = [each for each in near if each[0] == part]
    if len(exact or near) == 1:
        return (exact or near)[0]
    if not questions:
        raise BadOrder(order="answer", reason=f"{run} has no open question")
    listed = "; ".join(f"{name} ({wait.text})" for name, wait in near or questions)
    reason = f"{len(near) or 'none'} of the open questions fit; name one with --question: {listed}"
    raise BadOrder(order="answer", reason=reason)


def _asked(opened: Archive, wait: Wait) -> str | None:
    """What a person at the terminal says to the question and what was handed in with it; None without one."""
    import sys

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return None
    choices = f" [{'/'.join(wait.choices)}]" if wait.choices else ""
    out = screen()
    if wait.details is not None:
        details = plain_json(opened.value(wait.details))
        for line in dumps(details, ensure_ascii=False, indent=2).splitlines():
            out.line((f"  {line}", "dim"))
    out.out.write(out.render([(wait.text, "bold"), (choices, "dim")]) + " ")
    out.out.flush()
    return sys.stdin.readline().strip() or None


def _fitting(run: RunId, wait: Wait, value: str | None) -> str:
    """The answer when it fits; raises `BadOrder`, which lists the choices."""
    if value is not None and (not wait.choices or value in wait.choices):
        return value
    choices = f"the choices are {', '.join(wait.choices)}" if wait.choices else "any text will do"
    given = "no answer was given" if value is None else f"{value!r} is no answer"
    raise BadOrder(order="answer", reason=f"{given} to {wait.text!r} of {run}; {choices}")


def provide(
    run: RunArgument,
    name: Annotated[str, Parameter(help="What is there now, e.g. OPENAI_API_KEY.")],
    /,
    *,
    resume: Resume = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """Say that something a run needs is there now.

    The value itself is read from the environment by whoever plays the run; it is never stored.
    """
    with archive(store) as opened:
        found = resolve_run(opened, run)
    from orchestra.cli.play.send import order_and_report
    from orchestra.engine.orders import Order

    order = Order(kind="provide", target=name)
    return order_and_report(found, order, f"said that {name} is there", resume, store, json)
