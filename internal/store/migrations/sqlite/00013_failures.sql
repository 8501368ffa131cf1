-- +goose Up

-- Failure reports have a retention of their own.
CREATE INDEX failure_reports_by_age ON reports (team_id, received_at) WHERE kind = 'failure';

-- See the second migration.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('reports', 'failure_reports_by_age', '10000 100 2');
ANALYZE sqlite_schema;
