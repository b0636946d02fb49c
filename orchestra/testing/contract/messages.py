"""Commands to the owner of a run, and annotations on its snapshots."""

import attrs
import pytest

from orchestra.errors import CommandGone, UnknownRun, UnknownSnapshot
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Annotation, Command, Store
from orchestra.testing import samples
from orchestra.testing.contract.base import OpenStore, StoreSuite, command_ids, look, open_durable, refuse
from orchestra.testing.samples import NOON, SampleRun, numbers, sample_digest, start_run

BODIES = (b"", b"\0", b"pause\r\n", bytes(range(256)), b"x" * 100_000)


class CommandContract(StoreSuite):
    """A command waits until a commit consumes it."""

    def test_commands_wait_in_order(self, store: Store, begun: SampleRun) -> None:
        sent = [begun.send(body, NOON + n) for n, body in enumerate(BODIES)]
        assert sent == sorted(set(sent))
        assert store.commands(begun.run) == [
            Command(id=id, run=begun.run, at=Instant(NOON + n), body=body)
            for n, (id, body) in enumerate(zip(sent, BODIES, strict=True))
        ]

    def test_order_is_that_of_sending_not_of_the_clock(self, store: Store, begun: SampleRun) -> None:
        sent = [begun.send(at=NOON - n) for n in range(3)]
        assert command_ids(store, begun.run) == sent

    @pytest.mark.parametrize("run", ["absent", "claimed-only"])
    def test_an_unknown_run_gets_no_commands(self, store: Store, run: str) -> None:
        SampleRun(store, "claimed-only")
        with pytest.raises(UnknownRun):
            store.send(RunId(run), b"pause", NOON)

    def test_a_commit_consumes(self, store: Store, begun: SampleRun) -> None:
        sent = [begun.send() for _ in range(3)]
        begun.append(parts={"consumed": (sent[0], sent[2])})
        assert command_ids(store, begun.run) == [sent[1]]
        begun.append(parts={"consumed": (sent[1],)})
        assert store.commands(begun.run) == []
        assert begun.send() not in sent

    def test_what_is_withdrawn_is_found_by_nobody(self, store: Store, begun: SampleRun) -> None:
        other = start_run(store, "b")
        sent = [begun.send() for _ in range(3)]
        assert not store.withdraw(other.run, sent[1])
        assert not store.withdraw(RunId("absent"), sent[1])
        assert store.withdraw(begun.run, sent[1])
        assert command_ids(store, begun.run) == [sent[0], sent[2]]
        assert not store.withdraw(begun.run, sent[1])
        assert store.withdraw(begun.run, sent[2])
        assert begun.send() not in sent

    def test_what_was_consumed_is_not_withdrawn(self, store: Store, begun: SampleRun) -> None:
        sent = [begun.send() for _ in range(2)]
        begun.append(parts={"consumed": (sent[0],)})
        assert not store.withdraw(begun.run, sent[0])
        assert store.withdraw(begun.run, sent[1])

    @pytest.mark.parametrize("fate", ["withdrawn", "consumed", "never sent", "of another run"])
    def test_what_is_not_there_cannot_be_consumed(self, store: Store, begun: SampleRun, fate: str) -> None:
        """The commit is refused whole: a command is withdrawn or answered, never both."""
        other = start_run(store, "b")
        waits, gone = begun.send(), begun.send()
        if fate == "withdrawn":
            assert store.withdraw(begun.run, gone)
        elif fate == "consumed":
            begun.append(parts={"consumed": (gone,)})
        else:
            gone += 1
        while fate == "of another run" and other.send() < gone:
            pass
        before = look(store)
        parts = {"consumed": (waits, gone), "objects": (samples.sample_object("late"),)}
        refused, accepted = store.commit([begun.commit(parts=parts), other.commit()])
        assert isinstance(refused, CommandGone)
        assert (refused.data["run"], refused.data["command"]) == ("a", gone)
        numbers([accepted])
        after = look(store)
        assert (after.objects, after.commands) == (before.objects, before.commands)
        assert [row for row in after.rows if row.run == "a"] == [row for row in before.rows if row.run == "a"]
        begun.append(parts={"consumed": (waits,)})

    def test_the_first_row_of_a_run_has_nothing_to_consume(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        refuse(store, begun.commit(parts={"consumed": (1,)}), CommandGone)
        begun.append()

    def test_two_rows_of_one_step_do_not_consume_the_same(self, store: Store, begun: SampleRun) -> None:
        sent = begun.send()
        first = begun.commit(parts={"consumed": (sent,)})
        second = samples.sample_commit(samples.sample_row("a", 2, first.row), first.row, consumed=(sent,))
        accepted, refused = store.commit([first, second])
        assert isinstance(refused, CommandGone)
        begun.accept(first, accepted)
        begun.append()

    def test_a_commit_that_is_repeated_has_consumed_already(self, store: Store, begun: SampleRun) -> None:
        commit = begun.commit(parts={"consumed": (begun.send(),)})
        assert numbers(store.commit([commit])) == numbers(store.commit([commit]))

    def test_a_refused_commit_consumes_nothing(self, store: Store, begun: SampleRun) -> None:
        sent = begun.send()
        commit = begun.commit(parts={"consumed": (sent,)})
        store.commit([attrs.evolve(commit, expected=sample_digest("other"))])
        store.commit([attrs.evolve(commit, requires=(sample_digest("absent"),))])
        assert command_ids(store, begun.run) == [sent]
        numbers(store.commit([commit]))
        assert store.commands(begun.run) == []

    def test_a_run_consumes_only_its_own(self, store: Store, begun: SampleRun) -> None:
        other = start_run(store, "b")
        refuse(store, other.commit(parts={"consumed": (begun.send(),)}), CommandGone)

    def test_commands_outlive_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            begun = start_run(store)
            sent = [begun.send(body) for body in BODIES]
            begun.append(parts={"consumed": tuple(sent[-2:])})
            assert store.withdraw(begun.run, sent[1])
            before = store.commands(begun.run)
        with open_store() as store:
            assert store.commands(begun.run) == before
            assert store.send(begun.run, b"next", NOON) not in sent


class AnnotationContract(StoreSuite):
    """Pins and notes: one of each kind per snapshot."""

    @pytest.mark.parametrize("body", [body for body in BODIES if body])
    def test_set_and_read(self, store: Store, begun: SampleRun, body: bytes) -> None:
        note = begun.annotate(0, "note", body)
        assert store.annotations(begun.run) == [note]

    def test_by_sequence_number(self, store: Store, begun: SampleRun) -> None:
        begun.extend(2)
        other = start_run(store, "b")
        given = [begun.annotate(2, "pin"), begun.annotate(0, "note"), begun.annotate(2, "note")]
        store.annotate(attrs.evolve(given[1], run=other.run))
        found = store.annotations(begun.run)
        assert [annotation.seq for annotation in found] == [0, 2, 2]
        assert set(found) == set(given)
        assert len(store.annotations(other.run)) == 1

    def test_replace_and_remove(self, store: Store, begun: SampleRun) -> None:
        pin = begun.annotate(0, "pin")
        begun.annotate(0, "note", b"first")
        note = begun.annotate(0, "note", b"second")
        assert set(store.annotations(begun.run)) == {pin, note}
        for _ in range(2):
            begun.annotate(0, "note", b"")
        assert store.annotations(begun.run) == [pin]

    @pytest.mark.parametrize(("run", "seq"), [("absent", 0), ("a", 1), ("a", -1)])
    @pytest.mark.parametrize("body", [b"n", b""])
    def test_only_snapshots_are_annotated(
        self, store: Store, begun: SampleRun, run: str, seq: int, body: bytes
    ) -> None:
        with pytest.raises(UnknownSnapshot):
            store.annotate(Annotation(run=RunId(run), seq=seq, kind="note", body=body))

    def test_rows_are_not_touched(self, store: Store, begun: SampleRun) -> None:
        begun.append()
        before = look(store)
        begun.annotate(1, "pin")
        assert attrs.evolve(look(store), annotations=before.annotations) == before

    def test_annotations_outlive_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            begun = start_run(store, rows=2)
            begun.annotate(0, "note", b"old")
            note = begun.annotate(0, "note", b"new")
            begun.annotate(1, "pin")
            begun.annotate(1, "pin", b"")
        with open_store() as store:
            assert store.annotations(begun.run) == [note]
