-- Every statement of the store. An entry begins with its name and ends at the next name; {braces} take in
-- another entry of this file, nothing else is ever put into a statement as text.

-- name: begin_write
BEGIN IMMEDIATE

-- name: begin_read
BEGIN

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: vacuum
VACUUM

-- name: integrity
PRAGMA integrity_check(200)

-- name: schema
SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name

-- Numbers ------------------------------------------------------------------------------------------------------

-- name: newest_no
SELECT (SELECT max(no) FROM rows), c.value, c.crc
FROM (SELECT 1) LEFT JOIN counters AS c ON c.name = 'commits'

-- name: counter
SELECT value, crc FROM counters WHERE name = ?1

-- name: set_counter
INSERT INTO counters (name, value, crc) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, crc = excluded.crc

-- name: meta
SELECT value, crc FROM meta WHERE key = ?1

-- name: set_meta
INSERT INTO meta (key, value, crc) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc

-- Runs ---------------------------------------------------------------------------------------------------------

-- name: run_columns
run_no, run, family, workflow, created_at, status, phase, head, digest, updated_at, fence, owner, crc

-- name: run
SELECT {run_columns} FROM runs WHERE run = ?1

-- name: run_by_no
SELECT {run_columns} FROM runs WHERE run_no = ?1

-- name: newest_run_no
SELECT ifnull(max(run_no), 0) FROM runs

