-- +goose Up

-- How much a team may have: 0 is any amount, -1 that of the installation. The team
-- "default" has no quotas.
ALTER TABLE teams ADD COLUMN quota_domains    BIGINT NOT NULL DEFAULT -1;
ALTER TABLE teams ADD COLUMN quota_stored     BIGINT NOT NULL DEFAULT -1;
ALTER TABLE teams ADD COLUMN quota_unreadable BIGINT NOT NULL DEFAULT -1;
ALTER TABLE teams ADD COLUMN quota_reports    BIGINT NOT NULL DEFAULT -1;
ALTER TABLE teams ADD COLUMN quota_mailboxes  BIGINT NOT NULL DEFAULT -1;
UPDATE teams SET quota_domains = 0, quota_stored = 0, quota_unreadable = 0, quota_reports = 0, quota_mailboxes = 0
WHERE name = 'default';

-- The bytes that a row accounts for: of an original, compressed; of something rejected,
-- those of its original unless another row has them.
ALTER TABLE originals ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE originals SET bytes = octet_length(packed) + COALESCE((SELECT SUM(octet_length(original_chunks.packed)) FROM original_chunks
    WHERE original_chunks.team_id = originals.team_id AND original_chunks.hash = originals.hash), 0);
ALTER TABLE rejected ADD COLUMN bytes BIGINT NOT NULL DEFAULT 500;

-- The domain whose reporting address something rejected was sent to, 0 for none.
ALTER TABLE rejected ADD COLUMN domain_id BIGINT NOT NULL DEFAULT 0;
CREATE INDEX rejected_of_domain ON rejected (team_id, domain_id) WHERE domain_id <> 0;

-- What a team stored and removed on each day: stored and unreadable add up to what it
-- has, in bytes. reports counts what was received.
CREATE TABLE team_usage (
    team_id    BIGINT  NOT NULL REFERENCES teams (id),
    day        INTEGER NOT NULL,
    stored     BIGINT  NOT NULL,
    unreadable BIGINT  NOT NULL,
    reports    BIGINT  NOT NULL,
    PRIMARY KEY (team_id, day)
);

INSERT INTO team_usage (team_id, day, stored, unreadable, reports)
SELECT teams.id, 0,
    COALESCE((SELECT SUM(bytes) FROM originals WHERE originals.team_id = teams.id), 0)
    + COALESCE((SELECT SUM(1000 + octet_length(document) + CASE WHEN emptied_at <= 0 THEN 100 * records ELSE 0 END)
        FROM reports WHERE reports.team_id = teams.id), 0)
    + 500 * (SELECT COUNT(*) FROM rejected WHERE rejected.team_id = teams.id),
    500 * (SELECT COUNT(*) FROM rejected WHERE rejected.team_id = teams.id), 0
FROM teams;

-- The reporting addresses of deleted domains. They are given to no other domain, and a
-- domain that is added again gets its own back.
CREATE TABLE retired_mailboxes (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    name       TEXT   NOT NULL, -- of the domain
    mailbox    TEXT   NOT NULL UNIQUE,
    retired_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, name)
);

CREATE INDEX retired_mailboxes_by_age ON retired_mailboxes (retired_at);
