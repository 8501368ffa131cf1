-- +goose Up

-- A migration may take longer than any other statement of ours should.
SET LOCAL statement_timeout = 0;

CREATE TABLE teams (
    id         BIGINT  PRIMARY KEY,
    name       TEXT    NOT NULL COLLATE "C" UNIQUE,
    api        BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL
);

-- A token's secret is not here: hash is its SHA-256.
CREATE TABLE tokens (
    id         BIGINT  PRIMARY KEY,
    team_id    BIGINT  NOT NULL REFERENCES teams (id),
    name       TEXT    NOT NULL,
    hash       BYTEA   NOT NULL UNIQUE,
    scope      TEXT    NOT NULL,
    created_at BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL,
    used_at    BIGINT  NOT NULL,
    revoked_at BIGINT  NOT NULL
);

CREATE INDEX tokens_of_team ON tokens (team_id, created_at);

-- A deleted domain stays as a hidden row until its data is purged. compliant and
-- non_compliant are the sums of its days.
CREATE TABLE domains (
    id             BIGINT  PRIMARY KEY,
    team_id        BIGINT  NOT NULL REFERENCES teams (id),
    name           TEXT    NOT NULL COLLATE "C", -- sorts by byte, as SQLite does
    active         BOOLEAN NOT NULL DEFAULT FALSE,
    record         TEXT    NOT NULL DEFAULT '',
    record_domain  TEXT    NOT NULL DEFAULT '', -- who publishes it
    policy         TEXT    NOT NULL DEFAULT '',
    purpose        TEXT    NOT NULL DEFAULT '',
    report_mailbox TEXT    NOT NULL UNIQUE,
    compliant      BIGINT  NOT NULL DEFAULT 0,
    non_compliant  BIGINT  NOT NULL DEFAULT 0,
    created_at     BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL,
    grade          TEXT    NOT NULL DEFAULT '',
    checked_at     BIGINT  NOT NULL DEFAULT 0, -- the last check, conclusive or not
    known_at       BIGINT  NOT NULL DEFAULT 0, -- the last conclusive one
    known_until    BIGINT  NOT NULL DEFAULT 0, -- how long caches may hold what it saw
    failures       INTEGER NOT NULL DEFAULT 0, -- inconclusive ones since
    reason         TEXT    NOT NULL DEFAULT '', -- of the last of them
    doubted        TEXT    NOT NULL DEFAULT '', -- a change that was seen once, and waits for a second look
    full_at        BIGINT  NOT NULL DEFAULT 0, -- the last look at everything
    next_full_at   BIGINT  NOT NULL, -- the next
    next_check_at  BIGINT  NOT NULL, -- the next look, at DMARC or at everything
    deleted_at     BIGINT  NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX domains_by_name ON domains (team_id, name) WHERE deleted_at = 0;
CREATE INDEX domains_due ON domains (next_check_at) WHERE deleted_at = 0;
CREATE INDEX domains_deleted ON domains (deleted_at) WHERE deleted_at > 0;

-- One row for as long as looks at everything come out the same: first_at is when
-- the first of them began, last_at when the latest did. document is what was
-- seen, changes what is different from the row before, errors the findings of
-- that level, one a line.
CREATE TABLE checks (
    id        BIGINT  PRIMARY KEY,
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL REFERENCES domains (id),
    first_at  BIGINT  NOT NULL,
    last_at   BIGINT  NOT NULL,
    grade     TEXT    NOT NULL,
    document  TEXT    NOT NULL,
    changes   TEXT    NOT NULL,
    errors    TEXT    NOT NULL
);

CREATE INDEX checks_of_domain ON checks (team_id, domain_id, first_at, id);

CREATE TABLE events (
    id        BIGINT  PRIMARY KEY,
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL REFERENCES domains (id),
    at        BIGINT  NOT NULL,
    kind      TEXT    NOT NULL,
    before    TEXT    NOT NULL,
    after     TEXT    NOT NULL
);

CREATE INDEX events_of_team ON events (team_id, at, id);
CREATE INDEX events_of_domain ON events (team_id, domain_id, at, id);

-- Messages by day, for a domain and for all present domains of a team. The
-- second is the sum of the first, kept so that a team with 100,000 domains is
-- summed up as fast as one with three.
CREATE TABLE domain_days (
    team_id       BIGINT  NOT NULL REFERENCES teams (id),
    domain_id     BIGINT  NOT NULL REFERENCES domains (id),
    day           INTEGER NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    PRIMARY KEY (team_id, domain_id, day)
);

CREATE TABLE team_days (
    team_id       BIGINT  NOT NULL REFERENCES teams (id),
    day           INTEGER NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    PRIMARY KEY (team_id, day)
);
