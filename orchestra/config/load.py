"""Loading a workflow file: read, validate, check, compile; everything wrong with it is said at once."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from orchestra.config.check.agents import AgentReader
from orchestra.config.check.validate import validate_form
from orchestra.config.check.whole_file import find_mistakes
from orchestra.config.compile import compile_workflow
from orchestra.config.models import WorkflowForm
from orchestra.config.problems import Mistake, Problem, bad_workflow
from orchestra.config.read.source import check_text, read_text
from orchestra.config.read.yaml_tree import read_tree
from orchestra.config.settings.resolve import written_settings
from orchestra.model.workflow import Workflow
from orchestra.ports.agent_kind import AgentKinds


@attrs.frozen(kw_only=True)
class LoadedWorkflow:
    """A workflow that was checked, and where it came from."""

    workflow: Workflow
    file: Path  # a workflow file, or the line of a program, `FILE.py:12`; without a name: neither
    inputs: Mapping[str, Any] | None = None  # accepted already, when it is about to start
    text: str
    settings: Mapping[str, Any]  # what its `checkpoint:` and `policy: recovery:` say, by dotted name
    functions: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict, repr=False)  # of a program


@attrs.frozen(kw_only=True)
class CheckedData:
    """What came of the data of a workflow: everything wrong with it, and the workflow if nothing is."""

    mistakes: tuple[Mistake, ...] = ()
    workflow: Workflow | None = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)


def load_workflow(path: Path | str, kinds: AgentKinds, models: Collection[str] = ()) -> LoadedWorkflow:
    """The workflow in a file, to be played with `models`; raises `BadWorkflow` with every mistake in it."""
    text = read_text(Path(path), str(path))
    return parse_workflow(text, file=str(path), folder=Path(path).parent, kinds=kinds, models=models)


def parse_workflow(
    text: str, *, file: str, folder: Path, kinds: AgentKinds, models: Collection[str] = ()
) -> LoadedWorkflow:
    """The workflow in a text; agents' files are looked for in `folder`. Raises `BadWorkflow`."""
    text = text.removeprefix("\ufeff")
    check_text(text, file)
    tree = read_tree(text)
    if not tree.whole or tree.data is None:
        raise bad_workflow(file, tree.problems or [Problem(1, 1, _EMPTY)])
    checked = check_data(tree.data, folder, kinds, models=models)
    own = [  # what does not merely follow from something that was refused before
        each
        for each in checked.mistakes
        if not any(each.path[:end] in tree.left_out for end in range(len(each.path) + 1))
    ]
    problems = [*tree.problems, *tree.places.problems(own)]
    if problems or checked.workflow is None:
        raise bad_workflow(file, problems)
    return LoadedWorkflow(workflow=checked.workflow, file=Path(file), text=text, settings=checked.settings)


def check_data(
    data: Any,
    folder: Path,
    kinds: AgentKinds,
    functions: Collection[str] = (),
    models: Collection[str] = (),
) -> CheckedData:
    """Check the data of a workflow, from a file or a program, and compile it when nothing is wrong.

    Agents named in `functions` are code of the program that asks, so no file is looked for.
    """
    result, agents = validate_form(data, WorkflowForm), AgentReader(kinds, folder, functions, models)
    form, mistakes = result.form, result.mistakes
    if form is not None:
        mistakes = (*mistakes, *find_mistakes(form, data, cut=result.cut, agents=agents))
    if form is None or mistakes:
        return CheckedData(mistakes=mistakes)
    settings = written_settings(form.checkpoint, "checkpoint.")
    settings |= written_settings(form.policy.recovery, "recovery.")
    return CheckedData(workflow=compile_workflow(form, agents.agents()), settings=settings)


_EMPTY = "the file is empty; a workflow has at least a `name` and `phases`"
