"""The end of a command that played runs: what each came to, and what went wrong."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orchestra.cli import exit_codes
from orchestra.cli.play.jobs import Job
from orchestra.cli.play.orchestras import OrchestraPool
from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.displays import Display, Quiet
from orchestra.cli.render.screen import screen
from orchestra.cli.render.summary import place_of, print_summary, summary_json
from orchestra.cli.render.text import safe_json
from orchestra.cli.store import option, with_store
from orchestra.engine.atlas import Ending
from orchestra.errors import DefinitionChanged, OrchestraError
from orchestra.history.story import DecisionCount
from orchestra.model.state import skipped_text

_SOURCE: Final = re.compile(r"agents\.([^.]+)\.source was \S+ and is \S+")
"""A changed file, of which the definition holds the digest; two of those say nothing to a person."""
_UNACCEPTABLE: Final = re.compile(
    r"phase \S+ is gone|context\.\S+ holds what \w+ made, which \w+ cannot go on with"
)
"""What the engine refuses in any case: see `orchestra.engine.start.check_changes`."""


def conclude(
    jobs: Sequence[Job],
    pool: OrchestraPool,
    display: Display,
    *,
    store: str | None,
    outputs: str,
    as_json: bool,
) -> None:
    """Say what each job came to."""
    for job in jobs:
        if isinstance(job.error, OrchestraError) and not job.counts:
            display.say(f"{job.name} was not resumed: {with_store(str(job.error), store)}")
        elif isinstance(job.error, OrchestraError):
            report(job.error, as_json, store)
        elif job.ending is not None:
            decided = pool.count_decisions(job.ending.state)
            tell(job.ending, decided, display, store=store, outputs=outputs, as_json=as_json)


def tell(
    ending: Ending,
    decided: DecisionCount,
    display: Display,
    *,
    store: str | None,
    outputs: str,
    as_json: bool,
) -> None:
    """Say what a run came to."""
    if as_json:
        document = summary_json(ending, decided, outputs, store)
        own_stdout().write(safe_json(json.dumps(document, ensure_ascii=False)) + "\n")
    elif type(display) is Quiet:
        own_stdout().write(f"{ending.kind} {ending.run}\n")
        if without := skipped_text(ending.state.skipped_tasks):
            screen(sys.stderr).line(f"{ending.run}: {without}")
        if ending.state.failure is not None:
            why = ending.state.failure
            screen(sys.stderr).line(f"{ending.run} failed: {why.error}: {why.message}")
        places = [place_of(ending.state, outputs, path) for path in ending.state.outputs]
        own_stdout().writelines(f"{each}\n" for each in places if Path(each).is_file())
    else:
        out = screen()
        out.line()
        print_summary(out, ending, decided, outputs=outputs, store=store)


def report(error: OrchestraError, as_json: bool, store: str | None = None) -> int:
    """Say what went wrong; how a definition has changed is told line by line."""
    if isinstance(error, DefinitionChanged) and not as_json:
        out = screen(sys.stderr)
        out.line(
            ("error: ", "bad"), f"The workflow of run {error.data['run']} has changed since it was started:"
        )
        changes = str(error.data["changes"]).split("; ")
        for change in changes:
            out.line("  ", ("~ ", "warn"), _SOURCE.sub(r"what the agent \1 runs on has changed", change))
        out.line(_advice(str(error.data["run"]), changes, store))
        return error.exit_code
    return exit_codes.report(error, as_json, store)


def _advice(run: str, changes: Sequence[str], store: str | None) -> str:
    """What to do about a changed workflow; some changes cannot be accepted by a run that is under way."""
    if any(_UNACCEPTABLE.fullmatch(change) for change in changes):
        return (
            "The run cannot go on with that, not even with --accept-changes: restore the old file, "
            f"or begin again with the new one: orchestra fork {run}@0 --workflow FILE{option(store)}."
        )
    return "Resume with --accept-changes to go on with the new one, or restore the old file."
