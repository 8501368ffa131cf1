-- +goose Up

-- state says whether the messages of a report are counted: 'counted'; 'excluded' by an
-- editor; 'replaced' by another version; 'held', with the reason, until an editor
-- releases it; or 'deleted', which hides the report until its rows are purged. At most
-- one version of each identity is counted or excluded: the current one.
ALTER TABLE reports ADD COLUMN state       TEXT NOT NULL DEFAULT 'counted';
ALTER TABLE reports ADD COLUMN held_reason TEXT NOT NULL DEFAULT '';

UPDATE reports SET state = 'replaced' WHERE replaced = true;

DROP INDEX reports_that_count;
DROP INDEX reports_of_content;
ALTER TABLE reports DROP COLUMN replaced;
ALTER TABLE shares DROP COLUMN replaced;

CREATE UNIQUE INDEX reports_of_content ON reports (team_id, identity, content) WHERE state <> 'deleted';
CREATE UNIQUE INDEX reports_current ON reports (team_id, identity) WHERE state = 'counted' OR state = 'excluded';
CREATE INDEX reports_deleted ON reports (id) WHERE state = 'deleted';
CREATE INDEX reports_held ON reports (team_id, id) WHERE state = 'held';

-- See the second migration.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('reports', 'reports_of_content', '1000000 10000 2 1'),
    ('reports', 'reports_current', '1000000 10000 1'),
    ('reports', 'reports_deleted', '100 1'),
    ('reports', 'reports_held', '100 10 1');
ANALYZE sqlite_schema;
