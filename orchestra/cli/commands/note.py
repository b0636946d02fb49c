"""`orchestra note`: write a note on a snapshot, or read it."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Reference, StoreUrl
from orchestra.cli.render.screen import print_json, screen
from orchestra.cli.render.triggers import print_outcome
from orchestra.cli.store import archive, archive_over, open_for_writing
from orchestra.errors import BadSetting
from orchestra.history import annotations
from orchestra.history.describe import Describer, described_json
from orchestra.history.references import resolve
from orchestra.ids import wall_clock


def note(
    ref: Reference,
    text: Annotated[str | None, Parameter(help="What to say.")] = None,
    /,
    *,
    remove: Annotated[bool, Parameter(help="Take the note back.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Write a note on a snapshot, in place of an earlier one; without a text, read it."""
    if remove and text is not None:
        raise BadSetting(setting="--remove", value=True, reason="a text was given as well")
    if text is None and not remove:
        _read(ref, store, json)
        return
    with open_for_writing(store) as opened:
        reader = archive_over(opened)
        row = resolve(reader, ref)
        if text is None:
            annotations.remove_note(opened, row.run, row.seq)
        else:
            annotations.note(opened, reader.framer, row.run, row.seq, wall_clock(), text)
        print_outcome(reader, row, "has no note any more" if text is None else "has a note", json)


def _read(ref: str, store: str | None, as_json: bool) -> None:
    with archive(store) as opened:
        row = resolve(opened, ref)
        found = Describer(opened).describe(row)
        if as_json:
            print_json(described_json(found))
        elif found.note is None:
            screen().line(f"{found.reference} has no note.")
        else:
            screen().lines([[(line, "")] for line in found.note.text.splitlines()])
