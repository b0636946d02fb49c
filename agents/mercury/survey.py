"""Survey: lists the files to look at, and what is left out, so that all specialists look at the same."""

from typing import Any

from _specialist import root_of
from _walk import survey

from orchestra import Result


def agent(ctx: Any) -> Result:
    """The Python files of the project and what was skipped."""
    root = root_of(ctx)
    if not root.exists():
        raise FileNotFoundError(f"there is no folder {ctx.inputs.get('path')!r}: give --input path=FOLDER")
    found = survey(root, int(ctx.settings.get("max_files", 2_000)))
    ctx.emit(f"{len(found['files'])} Python files, {len(found['skipped'])} left out\n")
    return Result(output={**found, "count": len(found["files"])}, confidence=1.0)
