"""Verify one run row by row: headers, links, patches and seals.

A snapshot needs its own header, the objects of the newest seal at or before it, and every patch since. A
*segment* is a seal with the snapshots that build on it; damage does not reach the next segment.
"""

from collections.abc import Iterable

import attrs

from orchestra.codec.document import BadPatch, Document, apply_patch
from orchestra.errors import DamageError
from orchestra.history.archive import Archive, Step
from orchestra.history.pages import Broken
from orchestra.history.verify.ledger import ObjectLedger, digests_used, reason_of
from orchestra.history.verify.replay import contradiction, difference, misstates_decision, workflow_name
from orchestra.history.verify.report import Case, Spans
from orchestra.ids import Digest, RunId
from orchestra.model.snapshot import Header
from orchestra.ports.store import Row


@attrs.define(kw_only=True)
class Opened:
    """A row as far as it could be opened, and what was wrong with it."""

    row: Row
    header: Header | None = None
    step: Step | None = None
    wrong: Case | None = None  # keeps this snapshot from being read
    torn: Case | None = None  # keeps the snapshots that build on this one from being read

    @property
    def is_sealed(self) -> bool:
        return self.header is not None and self.header.sealed_at == self.row.seq

    @property
    def is_jump(self) -> bool:
        operations = [] if self.step is None else self.step.operations
        return bool(operations) and operations[0][:1] == ["reset"]


@attrs.define(kw_only=True)
class Segment:
    """A seal and what is known of the snapshots that build on it."""

    seal: Digest
    sealed_at: int
    document: Document | None = None  # the state at the newest row
    objects: frozenset[Digest] = frozenset()  # damaged ones that keep the rest of the segment from being read
    suspect: bool = False  # whether anything it refers to is damaged


def needed_objects(opened: Iterable[Opened]) -> list[Digest]:
    """The objects that these rows refer to and that must be there."""
    needed: list[Digest] = []
    for each in opened:
        if each.row.patch is not None and each.header is not None:
            needed.append(each.header.seal)
        needed += [] if each.step is None else each.step.references
    return needed


