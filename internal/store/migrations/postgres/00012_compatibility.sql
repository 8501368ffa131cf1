-- +goose Up

-- The oldest version of the schema whose programs can use this one. A program that knows an
-- older schema than this starts if it knows at least that version. Every later migration sets
-- it: UPDATE schema_compatibility SET oldest = 12;
CREATE TABLE schema_compatibility (
    oldest BIGINT NOT NULL PRIMARY KEY
);
INSERT INTO schema_compatibility (oldest) VALUES (12);
