-- +goose Up

-- Senders that a team added, and corrections of known ones. networks, hosts and domains are
-- how it is recognized: one in each line.
CREATE TABLE team_senders (
    team_id  BIGINT NOT NULL REFERENCES teams (id),
    key      TEXT   NOT NULL,
    name     TEXT   NOT NULL,
    class    TEXT   NOT NULL, -- for all domains; '' leaves it to the reports
    networks TEXT   NOT NULL,
    hosts    TEXT   NOT NULL,
    domains  TEXT   NOT NULL,
    PRIMARY KEY (team_id, key)
) WITHOUT ROWID;