-- name: insert_run
INSERT INTO runs ({run_columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)

-- name: move_head
UPDATE runs SET status = ?2, phase = ?3, head = ?4, digest = ?5, updated_at = ?6, crc = ?7 WHERE run_no = ?1

-- name: move_fence
UPDATE runs SET fence = ?2, owner = ?3, crc = ?4 WHERE run_no = ?1

-- name: delete_run
DELETE FROM runs WHERE run_no = ?1

-- name: runs
SELECT {run_columns} FROM runs
WHERE (:status IS NULL OR instr(:status, char(31) || status || char(31)) > 0)
  AND (:workflow IS NULL OR workflow = :workflow)
  AND (:family IS NULL OR family = :family)
  AND (:contains IS NULL OR instr(run, :contains) > 0)
ORDER BY created_at DESC, run DESC LIMIT :limit OFFSET :offset

-- Rows ---------------------------------------------------------------------------------------------------------

-- name: row_columns
r.no, r.run_no, r.seq, r.at, r.status, r.phase, r.triggers, r.agents, r.marked, r.sealed_at, r.size, r.pruned,
r.digest, r.parent, r.seal, r.crc, r.body_crc

-- name: row_filter
(:phase IS NULL OR r.phase = :phase)
  AND (:agent IS NULL OR instr(r.agents, :agent) > 0)
  AND (:status IS NULL OR instr(:status, char(31) || r.status || char(31)) > 0)
  AND (:since IS NULL OR r.at >= :since)
  AND (:until IS NULL OR r.at <= :until)
  AND (:marked IS NULL OR r.marked = :marked)
  AND (:sealed IS NULL OR (r.sealed_at = r.seq) = :sealed)
  AND (:triggers IS NULL
       OR EXISTS (SELECT 1 FROM json_each(:triggers) AS t WHERE instr(r.triggers, t.value) > 0))

-- name: named_rows
rows AS r LEFT JOIN runs AS n ON n.run_no = r.run_no

-- name: of_run
WHERE r.run_no = :run_no AND r.seq >= :first AND r.seq <= :last AND r.no > :after_no

-- name: of_all
WHERE r.no > :after_no AND r.seq >= :first AND r.seq <= :last

-- name: rows_of_run
SELECT {row_columns}, NULL, NULL FROM rows AS r {of_run} ORDER BY r.seq LIMIT :limit

-- name: rows_of_run_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r {of_run} ORDER BY r.seq LIMIT :limit

-- name: rows_of_run_newest
SELECT {row_columns}, NULL, NULL FROM rows AS r {of_run} ORDER BY r.seq DESC LIMIT :limit

-- name: rows_of_run_newest_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r {of_run} ORDER BY r.seq DESC LIMIT :limit

-- The newest row of a run with the run's entry, in one question: whoever looks at a run asks this first.
-- name: head_of_run
SELECT n.run_no, n.run, n.family, n.workflow, n.created_at, n.status, n.phase, n.head, n.digest, n.updated_at,
n.fence, n.owner, n.crc, {row_columns}, r.header, r.patch
FROM runs AS n LEFT JOIN rows AS r ON r.run_no = n.run_no AND r.seq = n.head WHERE n.run = ?1

-- name: rows_of_run_filtered
SELECT {row_columns}, NULL, NULL FROM rows AS r {of_run} AND {row_filter} ORDER BY r.seq LIMIT :limit

-- name: rows_of_run_filtered_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r {of_run} AND {row_filter} ORDER BY r.seq LIMIT :limit

-- name: rows_of_run_filtered_newest
SELECT {row_columns}, NULL, NULL FROM rows AS r {of_run} AND {row_filter} ORDER BY r.seq DESC LIMIT :limit

-- name: rows_of_run_filtered_newest_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r {of_run} AND {row_filter} ORDER BY r.seq DESC LIMIT :limit

-- name: rows_of_all_by_no
SELECT {row_columns}, NULL, NULL FROM rows AS r {of_all} AND {row_filter} ORDER BY r.no LIMIT :limit

-- name: rows_of_all_by_no_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r {of_all} AND {row_filter} ORDER BY r.no LIMIT :limit

-- name: rows_of_all_by_no_newest
SELECT {row_columns}, NULL, NULL FROM rows AS r {of_all} AND {row_filter} ORDER BY r.no DESC LIMIT :limit

-- name: rows_of_all_by_no_newest_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r {of_all} AND {row_filter} ORDER BY r.no DESC LIMIT :limit

-- name: rows_of_all_by_run
SELECT {row_columns}, NULL, NULL FROM {named_rows} {of_all} AND {row_filter}
ORDER BY n.run, r.seq LIMIT :limit

-- name: rows_of_all_by_run_content
SELECT {row_columns}, r.header, r.patch FROM {named_rows} {of_all} AND {row_filter}
ORDER BY n.run, r.seq LIMIT :limit

-- name: rows_of_all_by_run_newest
SELECT {row_columns}, NULL, NULL FROM {named_rows} {of_all} AND {row_filter}
ORDER BY n.run DESC, r.seq DESC LIMIT :limit

-- name: rows_of_all_by_run_newest_content
SELECT {row_columns}, r.header, r.patch FROM {named_rows} {of_all} AND {row_filter}
ORDER BY n.run DESC, r.seq DESC LIMIT :limit

-- name: rows_after
SELECT {row_columns}, r.header, r.patch FROM rows AS r WHERE r.no > ?1 ORDER BY r.no LIMIT ?2

-- name: find
SELECT {row_columns}, NULL, NULL FROM rows AS r
WHERE r.no IN (SELECT no FROM rows INDEXED BY rows_by_seq WHERE substr(digest, 1, 8) BETWEEN ?1 AND ?2)
AND r.digest BETWEEN ?3 AND ?4
ORDER BY r.digest, r.no LIMIT ?5

-- name: row
SELECT {row_columns}, NULL, NULL FROM rows AS r WHERE r.run_no = ?1 AND r.seq = ?2

-- name: row_content
SELECT {row_columns}, r.header, r.patch FROM rows AS r WHERE r.run_no = ?1 AND r.seq = ?2

-- name: kept_before
SELECT max(seq) FROM rows WHERE run_no = ?1 AND seq < ?2 AND NOT pruned

-- name: kept_after
SELECT min(seq) FROM rows WHERE run_no = ?1 AND seq > ?2 AND NOT pruned

-- name: append_row
INSERT INTO rows (no, run_no, seq, at, status, phase, triggers, agents, marked, sealed_at, size, pruned,
                  digest, parent, seal, crc, body_crc, header, patch)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)

