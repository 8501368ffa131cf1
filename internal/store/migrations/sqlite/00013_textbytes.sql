-- +goose Up

-- The size of the texts of a report's records beyond the usual, for the quota of stored bytes.
ALTER TABLE reports ADD COLUMN text_bytes BIGINT NOT NULL DEFAULT 0;

UPDATE schema_compatibility SET oldest = 12;
