-- +goose Up

-- How many affected forwarded messages of 30 days a person accepted; 0 for none.
ALTER TABLE domains ADD COLUMN forwarding_accepted BIGINT NOT NULL DEFAULT 0;

-- parked is a mark that a user sets; before, a check set it.
UPDATE domains SET parked = FALSE WHERE parked = TRUE;

UPDATE schema_compatibility SET oldest = 12;
