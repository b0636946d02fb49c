"""`orchestra outputs`: the files a run has made, and getting them back from the store."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, Reference, StoreUrl
from orchestra.cli.play.outputs_folder import outputs_folder
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.summary import place_of
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count, size
from orchestra.cli.store import archive, option
from orchestra.engine.outputs import OutputFolder, check_output_path
from orchestra.errors import OrchestraError
from orchestra.history.archive import Archive
from orchestra.history.references import resolve
from orchestra.ids import RunId, iso
from orchestra.model.records import Output
from orchestra.model.state import State

_COLUMNS: Final = (
    Column("file"),
    Column("size", align="right"),
    Column("type", least=8, drop=1),
    Column("who", least=6, drop=2),
    Column(""),
)


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
        if json:
            print_json(found)
        else:
            _print(screen(), state, found, store)
    return OK


def _json(state: State, folder: str, path: str, output: Output) -> dict[str, Any]:
    file = place_of(state, folder, path)
    return {
        "path": path,
        "file": file,
        "is_there": Path(file).is_file(),
        "digest": output.digest.hex(),
        "size": output.size,
        "media_type": output.media_type,
        "who": output.agent,
        "task": output.task,
        "at": iso(output.at),
        "stored": output.content is not None,
    }


def _print(out: Screen, state: State, found: list[dict[str, Any]], store: str | None) -> None:
    if not found:
        out.line(f"{state.run} has made no files.")
        return
    print_table(out, _COLUMNS, [_cells(each) for each in found])
    if not all(each["is_there"] for each in found):
        out.hints((f"orchestra outputs {state.run} --extract DIR{option(store)}", "brings them back"))


def _cells(each: dict[str, Any]) -> list[Line]:
    missing = "" if each["is_there"] else "in the store only" if each["stored"] else "gone"
    return [
        [(each["file"], "")],
        [(size(each["size"]), "")],
        [(each["media_type"], "dim")],
        [(each["who"] or "", "accent")],
        [(missing, "warn")],
    ]


def _extract(opened: Archive, state: State, folder: Path, as_json: bool) -> int:
    """Write every stored output below a folder; what cannot be had is told."""
    root = OutputFolder(folder.parent)
    written: list[str] = []
    missing: dict[str, str] = {}
    for path, output in state.outputs.items():
        try:
            written.append(
                str(root.write(RunId(folder.name), check_output_path(path), _content(opened, output)))
            )
        except OrchestraError as error:
            missing[path] = str(error)
        except LookupError as error:
            missing[path] = str(error.args[0])
    if as_json:
        print_json({"run": state.run, "written": written, "missing": missing})
    else:
        out = screen()
        out.lines([[(each, "")] for each in written])
        for path, why in missing.items():
            out.line(("✖ ", "bad"), f"{path}: {why}")
        out.line((f"{count(len(written), 'file')} of {state.run} written.", "dim"))
    return DAMAGE if missing else OK


def _content(opened: Archive, output: Output) -> bytes:
    if output.content is None:
        raise LookupError("it was too large for the store; only its file had it")
    found = opened.value(output.content)
    assert isinstance(found, bytes | str), "BUG: the content of an output is bytes"
    return found if isinstance(found, bytes) else found.encode()
