-- +goose Up

-- Which process does a job, until when it may go on, and when the job is due again. holder is
-- a random number of the process.
CREATE TABLE job_leases (
    name        TEXT   NOT NULL PRIMARY KEY,
    holder      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    due_at      BIGINT NOT NULL
);
