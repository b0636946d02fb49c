"""`orchestra outputs`: the files a run has made, and getting them back from the store."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, Reference, StoreUrl
from orchestra.cli.render.screen import Column, pick, print_json, print_table, screen
from orchestra.cli.render.summary import place_of
from orchestra.cli.render.text import count, size
from orchestra.cli.store import archive, option, outputs_folder
from orchestra.engine.outputs import OutputFolder, check_output_path
from orchestra.errors import OrchestraError
from orchestra.history.archive import Archive
from orchestra.history.references import resolve
from orchestra.ids import RunId, iso
from orchestra.model.records import Output
from orchestra.model.state import State

_COLUMNS: Final[tuple[Column[dict[str, Any]], ...]] = (
    Column("file", lambda each: str(each["file"])),
    Column("size", lambda each: size(each["size"]), align="right"),
    Column("type", lambda each: (each["media_type"], "dim"), least=8, drop=1),
    Column("who", lambda each: (each["who"] or "", "accent"), least=6, drop=2),
    Column("", lambda each: ("" if each["is_there"] else _GONE[each["stored"]], "warn")),
)
_GONE: Final[dict[bool, str]] = {True: "in the store only", False: "gone"}


def outputs(
    ref: Reference,
    /,
    *,
    extract: Annotated[
        Path | None, Parameter(metavar="DIR", help="Write the files into this folder, from the store.")
    ] = None,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """List the files a run has made, as of its newest snapshot or any other.

    Their content is in the store as well: --extract brings back what was deleted or changed since.
    """
    with archive(store) as opened:
        state = opened.snapshot(resolve(opened, ref)).state
        if extract is not None:
            return _extract(opened, state, extract, json)
        folder = outputs_folder()
        found = [_json(state, folder, path, output) for path, output in state.outputs.items()]
    out = screen()
    if json:
        print_json(found)
    elif not found:
        out.line(f"{state.run} has made no files.")
    else:
        print_table(out, _COLUMNS, found)
        if not all(each["is_there"] for each in found):
            out.hints((f"orchestra outputs {state.run} --extract DIR{option(store)}", "brings them back"))
    return OK


def _json(state: State, folder: str, path: str, output: Output) -> dict[str, Any]:
    file = place_of(state, folder, path)
    return {
        "path": path,
        "file": file,
        "is_there": Path(file).is_file(),
        "digest": output.digest.hex(),
        **pick(output, "size", "media_type"),
        "who": output.agent,
        "task": output.task,
        "at": iso(output.at),
        "stored": output.content is not None,
    }


def _extract(opened: Archive, state: State, folder: Path, as_json: bool) -> int:
    """Write every stored output below a folder; what cannot be had is told."""
    root, name = OutputFolder(folder.parent), RunId(folder.name)
    written: list[str] = []
    missing: dict[str, str] = {}
    for path, output in state.outputs.items():
        if output.content is None:
            missing[path] = "it was too large for the store; only its file had it"
            continue
        try:
            found = opened.value(output.content)
            assert isinstance(found, bytes | str), "BUG: the content of an output is bytes"
            content = found if isinstance(found, bytes) else found.encode()
            written.append(str(root.write(name, check_output_path(path), content)))
        except OrchestraError as error:
            missing[path] = str(error)
    if as_json:
        print_json({"run": state.run, "written": written, "missing": missing})
    else:
        out = screen()
        out.lines([[(each, "")] for each in written])
        for path, why in missing.items():
            out.line(("✖ ", "bad"), f"{path}: {why}")
        out.line((f"{count(len(written), 'file')} of {state.run} written.", "dim"))
    return DAMAGE if missing else OK
