-- +goose Up

-- The first and the last day on which mail of a sender was reported, over all time: for a
-- domain, and with domain_id 0 for all present domains of a team. key is that of a network
-- in package insight. It outlives the records.
CREATE TABLE senders (
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL,
    key       TEXT    NOT NULL,
    first_day INTEGER NOT NULL,
    last_day  INTEGER NOT NULL,
    PRIMARY KEY (team_id, domain_id, key)
);

-- in_senders is the last change of the day that senders has; removed is the last change by
-- which records went that should not have counted; expired tells that records went because
-- of their age, so that those which are left do not tell all senders of the day.
ALTER TABLE team_days ADD COLUMN in_senders BIGINT NOT NULL DEFAULT -1;
ALTER TABLE team_days ADD COLUMN removed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN expired BOOLEAN NOT NULL DEFAULT FALSE;

CREATE INDEX team_days_not_in_senders ON team_days (team_id, day) WHERE in_senders <> changes;
