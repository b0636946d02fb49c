"""Commands to the owner of a run, and annotations of its snapshots."""

import apsw

from orchestra.errors import UnknownRun, UnknownSnapshot
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Annotation, Command
from orchestra.stores.sqlite.append import COMMANDS, counter, run_columns
from orchestra.stores.sqlite.columns import annotation_crc, annotation_of, command_crc, command_of, fact_crc
from orchestra.stores.sqlite.statements import SQL, ask


def send(connection: apsw.Connection, run: RunId, body: bytes, at: Instant, place: str) -> int:
    """Leave a command; its id is never given out again."""
    columns = run_columns(connection, run)
    if columns is None:
        raise UnknownRun(run=run, store=place, hint="")
    id = counter(connection, COMMANDS) + 1
    connection.execute(SQL["set_counter"], (COMMANDS, id, fact_crc(COMMANDS, id)))
    crc = command_crc(id, columns[0], at, body)
    connection.execute(SQL["insert_command"], (id, columns[0], at, body, crc))
    return id


def commands(connection: apsw.Connection, run: RunId) -> list[Command]:
    """Commands that wait, oldest first."""
    columns = run_columns(connection, run)
    found = ask(connection, SQL["commands"], columns[:1]) if columns is not None else []
    return [command_of(command, run) for command in found]


def withdraw(connection: apsw.Connection, run: RunId, command: int) -> bool:
    """Take a command back; whether it was there."""
    columns = run_columns(connection, run)
    if columns is None:
        return False
    connection.execute(SQL["consume_command"], (command, columns[0]))
    return connection.changes() > 0


def annotate(connection: apsw.Connection, annotation: Annotation) -> None:
    """Set, replace or, with an empty body, remove."""
    columns = run_columns(connection, annotation.run)
    if columns is None or not ask(connection, SQL["row"], (columns[0], annotation.seq)):
        reason = "there is no such snapshot"
        raise UnknownSnapshot(run=annotation.run, reference=annotation.seq, reason=reason)
    key = (columns[0], annotation.seq, annotation.kind)
    if not annotation.body:
        connection.execute(SQL["delete_annotation"], key)
        return
    crc = annotation_crc(*key, annotation.body)
    connection.execute(SQL["set_annotation"], (*key, annotation.body, crc))


def annotations(connection: apsw.Connection, run: RunId) -> list[Annotation]:
    """Annotations by sequence number, then kind."""
    columns = run_columns(connection, run)
    found = ask(connection, SQL["annotations"], columns[:1]) if columns is not None else []
    return [annotation_of(annotation, run) for annotation in found]
