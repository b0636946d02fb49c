"""The JSON form of a snapshot: one readable file with the whole state (`docs/reference/json-form.md`)."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from orchestra.atomic import write_file
from orchestra.codec.address import Addresser
from orchestra.codec.json_values import canonical_json, pretty_json, to_json
from orchestra.history.archive import Archive
from orchestra.ids import RunId, moment
from orchestra.interchange.json_state import SnapshotWriter
from orchestra.limits import PAGE_ROWS
from orchestra.model.snapshot import Header, Snapshot
from orchestra.ports.store import RowQuery

VERSION: Final = "1.0"
ALGORITHM: Final = "blake3"
LATEST: Final = "latest.json"

Form = dict[str, Any]


def snapshot_json(snapshot: Snapshot, archive: Archive, *, large: bool = False) -> Form:
    """The JSON form of a snapshot, with its digest.

    Large values are left in the store and named by digest, unless `large` asks for them; raises
    `MissingObject` or `Damaged` when one cannot be read.
    """
    plain = SnapshotWriter(archive.loader, large=large).plain(snapshot)
    form: Form = {"version": VERSION, **to_json(plain)}
    form["integrity"] = {"algorithm": ALGORITHM, "digest": digest_of(form)}
    return form


def digest_of(form: Form) -> str:
    """The digest over everything in a form except `integrity` itself."""
    rest = {name: part for name, part in form.items() if name != "integrity"}
    return Addresser().address("export", 1, canonical_json(rest)).hex()


def file_name(header: Header) -> str:
    """What the file of a snapshot is called, e.g. `checkpoint_phase2_20261115T143022Z_41.json`."""
    return f"checkpoint_phase{header.ordinal}_{moment(header.at):%Y%m%dT%H%M%SZ}_{header.seq}.json"


def export_json(
    archive: Archive,
    run: RunId,
    folder: str | Path,
    *,
    seqs: Collection[int] | None = None,
    only_marked: bool = True,
    large: bool = False,
) -> list[Path]:
    """Write the JSON files of a run's snapshots, and the newest as `latest.json`; returns their paths.

    Without `seqs` these are the marked snapshots, or all, that are not pruned. A file that is there is
    replaced. Raises `UnknownRun`, `UnknownSnapshot`, `PrunedSnapshot` for one of `seqs`, `Damaged`, and what
    writing a file raises.
    """
    place, head = Path(folder), archive.run(run).head
    chosen = _chosen(archive, run, head, only_marked) if seqs is None else sorted(set(seqs))
    snapshots = (archive.snapshot(archive.row(run, seq)) for seq in chosen)
    written = [write_snapshot(each, archive, place, large=large) for each in snapshots]
    newest = archive.snapshot(archive.row(run, head))
    write_file(place / LATEST, pretty_json(snapshot_json(newest, archive, large=large)))
    return [*written, place / LATEST]


def write_snapshot(
    snapshot: Snapshot, archive: Archive, folder: Path, *, large: bool = False, latest: bool = False
) -> Path:
    """Write the file of one snapshot, and the same as `latest.json` when asked; returns its path."""
    data = pretty_json(snapshot_json(snapshot, archive, large=large))
    path = folder / file_name(snapshot.header)
    write_file(path, data)
    if latest:
        write_file(folder / LATEST, data)
    return path


def _chosen(archive: Archive, run: RunId, head: int, only_marked: bool) -> Iterator[int]:
    for first in range(0, head + 1, PAGE_ROWS):
        query = RowQuery(run=run, first=first, last=min(head, first + PAGE_ROWS - 1), content=False)
        for row in archive.store.rows(query):
            if not row.pruned and (row.marked or not only_marked):
                yield row.seq
