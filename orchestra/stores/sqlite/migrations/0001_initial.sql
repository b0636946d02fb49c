-- The tables as they were first made. A migration is never edited after a release; a change is a new file.

CREATE TABLE meta (
    key TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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
