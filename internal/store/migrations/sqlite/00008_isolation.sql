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

-- Records and chunks that nothing refers to: those of a delivery that is being written,
-- until lease_until, and those that are to be removed. id is the report_id of the records.
CREATE TABLE orphans (
    id          INTEGER PRIMARY KEY,
    team_id     BIGINT  NOT NULL REFERENCES teams (id),
    chunks      BLOB    NOT NULL,
    lease_until BIGINT  NOT NULL
);

CREATE INDEX orphans_by_lease ON orphans (lease_until, team_id);

-- See the second migration.
DELETE FROM sqlite_stat1 WHERE idx IN ('domains_due', 'domains_deleted');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('domains', 'domains_due', '100000 1 1'),
    ('domains', 'domains_due_of_team', '100000 10 1'),
    ('domains', 'domains_deleted', '100 10 1'),
    ('orphans', 'orphans_by_lease', '100 10 1');
ANALYZE sqlite_schema;
