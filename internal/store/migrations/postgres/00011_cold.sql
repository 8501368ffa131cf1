-- +goose Up

SET LOCAL statement_timeout = 0;

-- Old records, stored by column: blocks in the format of package cold. id is of a group of
-- reports whose records were stored together, in the order of (report, share, n); the columns
-- tell the first report and the last record of each block. sum is the SHA-256 of the block,
-- which is in a bucket under the name blob, unless that is ''. rows_left tells that the table
-- records may still have the rows. The group is written anew, or removed, at rewrite_at; 0 is
-- never.
CREATE TABLE cold_blocks (
    team_id      BIGINT  NOT NULL,
    id           BIGINT  NOT NULL,
    n            INTEGER NOT NULL,
    first_report BIGINT  NOT NULL,
    last_report  BIGINT  NOT NULL,
    last_share   INTEGER NOT NULL,
    last_n       INTEGER NOT NULL,
    records      BIGINT  NOT NULL,
    bytes        BIGINT  NOT NULL,
    sum          BYTEA   NOT NULL,
    blob         TEXT    NOT NULL,
    block        BYTEA   NOT NULL,
    rows_left    BOOLEAN NOT NULL,
    rewrite_at   BIGINT  NOT NULL,
    PRIMARY KEY (team_id, id, n)
);

-- They are compressed already.
ALTER TABLE cold_blocks ALTER COLUMN block SET STORAGE EXTERNAL;
-- After that: Citus manages a table that refers to teams, and cannot set the storage of its columns.
ALTER TABLE cold_blocks ADD FOREIGN KEY (team_id) REFERENCES teams (id);

CREATE INDEX cold_blocks_by_report ON cold_blocks (team_id, last_report) WHERE rewrite_at = 0;
CREATE INDEX cold_blocks_to_rewrite ON cold_blocks (rewrite_at, team_id) WHERE rewrite_at > 0;

-- Objects of the bucket that no block refers to: one that is being written, until lease_until,
-- and those that are to be removed.
CREATE TABLE unused_blobs (
    team_id     BIGINT NOT NULL REFERENCES teams (id),
    blob        TEXT   NOT NULL,
    lease_until BIGINT NOT NULL,
    PRIMARY KEY (team_id, blob)
);

CREATE INDEX unused_blobs_by_lease ON unused_blobs (lease_until, team_id);

-- The id of the blocks with the records of the report; 0 if they are in the table records.
ALTER TABLE reports ADD COLUMN cold BIGINT NOT NULL DEFAULT 0;
CREATE INDEX reports_of_cold ON reports (team_id, cold) WHERE cold > 0;
