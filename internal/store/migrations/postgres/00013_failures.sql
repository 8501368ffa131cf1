-- +goose Up

-- Failure reports have a retention of their own.
CREATE INDEX failure_reports_by_age ON reports (team_id, received_at) WHERE kind = 'failure';
