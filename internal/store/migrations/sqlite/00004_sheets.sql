-- +goose Up

-- changes counts how often something changed in the records that count in the day, and
-- broken is the last of these changes by which some of them went; on_sheet is the last
-- that the sheet of the day has, and sheet_at when it was made.
ALTER TABLE team_days ADD COLUMN changes  BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN broken   BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN on_sheet BIGINT NOT NULL DEFAULT -1;
ALTER TABLE team_days ADD COLUMN sheet_at BIGINT NOT NULL DEFAULT 0;

-- A sheet has all records that count in a team's day, as far as they tell who sent
-- mail: one row is read instead of tens of thousands. It is made from the records,
-- and may be lost.
CREATE TABLE day_sheets (
    team_id BIGINT  NOT NULL REFERENCES teams (id),
    day     INTEGER NOT NULL,
    records BIGINT  NOT NULL,
    sheet   BLOB    NOT NULL,
    PRIMARY KEY (team_id, day)
);

-- The days that are to be put on a sheet. One of fewer messages has few records, and
-- needs none, unless an old sheet has to go.
CREATE INDEX team_days_not_on_sheet ON team_days (team_id, day)
    WHERE (compliant + non_compliant >= 2000 OR on_sheet >= 0) AND on_sheet < changes;

-- See the second migration.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('day_sheets', 'sqlite_autoindex_day_sheets_1', '10000 100 1'),
    ('team_days', 'team_days_not_on_sheet', '100 10 1');
ANALYZE sqlite_schema;
