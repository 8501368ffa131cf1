-- +goose Up

-- A report is found by the id that its reporter gave it.
CREATE INDEX reports_of_external_id ON reports (team_id, external_id);

UPDATE schema_compatibility SET oldest = 12;
