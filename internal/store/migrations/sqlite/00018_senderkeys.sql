-- +goose Up

-- A sender is a part of a network or service now: all days with mail are due once, so that the
-- senders and the figures behind alerts get the new keys.
UPDATE team_days SET in_senders = -2 - in_senders WHERE in_senders = changes AND (compliant > 0 OR non_compliant > 0);

UPDATE schema_compatibility SET oldest = 12;
