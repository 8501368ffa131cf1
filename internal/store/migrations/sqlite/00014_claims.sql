-- +goose Up

-- A domain that was added while reports waited for it gets their shares in several steps. It is
-- claiming until none is left.
ALTER TABLE domains ADD COLUMN claiming BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX domains_claiming ON domains (team_id) WHERE claiming;

UPDATE schema_compatibility SET oldest = 12;