class ChainVerifier:
    """Takes the rows of one run, oldest first, and collects what is wrong with them."""

    def __init__(self, archive: Archive, ledger: ObjectLedger, run: RunId) -> None:
        # A loader of its own: nothing that was read before the damage is trusted.
        self._archive = Archive(archive.store, archive.framer)
        self._ledger, self._run = ledger, run
        self._cases: dict[int, Case] = {}
        self._torn: dict[int, Case] = {}  # rows that the rest of their segment cannot be read without
        self._lost: dict[int, Case] = {}  # rows that the store cannot hand out, be they sealed or not
        self._segment: Segment | None = None
        self._unread: Case | None = None
        self._next = 0
        self.rows = self.pruned = 0
        self.first: Opened | None = None
        self.newest: Opened | None = None  # None after a row that the store could not hand out
        self.begun_as: str | None = None  # the workflow in the first snapshot, when that can be read
        self.unreadable = Spans()
        self.readable: list[int] = []  # the newest two

    # --- what the caller asks afterwards

    @property
    def cases(self) -> list[Case]:
        return list(self._cases.values())

    @property
    def document(self) -> Document | None:
        """The state at the newest row, when it can be read whole."""
        whole = self.newest is not None and self.readable[-1:] == [self.newest.row.seq]
        return self._segment.document if whole and self._segment is not None else None

    def add(self, what: str, reason: str, seq: int | None = None) -> Case:
        """Note something wrong with the run."""
        return self._note(Case(what=what, reason=reason, run=self._run, seq=seq))

    def spoil_head(self, case: Case) -> None:
        """Note that the newest snapshot cannot be used after all."""
        self._unusable(self.readable.pop(), [case])

    # --- rows

    def take(self, rows: Iterable[Row]) -> None:
        opened = [self._open(row) for row in rows]
        self._ledger.learn(needed_objects(opened))
        for each in opened:
            self._walk(each)

    def _open(self, row: Row) -> Opened:
        opened = Opened(row=row)
        try:
            opened.header = self._archive.header(row)
        except DamageError as error:
            opened.wrong = self._at(row, reason_of(error))
        if row.pruned != (row.patch is None):
            opened.wrong = self._at(row, "it is marked as pruned and has its patch, or the other way round")
        if row.patch is None:
            reason = f"its patch was pruned, though snapshots after {row.seq} build on it"
            # A case that is noted only if it turns out to matter.
            opened.torn = opened.wrong or self._case(row, reason)
            return opened
        try:
            opened.step = self._archive.step(row)
        except DamageError as error:
            same = opened.wrong is not None and opened.wrong.reason == reason_of(error)
            opened.torn = opened.wrong if same else self._at(row, reason_of(error), "the patch of ")
        self._check_references(opened)
        return opened

    def _check_references(self, opened: Opened) -> None:
        if opened.step is None:
            return
        listed = opened.step.references
        if opened.is_jump:
            fits = opened.step.operations == [["reset", opened.row.seal]] and listed == [opened.row.seal]
        else:
            uses = digests_used(opened.step.operations)
            self._ledger.named.update(uses.named)
            fits = not uses.trees and set(uses.values) == set(listed) and len(set(listed)) == len(listed)
        if not fits:
            self._at(opened.row, "its list of references is not what it refers to", "the patch of ")

    def skip(self, broken: Broken) -> None:
        """A row that cannot be had; neighbours with the same trouble are one finding."""
        seq, reason = broken.seq, reason_of(broken.error)
        if self._unread is None or self._unread.reason != reason:
            self._unread = self.add(f"snapshot {self._run}@{seq}", reason, seq)
        self.note_missing(seq)
        self.rows += 1
        self._unusable(seq, [self._unread])
        self._lost[seq] = self._unread
        self._next, self._segment, self.newest = seq + 1, None, None

    def _walk(self, opened: Opened) -> None:
        row = opened.row
        self.rows += 1
        self.pruned += row.pruned
        self.first = self.first or opened
        self.note_missing(row.seq)
        self._check_link(opened)
        before = self.newest
        if row.pruned and before is not None and before.row.pruned and not before.is_sealed:
            opened.torn = before.torn  # neighbours that somebody should not have pruned are one finding
        try:
            self._follow(opened)
        except DamageError as error:  # it was there a moment ago
            opened.torn = self._at(row, reason_of(error))
            self._segment = None
            self._unusable(row.seq, [opened.torn])
        if opened.torn is not None and not opened.is_sealed:
            self._torn[row.seq] = opened.torn
        self.newest, self._next, self._unread = opened, row.seq + 1, None

    def note_missing(self, seq: int) -> None:
        """Note rows that are not there, or not in their place, before the row `seq`."""
        if seq == self._next:
            return
        if seq < self._next:
            self.add(f"run {self._run}", f"two rows say that they are snapshot {seq}", seq)
            return
        span = f"{self._next}" + (f" to {seq - 1}" if seq - 1 > self._next else "")
        case = self.add(f"run {self._run}", f"snapshot {span} is not there", self._next)
        for lost in range(self._next, min(seq, self._next + 100_000)):
            self._unusable(lost, [case])
        self._torn[seq] = case
        self.newest = None

    def _check_link(self, opened: Opened) -> None:
        before, row = self.newest, opened.row
        if row.no <= (0 if before is None else before.row.no):
            self._at(row, "it was committed before its parent")
        if before is None:
            return
        parent = row.parent if opened.step is None else opened.step.parent
        if parent != before.row.digest:
            case = before.wrong or self._at(row, "it does not follow its parent")
            opened.torn = opened.torn or case

    def _follow(self, opened: Opened) -> None:
        """Go on to the state at a row, and note whether that row can be read."""
        header, row = opened.header, opened.row
        if header is None or opened.wrong is not None:
            self._advance_blindly(opened)
            self._unusable(row.seq, [opened.wrong] if opened.wrong else [])
        elif opened.is_sealed:
            self._torn, self._lost = {}, {}
            self._begin_segment(opened, header)
        else:
            self._continue_segment(opened, header)

    # --- sealed rows

    def _begin_segment(self, opened: Opened, header: Header) -> None:
        row, previous = opened.row, self._segment
        segment = self._segment = Segment(seal=header.seal, sealed_at=row.seq)
        if row.pruned:
            return
        segment.objects = self._ledger.bad(header.seal)
        segment.suspect = bool(segment.objects)
        if header.seal not in segment.objects:
            segment.document = self._archive.loader.root(header.seal)[1]
        if segment.objects:
            self._unreadable_by(segment.objects, row.seq)
            segment.objects = segment.objects if segment.document is None else frozenset()
            return
        if previous is not None and not opened.is_jump:
            segment.document = self._replay(opened, previous, segment.document)
        self._readable(opened, header, segment)

    def _replay(self, opened: Opened, previous: Segment, sealed: Document | None) -> Document | None:
        """Compare what the patches lead to with the seal; goes on with the former when they agree."""
        if previous.document is None or opened.step is None or opened.torn is not None:
            return sealed
        if previous.suspect and self._ledger.bad_in(previous.document):
            return sealed
        try:
            document = apply_patch(previous.document, opened.step.operations)
        except BadPatch as bad:
            self._misfit(opened, bad)
            return sealed
        place = difference(document, sealed)
        if place is None:
            return document
        self._at(opened.row, f"its patch leads to another state than its seal, at {place}")
        return sealed

    # --- rows between two seals

    def _continue_segment(self, opened: Opened, header: Header) -> None:
        if opened.row.pruned:
            self._drop_document()
            return
        cases = self._causes(opened, header)
        if not cases:
            assert opened.step is not None, "BUG: a row without a step has a cause"
            try:
                segment = self._advance(opened, opened.step, header)
            except BadPatch as bad:
                opened.torn = self._misfit(opened, bad)
                cases = [opened.torn]
            else:
                self._judge(opened, opened.step, header, segment)
                return
        self._drop_document()
        self._unusable(opened.row.seq, cases)

    def _judge(self, opened: Opened, step: Step, header: Header, segment: Segment) -> None:
        self._suspect(segment, step)
        bad = segment.objects
        if segment.document is not None and segment.suspect:
            bad = self._ledger.bad_in(segment.document)
        if bad:
            self._unreadable_by(bad, opened.row.seq)
        else:
            self._readable(opened, header, segment)

    def _causes(self, opened: Opened, header: Header) -> list[Case]:
        """The damaged rows between the seal and this row, itself included."""
        found = [case for seq, case in self._torn.items() if seq > header.sealed_at]
        found += [case for seq, case in self._lost.items() if seq >= header.sealed_at]
        found += [] if opened.torn is None else [opened.torn]
        return list({id(case): case for case in found}.values())

    def _advance(self, opened: Opened, step: Step, header: Header) -> Segment:
        """The segment of a row, with the state at that row."""
        segment = self._segment
        if segment is None or (segment.seal, segment.sealed_at) != (header.seal, header.sealed_at):
            return self._begin_midway(opened, header)
        if segment.document is None:
            return segment if segment.objects else self._begin_midway(opened, header)
        before = segment.document
        try:
            segment.document = apply_patch(before, step.operations)
        except DamageError:
            segment.document, segment.objects = None, self._ledger.bad_in(before)
            if not segment.objects:
                raise
        return segment

    def _begin_midway(self, opened: Opened, header: Header) -> Segment:
        """Begin in the middle of a segment, as a reader would."""
        segment = self._segment = Segment(seal=header.seal, sealed_at=header.sealed_at)
        bad = self._ledger.bad(header.seal)
        segment.suspect = True
        try:
            segment.document = self._archive.document_of(opened.row)
        except DamageError:
            if not bad:
                raise
            segment.objects = bad
        return segment

    def _advance_blindly(self, opened: Opened) -> None:
        """Go on over a row that cannot be read itself, though those after it may."""
        segment, step = self._segment, opened.step
        if opened.torn is not None or step is None or segment is None or segment.document is None:
            self._segment = None
            return
        if opened.row.sealed_at == opened.row.seq or self._torn or self._lost:
            self._segment = None  # what follows begins anew
            return
        self._suspect(segment, step)
        try:
            segment.document = apply_patch(segment.document, step.operations)
        except (BadPatch, DamageError):
            self._segment = None

    def _suspect(self, segment: Segment, step: Step) -> None:
        segment.suspect |= any(self._ledger.bad(digest) for digest in step.references)

    # --- small things

    def _readable(self, opened: Opened, header: Header, segment: Segment) -> None:
        document = segment.document
        if opened.row.seq == 0 and document is not None:
            self.begun_as = workflow_name(document)
        wrong = None if document is None else contradiction(header, document)
        if wrong is None and opened.step is not None and misstates_decision(header, opened.step.operations):
            wrong = "place of the last decision"
        if wrong is not None:
            self._at(opened.row, f"its header says another {wrong} than its state")
        self.readable = [*self.readable[-1:], opened.row.seq]

    def _unreadable_by(self, objects: frozenset[Digest], seq: int) -> None:
        self.unreadable.add(self._run, seq)
        self._ledger.blame(objects, self._run, seq)

    def _unusable(self, seq: int, cases: Iterable[Case]) -> None:
        self.unreadable.add(self._run, seq)
        for case in cases:
            self._note(case).spans.add(self._run, seq)

    def _drop_document(self) -> None:
        if self._segment is not None:
            self._segment.document = None

    def _misfit(self, opened: Opened, bad: BadPatch) -> Case:
        return self._at(opened.row, f"it does not fit the state before it ({bad})", "the patch of ")

    def _note(self, case: Case) -> Case:
        return self._cases.setdefault(id(case), case)

    def _at(self, row: Row, reason: str, part: str = "") -> Case:
        return self._note(self._case(row, reason, part))

    def _case(self, row: Row, reason: str, part: str = "") -> Case:
        """Something wrong with a snapshot, or with a `part` of it, that is not noted yet."""
        what = f"{part}snapshot {self._run}@{row.seq}"
        return Case(what=what, reason=reason, run=self._run, seq=row.seq)
