-- +goose Up

-- Checks of a domain that began and did not end since the last one that did, plus the
-- one that runs. After too many of them the domain is left out of the schedule.
ALTER TABLE domains ADD COLUMN unfinished INTEGER NOT NULL DEFAULT 0;

-- The schedule asks which teams have something due, then claims for one team.
DROP INDEX domains_due;
CREATE INDEX domains_due ON domains (next_check_at, team_id) WHERE deleted_at = 0;
CREATE INDEX domains_due_of_team ON domains (team_id, next_check_at) WHERE deleted_at = 0;
DROP INDEX domains_deleted;
CREATE INDEX domains_deleted ON domains (team_id, deleted_at) WHERE deleted_at > 0;

-- The key of an original's rows in original_chunks, empty where there are none. It is not
-- the hash: the chunks are written before the original, maybe by two processes at once.
ALTER TABLE originals ADD COLUMN chunks BLOB NOT NULL DEFAULT x'';
UPDATE originals SET chunks = hash WHERE EXISTS
    (SELECT 1 FROM original_chunks WHERE original_chunks.team_id = originals.team_id AND original_chunks.hash = originals.hash);

-- Chunks that no original refers to: those of a delivery that is being received, until
-- lease_until, and those that are to be removed.
CREATE TABLE unused_chunks (
    team_id     BIGINT NOT NULL REFERENCES teams (id),
    chunks      BLOB   NOT NULL,
    lease_until BIGINT NOT NULL,
    PRIMARY KEY (team_id, chunks)
);

CREATE INDEX unused_chunks_by_lease ON unused_chunks (lease_until, team_id);

-- A large report is received in several transactions. Until the last of them it is in
-- the state 'deleted', and left alone by the purge until that time.
ALTER TABLE reports ADD COLUMN pending_until BIGINT NOT NULL DEFAULT 0;

-- See the second migration.
DELETE FROM sqlite_stat1 WHERE idx IN ('domains_due', 'domains_deleted');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('domains', 'domains_due', '100000 1 1'),
    ('domains', 'domains_due_of_team', '100000 10 1'),
    ('domains', 'domains_deleted', '100 10 1'),
    ('unused_chunks', 'sqlite_autoindex_unused_chunks_1', '100 10 1'),
    ('unused_chunks', 'unused_chunks_by_lease', '100 10 1');
ANALYZE sqlite_schema;
