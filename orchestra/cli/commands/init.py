"""`orchestra init`: a new project, small, whole, and running without any key or network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from orchestra.app.workflow_files import workflow_schema
from orchestra.cli.options import AsJson
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.store import quote
from orchestra.config.schema import schema_text
from orchestra.errors import UsageError


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
    json: AsJson = False,
) -> None:
    """Make a new project: agents, a workflow that runs at once and offline, a README and a .gitignore."""
    files = {**_FILES, "configs/workflow.schema.json": schema_text(workflow_schema())}
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
    move = "" if folder.resolve() == Path().resolve() else f"cd {quote(str(folder))} && "
    out.line(("  next       ", "dim"), f"{move}orchestra run configs/hello.yaml")


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


_FILES: Final = {
    "agents/survey.py": '''\
"""Finds the files in a folder, by kind."""

from pathlib import Path


def agent(ctx):
    """A plain function works in a thread; `ctx` has the task, the inputs and the verbs."""
    folder = Path(ctx.inputs["folder"])
    kinds = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        if path.is_file() and not hidden and "outputs" not in parts:
            kinds.setdefault(path.suffix or "no ending", []).append(str(path))
    ctx.decide(
        f"Look at {len(kinds)} kind{'' if len(kinds) == 1 else 's'} of files",
        rationale="each kind gets a specialist of its own",
        alternatives=["look at all files at once"],
    )
    return {"kinds": sorted(kinds), "paths": kinds}
''',
    "agents/count.py": '''\
"""Counts the lines of one kind of file."""

from pathlib import Path


def agent(ctx):
    """`ctx.item` is the kind; the paths come from the context."""
    paths = ctx.context["files"]["paths"][ctx.item]
    lines = 0
    for number, path in enumerate(paths, start=1):
        lines += Path(path).read_bytes().count(b"\\n")
        ctx.save(progress=number / len(paths), step=Path(path).name)
    ctx.confidence(0.9)
    return {"kind": ctx.item, "files": len(paths), "lines": lines}
''',
    "agents/tell.py": '''\
"""Writes down what was found."""


async def agent(ctx):
    """An async function works in the loop; `write` makes an output that people find."""
    found = sorted(ctx.context["findings"], key=lambda each: -each["lines"])
    rows = [f"| {each['kind']} | {each['files']} | {each['lines']:,} |" for each in found]
    report = "\\n".join(["# What is there", "", "| kind | files | lines |", "|---|---:|---:|", *rows, ""])
    await ctx.write("report.md", report)
    return report
''',
    "agents/judge.py": '''\
"""Judges the report: an evaluator is an agent that scores what its rubric names."""


async def agent(ctx):
    """`ctx.results` holds what is judged, by specialist."""
    report = str(ctx.results["tell"])
    kinds = ctx.context["files"]["kinds"]
    told = sum(f"| {kind} |" in report for kind in kinds)
    share = told / len(kinds) if kinds else 1.0  # an empty folder is told in full
    await ctx.score("complete", share, rationale=f"{told} of {len(kinds)} kinds are told")
    await ctx.score("short", 1.0 if len(report) < 5000 else 0.5)
''',
    "configs/hello.yaml": """\
# yaml-language-server: $schema=workflow.schema.json
#
#   orchestra check configs/hello.yaml                      what it looks like
#   orchestra run configs/hello.yaml                        plays it
#   orchestra run configs/hello.yaml --input folder=agents  somewhere else
#   orchestra log RUN                                       what was decided, and why

name: hello
description: Looks through a folder and tells what is in it.

inputs:
  folder: {type: path, default: ".", help: the folder to look through}

context:
  files: {reducer: replace}
  findings: {reducer: append}

agents:
  survey: ../agents/survey.py
  count: ../agents/count.py
  tell: ../agents/tell.py
  judge: ../agents/judge.py

policy:
  confidence: {threshold: 0.6}
  retry: {attempts: 3, backoff: 1s}

phases:
  look:
    specialists:
      survey: {task: "List the files in {{ inputs.folder }}", into: files}
      count:                       # one for each kind of file, side by side
        needs: [survey]
        foreach: context.files.kinds
        task: Count the lines of {{ item }} files
        into: findings

  write:
    specialists:
      tell: {task: Write the report, outputs: [report.md]}
    evaluate:
      agent: judge
      threshold: 0.8
      rubric: {complete: 2, short: 1}
      revise: {rounds: 1}          # its feedback goes back to the specialist
""",
    "README.md": """\
# A project for orchestra

```sh
orchestra run configs/hello.yaml
```

- `agents/` one file per agent: a function `agent(ctx)`, plain or async.
- `configs/` workflows in YAML; editors complete them with `workflow.schema.json`.
- `outputs/` what runs make, and the store with every snapshot of them. Not committed.

Change an agent or the workflow, then `orchestra check configs/hello.yaml`. Stop a run with Ctrl-C and go on
with `orchestra resume RUN`. See what happened with `orchestra log RUN`, and try something else from any
moment with `orchestra fork RUN@0 --set inputs.folder=agents --run`.
""",
    ".gitignore": "outputs/\n__pycache__/\n",
}
"""Every file of a new project but the schema, by its path."""
