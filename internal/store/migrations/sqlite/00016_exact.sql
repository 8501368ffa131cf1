-- +goose Up

-- The exact counts of a day of which one is full, as decimal numbers in the order of the columns. An
-- older program that changes such a day leaves them as they are.
ALTER TABLE domain_days ADD COLUMN exact TEXT;
ALTER TABLE team_days ADD COLUMN exact TEXT;

UPDATE schema_compatibility SET oldest = 12;