-- name: prune_row
UPDATE rows SET pruned = 1, patch = NULL, crc = ?2, body_crc = ?3 WHERE no = ?1

-- name: delete_rows
DELETE FROM rows WHERE run_no = ?1

-- name: row_span
SELECT count(*), min(seq), max(seq) FROM rows WHERE run_no = ?1

-- name: orphans
SELECT DISTINCT run_no FROM rows WHERE run_no NOT IN (SELECT run_no FROM runs)
UNION SELECT run_no FROM commands WHERE run_no NOT IN (SELECT run_no FROM runs)
UNION SELECT run_no FROM annotations WHERE run_no NOT IN (SELECT run_no FROM runs)

-- Objects ------------------------------------------------------------------------------------------------------

-- name: object
SELECT digest, at, body_crc, crc, body FROM objects WHERE substr(digest, 1, 8) = substr(?1, 1, 8) AND digest = ?1

-- name: object_facts
SELECT no, at, length(body), body_crc, crc FROM objects
WHERE substr(digest, 1, 8) = substr(?1, 1, 8) AND digest = ?1

-- name: objects_after
SELECT no, digest, at, length(body), body_crc, crc FROM objects
WHERE no > ?1 AND no <= ?2 ORDER BY no LIMIT ?3

-- name: newest_object
SELECT ifnull(max(no), 0) FROM objects

-- name: objects_content_after
SELECT no, digest, at, length(body), body_crc, crc, body FROM objects WHERE no > ?1 ORDER BY no LIMIT ?2

-- name: insert_object
INSERT INTO objects (digest, at, crc, body_crc, body) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: refresh_object
UPDATE objects SET at = ?2, crc = ?3 WHERE no = ?1

-- name: delete_object
DELETE FROM objects WHERE no = ?1

-- Commands and annotations -------------------------------------------------------------------------------------

-- name: insert_command
INSERT INTO commands (id, run_no, at, body, crc) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: commands
SELECT id, run_no, at, body, crc FROM commands WHERE run_no = ?1 ORDER BY id

-- name: command
SELECT 1 FROM commands WHERE id = ?1 AND run_no = ?2

-- name: consume_command
DELETE FROM commands WHERE id = ?1 AND run_no = ?2

-- name: delete_commands
DELETE FROM commands WHERE run_no = ?1

-- name: set_annotation
INSERT INTO annotations (run_no, seq, kind, body, crc) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (run_no, seq, kind) DO UPDATE SET body = excluded.body, crc = excluded.crc

-- name: annotations
SELECT run_no, seq, kind, body, crc FROM annotations WHERE run_no = ?1 ORDER BY seq, kind

-- name: delete_annotation
DELETE FROM annotations WHERE run_no = ?1 AND seq = ?2 AND kind = ?3

-- name: delete_annotations
DELETE FROM annotations WHERE run_no = ?1

-- Everything, for counting and checking ------------------------------------------------------------------------

-- name: stats
SELECT (SELECT count(*) FROM runs),
       (SELECT count(*) FROM rows),
       (SELECT count(*) FROM rows WHERE pruned),
       (SELECT count(*) FROM objects),
       (SELECT ifnull(sum(length(body)), 0) FROM objects),
       (SELECT ifnull(sum(length(header) + ifnull(length(patch), 0)), 0) FROM rows)

-- name: all_meta
SELECT key, value, crc FROM meta

-- name: all_counters
SELECT name, value, crc FROM counters

-- name: all_runs
SELECT {run_columns} FROM runs ORDER BY run_no

-- name: all_commands
SELECT id, run_no, at, body, crc FROM commands

-- name: all_annotations
SELECT run_no, seq, kind, body, crc FROM annotations
