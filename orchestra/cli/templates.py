"""The projects that `orchestra init` makes: every file but the schema, by its path."""

from collections.abc import Mapping
from typing import Final

_PYTHON: Final = {
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
_LLM: Final = {
    "agents/librarian.md": """\
---
name: librarian
description: Answers a question from the notes.
model: test
tools: ../tools/notes.py
---
You answer the question you are given, in at most three sentences.

Look it up in the notes first. Name the note of each fact. What the notes do not say is not a fact.
""",
    "tools/notes.py": '''\
"""Tools: the public functions of a module. A model is told their names, docstrings and types."""

from pathlib import Path

NOTES = Path(__file__).parent.parent / "notes"


def find_notes(word: str) -> dict[str, str]:
    """Find the notes that have a word in them, by name."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(NOTES.glob("*.md"))}
    return {name: text for name, text in texts.items() if word.lower() in text.lower()}
''',
    "notes/sea.md": "The sea is salt because rivers carry minerals into it, and only water leaves it.\n",
    "notes/whales.md": "Whales are mammals. The blue whale is the largest animal that has ever lived.\n",
    "tests/test_answer.py": '''\
"""The workflow and its tool, offline. The model `test` makes its answers up: look at what was done."""

from pathlib import Path

import anyio

from orchestra import Orchestra
from tools.notes import find_notes

WORKFLOW = Path(__file__).parent.parent / "configs" / "answer.yaml"


def test_notes_are_found():
    assert list(find_notes("Salt")) == ["sea"]
    assert find_notes("mountain") == {}


def test_a_question_is_answered(tmp_path):
    async def play():
        async with Orchestra("memory:", project=tmp_path) as orchestra:
            return await orchestra.run(WORKFLOW, models=["test"], question="Why is the sea salt?")

    ending = anyio.run(play)
    assert ending.kind == "completed", ending.failure
    assert "Why is the sea salt?" in ending.result("librarian")
    assert [(call.tool, call.status) for call in ending.state.tool_calls.values()] == [("find_notes", "done")]
''',
    "pytest.ini": "[pytest]\npythonpath = .\n",
    "configs/answer.yaml": """\
# yaml-language-server: $schema=workflow.schema.json
#
#   orchestra run configs/answer.yaml                                   a made-up answer, for nothing
#   orchestra run configs/answer.yaml --model openai:gpt-5 --dry-run    what a real one costs at most
#   orchestra run configs/answer.yaml --model openai:gpt-5              a real one
#   orchestra chat RUN                                                  what was said

name: answer
description: Answers a question from notes.

inputs:
  question: {type: text, default: Why is the sea salt?, help: what to find out}

context:
  answer: {reducer: replace}

agents:
  librarian:
    path: ../agents/librarian.md
    max_tokens: 1000
    limits: {requests: 10, tokens: 50000}    # of one assignment; passing one stops it

phases:
  answer:
    specialists:
      librarian: {task: "{{ inputs.question }}", into: answer}
""",
    "README.md": """\
# A project for orchestra, with a language model

It needs the extra `llm`: `pip install -e '.[llm]'` in a checkout of orchestra.

```sh
orchestra run configs/answer.yaml                        # a made-up answer, without key or network
orchestra run configs/answer.yaml --model openai:gpt-5   # a real one: needs the extra `openai` and its key
pytest                                                   # the tests, offline
```

- `agents/` one file per agent: what a model is given, and what it is told.
- `tools/` what it may call. A tool of which a person must allow each call: `risky: NAME` in the agent's file.
- `notes/` what the tool finds.
- `configs/` workflows in YAML; editors complete them with `workflow.schema.json`.
- `tests/` play the workflow with the model `test`. `orchestra run … --record said.jsonl` keeps what a model
  says, and `--replay said.jsonl` plays it again for nothing.
- `outputs/` what runs make, and the store with every snapshot of them. Not committed.
""",
    ".gitignore": "outputs/\n__pycache__/\n.pytest_cache/\n",
}

DEFAULT: Final = "python"
LLM: Final = "llm"
TEMPLATES: Final[Mapping[str, Mapping[str, str]]] = {DEFAULT: _PYTHON, LLM: _LLM}
"""The files of a new project, by the name of its template."""
