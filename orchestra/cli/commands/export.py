"""`orchestra export`: a run as a file, as readable JSON or as a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from orchestra.atomic import write_file
from orchestra.cli.options import AsJson, RunArgument, StoreUrl
from orchestra.cli.render.screen import pick, print_json, screen
from orchestra.cli.render.text import count, size
from orchestra.cli.store import archive
from orchestra.errors import BadName, BadSetting
from orchestra.history.archive import Archive
from orchestra.history.references import resolve_run
from orchestra.ids import RunId
from orchestra.interchange.export_store import SUFFIX
from orchestra.interchange.json_form import export_json
from orchestra.interchange.transfer import export_run


def export(
    run: RunArgument,
    file: Annotated[str | None, Parameter(help=f"Where to write it. [default: RUN{SUFFIX}]")] = None,
    /,
    *,
    json_form: Annotated[
        str | None, Parameter(metavar="DIR", help="Write readable JSON files of its snapshots instead.")
    ] = None,
    html: Annotated[
        str | None, Parameter(metavar="FILE", help="Write one page that shows the run, without a server.")
    ] = None,
    all_: Annotated[
        bool, Parameter(name="--all", help="With --json-form: also snapshots that are not marked.")
    ] = False,
    force: Annotated[bool, Parameter(help="Replace a file that is there.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Write a run with its whole history to one file, its snapshots as readable JSON files, or as one page.

    The same run always makes the same file. `orchestra import` reads it, on any machine. The page of --html
    is the snapshot browser with the run inside: it opens from a disk, loads nothing, and can only be read.
    """
    _one_form(file, json_form, html, all_)
    with archive(store) as opened:
        name = resolve_run(opened, run)
        if html is not None:
            made = _export_page(opened, name, Path(html), force)
        elif json_form is None:
            made = _export_file(opened, name, Path(file or f"{name}{SUFFIX}"), force)
        else:
            made = _export_json(opened, name, Path(json_form), marked=not all_)
    if json:
        print_json({"run": name, **made.document})
        return
    out = screen()
    out.line((made.place, "bold"), f"  {made.said}")
    out.hints(*made.hints)


class _Made(NamedTuple):
    """What was written: where, what is in it, and what to do with it."""

    place: str
    said: str
    document: dict[str, Any]
    hints: Sequence[tuple[str, str]] = ()


def _one_form(file: str | None, json_form: str | None, html: str | None, everything: bool) -> None:
    if json_form is not None and file is not None:
        raise BadSetting(setting="--json-form", value=json_form, reason="a file was given as well")
    if html is not None and (file is not None or json_form is not None):
        raise BadSetting(setting="--html", value=html, reason="another form was asked for as well")
    if everything and json_form is None:
        raise BadSetting(setting="--all", value=True, reason="a file always holds everything")


def _export_page(opened: Archive, run: RunId, path: Path, force: bool) -> _Made:
    from orchestra.web.bundle.file import make_bundle

    if not force and path.exists():
        raise BadName(what="new file", name=str(path), rule="a path where nothing is yet, or --force")
    made = make_bundle(opened, run)
    write_file(path, made.content, force=force)
    held = f"{count(made.snapshots, 'snapshot')}, {size(len(made.content))}"
    document = {"file": str(path), "snapshots": made.snapshots, "size": len(made.content)}
    return _Made(str(path), f"{held}; open it in a browser, it needs no server", document)


def _export_file(opened: Archive, run: RunId, path: Path, force: bool) -> _Made:
    made = export_run(opened, run, path, force=force)
    held = f"{count(made.rows, 'snapshot')}, {count(made.objects, 'object')}, {size(made.size)}"
    document = {"file": str(made.path), "snapshots": made.rows, **pick(made, "objects", "size")}
    hint = (f"orchestra import {made.path}", "into another store")
    return _Made(str(made.path), held, document | {"digest": made.digest.hex()}, [hint])


def _export_json(opened: Archive, run: RunId, folder: Path, *, marked: bool) -> _Made:
    written = export_json(opened, run, folder, only_marked=marked)
    held = f"{count(len(written), 'file')}, the newest also as {written[-1].name}"
    document = {"folder": str(folder), "files": [path.name for path in written]}
    return _Made(
        str(folder), held, document, [(f"orchestra verify --file {written[-1]}", "checks one of them")]
    )
