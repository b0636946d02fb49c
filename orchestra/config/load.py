"""Loading a workflow file: read, validate, check, compile; everything wrong with it is said at once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from orchestra.config.check.agent_files import AgentFiles
from orchestra.config.check.validate import validate_form
from orchestra.config.check.whole_file import find_mistakes
from orchestra.config.compile import compile_workflow
from orchestra.config.models import WorkflowForm
from orchestra.config.problems import Mistake, Problem, bad_workflow
from orchestra.config.read.source import check_text, read_text
from orchestra.config.read.yaml_tree import YamlTree, read_tree
from orchestra.config.settings.resolve import written_settings
from orchestra.model.workflow import Workflow


@attrs.frozen(kw_only=True)
class LoadedWorkflow:
    """A workflow and where it came from."""

    workflow: Workflow
    file: Path
    inputs: Mapping[str, Any] | None = None  # accepted already, when it is about to start
    text: str
    settings: Mapping[str, Any]  # what its `checkpoint:` and `policy: recovery:` say, by dotted name


def load_workflow(path: Path) -> LoadedWorkflow:
    """The workflow in a file; raises `BadWorkflow` with every mistake in it."""
    return parse_workflow(read_text(path, str(path)), file=str(path), folder=path.parent)


def parse_workflow(text: str, *, file: str, folder: Path) -> LoadedWorkflow:
    """The workflow in a text; agents' files are looked for in `folder`. Raises `BadWorkflow`."""
    text = text.removeprefix("\ufeff")
    check_text(text, file)
    tree = read_tree(text)
    if not tree.whole or tree.data is None:
        raise bad_workflow(file, tree.problems or [Problem(1, 1, _EMPTY)])
    result = validate_form(tree.data)
    agents = AgentFiles(folder)
    found = list(result.mistakes)
    if result.form is not None:
        found += find_mistakes(result.form, tree.data, cut=result.cut, agents=agents)
    problems = [*tree.problems, *tree.places.problems(_told(found, tree))]
    if problems or result.form is None:
        raise bad_workflow(file, problems)
    form = result.form
    sources = {name: source for name, each in form.agents.items() if (source := agents.source(each.path))}
    return LoadedWorkflow(
        workflow=compile_workflow(form, sources), file=Path(file), text=text, settings=settings_of(form)
    )


_EMPTY = "the file is empty; a workflow has at least a `name` and `phases`"


def _told(found: list[Mistake], tree: YamlTree) -> Iterator[Mistake]:
    """The mistakes that do not merely follow from something that was refused before."""
    for mistake in found:
        ends = range(len(mistake.path) + 1)
        if not any(mistake.path[:end] in tree.left_out for end in ends):
            yield mistake


def settings_of(form: WorkflowForm) -> dict[str, Any]:
    """The settings a workflow file gives, by dotted name."""
    return {
        **written_settings(form.checkpoint, "checkpoint."),
        **written_settings(form.policy.recovery, "recovery."),
    }
