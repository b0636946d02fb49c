-- What all migrations together make. A test proves it equal to them; the comments are here and not there.

-- Facts about the store itself, such as the id of its address key.
CREATE TABLE meta (
    key TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers that must never go back: "commits" is a floor for rows.no, "commands" the last id given out.
-- They take the place of AUTOINCREMENT, whose sqlite_sequence costs a page per commit and has no check.
CREATE TABLE counters (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per run. The newest row's facts are repeated here, so that a lost newest row is noticed when it is
-- looked for, and so that runs are listed by status without looking at rows.
CREATE TABLE runs (
    run_no INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    family TEXT NOT NULL,
    workflow TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    phase TEXT,
    head INTEGER NOT NULL,
    digest BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    owner TEXT,
    crc INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_by_age ON runs (created_at, run);

-- One row per snapshot, in order of commit: appending fills pages to the brim. `triggers` and `agents` are lists
-- with the unit separator before, between and after the items. `crc` covers the columns and `body_crc`,
-- `body_crc` covers header and patch, which come last: listing columns does not touch their overflow pages.
CREATE TABLE rows (
    no INTEGER PRIMARY KEY,
    run_no INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    phase TEXT,
    triggers TEXT NOT NULL,
    agents TEXT NOT NULL,
    marked INTEGER NOT NULL,
    sealed_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    pruned INTEGER NOT NULL,
    digest BLOB NOT NULL,
    parent BLOB,
    seal BLOB NOT NULL,
    crc INTEGER NOT NULL,
    body_crc INTEGER NOT NULL,
    header BLOB NOT NULL,
    patch BLOB
) STRICT;

-- Eight bytes of the digest stand here too: whoever looks for a digest walks this index, some 30 bytes a row, and
-- compares the whole digest in the row. An index by digest would cost every commit a page in a random place.
CREATE UNIQUE INDEX rows_by_seq ON rows (run_no, seq, substr(digest, 1, 8));

CREATE TABLE objects (
    no INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    body_crc INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX objects_by_digest ON objects (substr(digest, 1, 8));

CREATE TABLE commands (
    id INTEGER PRIMARY KEY,
    run_no INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT;

CREATE INDEX commands_by_run ON commands (run_no, id);

CREATE TABLE annotations (
    run_no INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (run_no, seq, kind)
) STRICT, WITHOUT ROWID;
