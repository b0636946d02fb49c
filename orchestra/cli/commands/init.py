"""`orchestra init`: a new project, small, whole, and running without any key or network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orchestra.agents.llm.models import TEST, missing_extra
from orchestra.app.workflow_files import workflow_schema
from orchestra.cli.options import AsJson
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.store import quote
from orchestra.cli.templates import DEFAULT, LLM, TEMPLATES
from orchestra.config.schema import schema_text
from orchestra.errors import BadSetting, UsageError
from orchestra.suggest import meant


class WouldOverwrite(UsageError):
    """A file of the new project is there already."""

    template = "{folder} has {files} already, and nothing is overwritten. Name another folder."


class NotWritten(UsageError):
    """The files of the new project cannot be written."""

    template = "The project cannot be made in {folder}: {reason}. Name a folder in which you may write."


class NoFolder(UsageError):
    """A file is where the folder of the new project would be."""

    template = "{file} is a file, so the project cannot be made there. Name another folder."


def init(
    folder: Annotated[Path, Parameter(help="The folder of the new project; it may be there already.")],
    /,
    *,
    template: Annotated[
        str,
        Parameter(
            metavar="NAME",
            help="What it begins with: `python`, agents in Python; `llm`, a language model and its tool.",
        ),
    ] = DEFAULT,
    json: AsJson = False,
) -> None:
    """Make a new project: agents, a workflow that runs at once and offline, a README and a .gitignore."""
    if template not in TEMPLATES:
        reason = f"there is no such template{meant(template, TEMPLATES)}"
        raise BadSetting(setting="--template", value=template, reason=reason)
    files = {**TEMPLATES[template], "configs/workflow.schema.json": schema_text(workflow_schema())}
    try:
        _make(folder, files)
    except OSError as error:
        raise NotWritten(folder=str(folder), reason=error.strerror or str(error)) from error
    if json:
        print_json({"folder": str(folder), "files": list(files)})
        return
    out = screen()
    out.line("Made ", (str(folder), "bold"), ":")
    for name in files:
        out.line("  ", name)
    first = next(name for name in files if name.endswith(".yaml"))
    if template == LLM and (command := missing_extra(TEST)):
        out.line(("  first      ", "dim"), command, ("   in a checkout of orchestra", "dim"))
    move = "" if folder.resolve() == Path().resolve() else f"cd {quote(str(folder))} && "
    out.line(("  next       ", "dim"), f"{move}orchestra run {first}")


def _make(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files, unless something is there already; raises `NoFolder` and `WouldOverwrite`."""
    in_the_way = next((each for each in (folder, *folder.parents) if each.is_file()), None)
    if in_the_way is not None:
        raise NoFolder(file=str(in_the_way))
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise WouldOverwrite(folder=str(folder), files=", ".join(taken))
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
