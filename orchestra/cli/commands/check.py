"""`orchestra check` and `schema`: workflow files, looked at before anything runs."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from orchestra.app.workflow_files import load_workflow, workflow_schema
from orchestra.cli.exit_codes import OK, USAGE
from orchestra.cli.options import AsJson
from orchestra.cli.render.graph import graph_lines
from orchestra.cli.render.screen import DEFAULT_COLUMNS, Screen, pick, print_json, screen
from orchestra.cli.render.text import count
from orchestra.config.load import LoadedWorkflow
from orchestra.config.problems import Problem
from orchestra.errors import BadWorkflow

Files = Annotated[list[Path], Parameter(name="FILE", help="Workflow files.")]


def check(
    files: Files,
    /,
    *,
    graph: Annotated[bool, Parameter(negative="--no-graph", help="Draw the phases (the default).")] = True,
    python: Annotated[bool, Parameter(help="Print the workflow as a Python program instead.")] = False,
    json: AsJson = False,
) -> int:
    """Check workflow files: every mistake with its file, line and column, and a drawing of what is right.

    Agents' files are looked into, not run. Exits with 2 when there is a mistake.
    """
    found = [(file, _load(file)) for file in files]
    if json:
        print_json([_json(*each) for each in found])
    else:
        for file, each in found:
            _print(screen(), file, each, graph, python)
    return USAGE if any(isinstance(each, BadWorkflow) for _, each in found) else OK


def _load(file: Path) -> LoadedWorkflow | BadWorkflow:
    try:
        return load_workflow(file)
    except BadWorkflow as bad:
        return bad


def _problems(bad: BadWorkflow) -> list[Problem]:
    problems = bad.data["problems"]
    assert isinstance(problems, tuple), "BUG: mistakes are a tuple"
    return list(problems)


def _print(out: Screen, file: Path, found: LoadedWorkflow | BadWorkflow, graph: bool, python: bool) -> None:
    if isinstance(found, BadWorkflow):
        for problem in _problems(found):
            place, _, said = problem.as_text(str(file)).partition(": ")
            out.paragraph([(f"{place}: ", "bold"), (said, "")])
        out.line(("✖ ", "bad"), f"{file} cannot be used: {found.data['count']}.")
        return
    if python:
        from orchestra.app.building.program_text import program_text

        sys.stdout.write(program_text(found))
        return
    if graph:
        for line in graph_lines(found.workflow, width=out.columns or DEFAULT_COLUMNS):
            out.line(line)
        out.line()
    workflow = found.workflow
    amount = f"{count(len(workflow.phases), 'phase')}, {count(len(workflow.agents), 'agent')}"
    out.line(("✔ ", "good"), f"{file} is in order: {amount}.")
    required = " ".join(f"--input {each.name}=VALUE" for each in workflow.inputs if each.required)
    out.hints((f"orchestra run {file}{' ' + required if required else ''}", "plays it"))


def _json(file: Path, found: LoadedWorkflow | BadWorkflow) -> dict[str, Any]:
    if isinstance(found, BadWorkflow):
        problems = [pick(each, "line", "column", "message") for each in _problems(found)]
        return {"file": str(file), "usable": False, "workflow": None, "phases": [], "problems": problems}
    name, phases = found.workflow.name, [phase.id for phase in found.workflow.phases]
    return {"file": str(file), "usable": True, "workflow": name, "phases": phases, "problems": []}


def schema(*, settings: Annotated[bool, Parameter(help="Of the settings file instead.")] = False) -> None:
    """Print the JSON Schema of workflow files, which lets editors complete and check them."""
    from orchestra.config.schema import schema_text, settings_schema

    sys.stdout.write(schema_text(settings_schema() if settings else workflow_schema()))
