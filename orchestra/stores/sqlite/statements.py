"""The SQL of this store, read once from the `.sql` files beside this module.

`statements.sql` holds named entries (`-- name: append_row`); an entry may take in another by `{its name}`.
`migrations/` holds numbered scripts that make the tables, `schema.sql` what they make together.
"""

import re
from importlib.resources import files
from typing import Any, Final

import apsw

Columns = tuple[Any, ...]
"""One row as SQLite gives it. A damaged file may hold anything in any column."""

_HERE: Final = files(__package__ or __name__)
_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^--(?! name:).*\n?", re.MULTILINE)
_TAKEN_IN = re.compile(r"\{(\w+)\}")


def parse(text: str) -> dict[str, str]:
    """Named entries of a file, comment lines left out and entries taken in where braces ask for it."""
    parts = _NAME.split(_COMMENT.sub("", text))
    raw = {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    assert len(raw) == len(parts) // 2, "BUG: two SQL entries have one name"
    return {name: _fill_in(body, raw) for name, body in raw.items()}


def _fill_in(body: str, raw: dict[str, str]) -> str:
    while _TAKEN_IN.search(body):
        body = _TAKEN_IN.sub(lambda found: raw[found[1]], body)
    return body


def migrations() -> list[str]:
    """The migration scripts in order; the first brings a database to version 1."""
    folder = _HERE / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1)), "BUG: migrations have gaps"
    return [(folder / name).read_text("utf-8") for name in names]


def ask(connection: apsw.Connection, statement: str, bindings: Any = ()) -> list[Columns]:
    """All rows that a statement gives. Taking all ends it: no reader keeps the log from moving."""
    return connection.execute(statement, bindings).fetchall()


SQL: Final = parse((_HERE / "statements.sql").read_text("utf-8"))
