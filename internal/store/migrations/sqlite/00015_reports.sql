-- +goose Up

-- A report is found by the id that its reporter gave it.
CREATE INDEX reports_of_external_id ON reports (team_id, external_id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('reports', 'reports_of_external_id', '1000000 10000 2');

-- A short entry lets the planner prefer the index to the primary key: it has the days of
-- reports, so that those of other days are not read.
UPDATE sqlite_stat1 SET stat = '1000000 10000 1 1 sz=4' WHERE idx = 'reports_of_team';
ANALYZE sqlite_schema;

UPDATE schema_compatibility SET oldest = 12;
