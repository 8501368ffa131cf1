-- +goose Up

-- tags are those of the team, in order, each with a space before and after it: ' eu shop '.
-- parked tells that the latest full check found a domain that takes and sends no mail.
-- sample tells that the domain and all its data are made up, and that its DNS is not
-- queried.
ALTER TABLE domains ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE domains ADD COLUMN parked BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE domains ADD COLUMN sample BOOLEAN NOT NULL DEFAULT FALSE;
