"""Pins and notes on snapshots, stored beside the history.

A pin keeps a snapshot from retention; a note is a text about it. The stored body is the digest of the
annotation followed by its frame, and repeats the snapshot it is about, so damage is noticed on reading.
"""

from typing import Final

import attrs

from orchestra.codec import cbor
from orchestra.codec.frame import Framer
from orchestra.errors import BadName, Damaged
from orchestra.history.archive import Archive
from orchestra.ids import DIGEST_BYTES, Digest, Instant, RunId
from orchestra.limits import NOTE_CHARS
from orchestra.ports.store import Annotation, AnnotationKind, RowQuery, Store

_decode = cbor.make_decoder({})
_SHOWN_CHARS: Final = 40


@attrs.frozen(kw_only=True)
class Remark:
    """A pin or a note, opened and proved."""

    run: RunId
    seq: int
    kind: AnnotationKind
    at: Instant  # when somebody made it
    text: str  # what they said; a pin may say nothing


def pin(store: Store, framer: Framer, run: RunId, seq: int, at: Instant, text: str = "") -> Remark:
    """Keep a snapshot from being pruned; raises `UnknownSnapshot`, or `PrunedSnapshot` if it was already."""
    remark = Remark(run=run, seq=seq, kind="pin", at=at, text=text)
    store.annotate(write_annotation(remark, framer))
    # Looked at afterwards: of a pin and a pruning at the same moment, the pruning may have come first.
    rows = store.rows(RowQuery(run=run, first=seq, last=seq, content=False))
    if any(row.pruned for row in rows):
        unpin(store, run, seq)
        raise Archive(store, framer).pruned_error(run, seq)
    return remark


def unpin(store: Store, run: RunId, seq: int) -> None:
    """Leave a snapshot to retention again. Idempotent; raises `UnknownSnapshot`."""
    store.annotate(Annotation(run=run, seq=seq, kind="pin", body=b""))


def note(store: Store, framer: Framer, run: RunId, seq: int, at: Instant, text: str) -> Remark:
    """Say something about a snapshot, in place of an earlier note; raises `UnknownSnapshot` or `BadName`."""
    if not text:
        raise BadName(what="note", name=text, rule=f"1 to {NOTE_CHARS} characters, or remove the note")
    remark = Remark(run=run, seq=seq, kind="note", at=at, text=text)
    store.annotate(write_annotation(remark, framer))
    return remark


def remove_note(store: Store, run: RunId, seq: int) -> None:
    """Take a note back. Idempotent; raises `UnknownSnapshot`."""
    store.annotate(Annotation(run=run, seq=seq, kind="note", body=b""))


def annotations_of(store: Store, framer: Framer, run: RunId) -> list[Remark]:
    """All pins and notes of a run by sequence number, proved; raises `Damaged`."""
    return [open_annotation(annotation, framer) for annotation in store.annotations(run)]


def pins_of(store: Store, framer: Framer, run: RunId) -> frozenset[int]:
    """The snapshots of a run that are pinned; raises `Damaged`."""
    return frozenset(remark.seq for remark in annotations_of(store, framer, run) if remark.kind == "pin")


def write_annotation(remark: Remark, framer: Framer) -> Annotation:
    """A remark as a store keeps it; raises `BadName` for a text that cannot be kept."""
    text = remark.text
    shown = text[:_SHOWN_CHARS] + ("…" if len(text) > _SHOWN_CHARS else "")
    if len(text) > NOTE_CHARS:
        raise BadName(what=remark.kind, name=shown, rule=f"at most {NOTE_CHARS} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadName(what=remark.kind, name=ascii(shown), rule="text without lone surrogates") from None
    canonical = cbor.encode({name: getattr(remark, name) for name in ("at", "run", "seq", "kind", "text")})
    body = framer.address("annotation", canonical) + framer.write("annotation", canonical, compress=False)
    return Annotation(run=remark.run, seq=remark.seq, kind=remark.kind, body=body)


def open_annotation(annotation: Annotation, framer: Framer) -> Remark:
    """A stored annotation, proved against its own digest and its place; raises `Damaged`."""
    what = f"the {annotation.kind} on {annotation.run}@{annotation.seq}"
    digest, frame = Digest(annotation.body[:DIGEST_BYTES]), annotation.body[DIGEST_BYTES:]
    framed = framer.open(digest, frame, what=what, kinds=("annotation",))
    plain = _decode(framed.canonical, what)
    match plain:
        case {"at": int(at), "run": str(run), "seq": int(seq), "kind": str(kind), "text": str(text)} if (
            len(plain) == 5
        ):
            if (run, seq, kind) != (annotation.run, annotation.seq, annotation.kind):
                raise Damaged(what=what, reason=f"it belongs on {run}@{seq}")
            return Remark(run=annotation.run, seq=seq, kind=annotation.kind, at=Instant(at), text=text)
        case _:
            raise Damaged(what=what, reason="it is not an annotation")
