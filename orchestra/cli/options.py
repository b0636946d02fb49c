"""Options that many commands share, and reading what was given with them."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from orchestra.errors import BadSetting
from orchestra.ports.store import DEFAULT_STORE, STORE_VARIABLE

RunArgument: TypeAlias = Annotated[
    str, Parameter(help="A run's id, or any beginning of it that fits no other run.")
]
OnlyRun: TypeAlias = Annotated[str | None, Parameter(help="Only this run.")]
Reference: TypeAlias = Annotated[
    str, Parameter(help="RUN, RUN@12, RUN@-1, RUN@head, RUN@last-good, RUN@phase:NAME, a digest or a UUID.")
]
PathArgument: TypeAlias = Annotated[
    str, Parameter(help='A place in a state: status, decisions[-1].rationale, context["a name"].')
]
StoreUrl: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--store",
        metavar="URL",
        help=f"sqlite:FILE or files:FOLDER; else {STORE_VARIABLE}, else {DEFAULT_STORE}.",
    ),
]
AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", help="Print one JSON document.")]
AsJsonLines: TypeAlias = Annotated[bool, Parameter(name="--json", help="Print one JSON object per line.")]
Full: TypeAlias = Annotated[bool, Parameter(name="--full", help="Cut nothing.")]
Limit: TypeAlias = Annotated[int, Parameter(name="--limit", metavar="N", help="How many at most; 0 is all.")]
Quiet: TypeAlias = Annotated[bool, Parameter(name="--quiet", help="Print only what came of it.")]
Reason: TypeAlias = Annotated[str, Parameter(name="--reason", metavar="TEXT", help="Why, for the record.")]
Resume: TypeAlias = Annotated[
    bool, Parameter(name="--resume", help="Go on with the run here when nobody plays it.")
]
Task: TypeAlias = Annotated[str | None, Parameter(help="A run, or a workflow whose newest run is meant.")]
Wait: TypeAlias = Annotated[bool, Parameter(help="Stay and wait for answers instead of ending with 3.")]
Since: TypeAlias = Annotated[
    str | None, Parameter(metavar="TIME", help="Not before: 2026-11-15T14:30, or 90s, 15m, 2h, 3d ago.")
]
OfWorkflow: TypeAlias = Annotated[str | None, Parameter(metavar="NAME", help="Only runs of this workflow.")]
WorkflowFile: TypeAlias = Annotated[
    Path | None, Parameter(name="--workflow", metavar="FILE", help="Go on with this workflow file.")
]
RecordFile: TypeAlias = Annotated[
    Path | None,
    Parameter(name="--record", metavar="FILE", help="Write the answers of language models to this file."),
]
ReplayFile: TypeAlias = Annotated[
    Path | None,
    Parameter(name="--replay", metavar="FILE", help="Take them from this file; no model is asked."),
]
Yes: TypeAlias = Annotated[bool, Parameter(name="--yes", help="Do not ask.")]


def parse_limit(limit: int) -> int | None:
    """A limit as typed, as the number to keep to; None is all."""
    if limit < 0:
        raise BadSetting(setting="--limit", value=limit, reason="it counts entries; 0 is all")
    return limit or None


def words(given: list[str] | None) -> list[str]:
    """The values of an option that may be repeated, or given once with commas."""
    return [word.strip() for each in given or () for word in each.split(",") if word.strip()]


def read_statuses(given: list[str] | None, known: Collection[str]) -> tuple[str, ...]:
    """Statuses of runs; raises `BadSetting` for one that is not known."""
    found = tuple(words(given))
    for each in found:
        if each not in known:
            reason = f"a status is one of {', '.join(known)}"
            raise BadSetting(setting="--status", value=each, reason=reason)
    return found


def read_inputs(given: list[str] | None) -> dict[str, str]:
    """`NAME=VALUE`, each once; raises `BadSetting`."""
    return dict(read_pairs(given, "--input", "NAME=VALUE"))


def read_pairs(given: list[str] | None, option: str, form: str) -> Iterator[tuple[str, str]]:
    """The values of an option with what each is for, each once and in order; raises `BadSetting`."""
    seen: set[str] = set()
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise BadSetting(setting=option, value=each, reason=f"write {form}")
        if name in seen:
            raise BadSetting(setting=option, value=each, reason=f"{name!r} was given twice")
        seen.add(name)
        yield name, value


def check_answer_files(record: Path | None, replay: Path | None) -> None:
    """Raise `BadSetting` when answers of models are to be recorded and replayed at once."""
    if record is not None and replay is not None:
        reason = "answers cannot be recorded at the same time"
        raise BadSetting(setting="--replay", value=replay, reason=reason)


def read_values(given: list[str] | None) -> dict[str, Any]:
    """`PATH=VALUE` of `--set`, each once, the values as YAML; raises `BadSetting`."""
    return {path: _value(f"{path}={text}", text) for path, text in read_pairs(given, "--set", "PATH=VALUE")}


def _value(given: str, text: str) -> Any:
    from orchestra.config.read.yaml_tree import read_tree

    if not text.strip():
        return ""
    tree = read_tree(text)
    if tree.problems or not tree.whole:
        why = tree.problems[0].message if tree.problems else "it cannot be read as YAML"
        raise BadSetting(setting="--set", value=given, reason=why)
    return tree.data
