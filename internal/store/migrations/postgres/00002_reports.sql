-- +goose Up

-- A migration may take longer than any other statement of ours should.
SET LOCAL statement_timeout = 0;

-- How long data is kept, in seconds: 0 is for ever, -1 as configured.
ALTER TABLE teams ADD COLUMN keep_originals BIGINT NOT NULL DEFAULT -1;
ALTER TABLE teams ADD COLUMN keep_records   BIGINT NOT NULL DEFAULT -1;
ALTER TABLE teams ADD COLUMN keep_counters  BIGINT NOT NULL DEFAULT -1;

-- What receivers did with the messages of a day (the rest was delivered), and
-- how many passed DKIM and SPF, aligned.
ALTER TABLE domain_days ADD COLUMN quarantined BIGINT NOT NULL DEFAULT 0;
ALTER TABLE domain_days ADD COLUMN rejected    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE domain_days ADD COLUMN dkim        BIGINT NOT NULL DEFAULT 0;
ALTER TABLE domain_days ADD COLUMN spf         BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN quarantined BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN rejected    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN dkim        BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN spf         BIGINT NOT NULL DEFAULT 0;

CREATE INDEX domain_days_by_age ON domain_days (team_id, day);

-- Deliveries as they were sent, compressed, by their SHA-256. packed is the
-- beginning; what does not fit is in original_chunks, from n = 1 on.
CREATE TABLE originals (
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    hash      BYTEA   NOT NULL,
    size      BIGINT  NOT NULL, -- as it was sent
    packed    BYTEA   NOT NULL,
    stored_at BIGINT  NOT NULL,
    PRIMARY KEY (team_id, hash)
);

CREATE INDEX originals_by_age ON originals (team_id, stored_at);

CREATE TABLE original_chunks (
    team_id BIGINT  NOT NULL REFERENCES teams (id),
    hash    BYTEA   NOT NULL,
    n       INTEGER NOT NULL,
    packed  BYTEA   NOT NULL,
    PRIMARY KEY (team_id, hash, n)
);

-- A row for each version of a report; one of each identity counts. Ids grow with
-- time: the list is in their order, and what came together lies together.
CREATE TABLE reports (
    id           BIGINT  PRIMARY KEY,
    team_id      BIGINT  NOT NULL REFERENCES teams (id),
    kind         TEXT    NOT NULL,
    identity     BYTEA   NOT NULL, -- which report of which reporter
    content      BYTEA   NOT NULL, -- what it says
    replaced     BOOLEAN NOT NULL,
    organization TEXT    NOT NULL,
    external_id  TEXT    NOT NULL,
    domain       TEXT    NOT NULL,
    begin_at     BIGINT  NOT NULL,
    end_at       BIGINT  NOT NULL,
    records      BIGINT  NOT NULL,
    messages     BIGINT  NOT NULL,
    compliant    BIGINT  NOT NULL,
    quirks       TEXT    NOT NULL, -- a line each
    damage       TEXT    NOT NULL,
    intake       TEXT    NOT NULL,
    genuine      TEXT    NOT NULL,
    verdict      TEXT    NOT NULL, -- a line each: From, DKIM, SPF, DMARC, reason
    received_at  BIGINT  NOT NULL,
    original     BYTEA   NOT NULL,
    member       TEXT    NOT NULL,
    document     TEXT    NOT NULL,
    emptied_at   BIGINT  NOT NULL DEFAULT 0 -- when its records went, by age; -1 while they go
);

CREATE UNIQUE INDEX reports_of_content ON reports (team_id, identity, content);
CREATE UNIQUE INDEX reports_that_count ON reports (team_id, identity) WHERE replaced = false;
CREATE INDEX reports_of_team ON reports (team_id, id, begin_at);
CREATE INDEX reports_by_age ON reports (team_id, end_at) WHERE emptied_at <= 0;
CREATE INDEX reports_without_records ON reports (team_id, begin_at) WHERE emptied_at > 0;
CREATE INDEX reports_of_original ON reports (team_id, original);

-- The records of a report about one From domain: what they count, on which day
-- and for which domain, 0 for none yet. The two paths are the labels of the
-- From domain and of the policy domain from the root down: whoever adds a domain
-- finds what waits for it, and for the names below it, as one range.
CREATE TABLE shares (
    report_id     BIGINT  NOT NULL REFERENCES reports (id),
    n             INTEGER NOT NULL,
    team_id       BIGINT  NOT NULL REFERENCES teams (id),
    domain_id     BIGINT  NOT NULL,
    kind          TEXT    NOT NULL,
    day           INTEGER NOT NULL,
    replaced      BOOLEAN NOT NULL,
    header_from   TEXT    NOT NULL,
    from_path     TEXT    NOT NULL COLLATE "C",
    policy_path   TEXT    NOT NULL COLLATE "C",
    records       BIGINT  NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    quarantined   BIGINT  NOT NULL,
    rejected      BIGINT  NOT NULL,
    dkim          BIGINT  NOT NULL,
    spf           BIGINT  NOT NULL,
    PRIMARY KEY (report_id, n)
);

CREATE INDEX shares_of_domain ON shares (team_id, domain_id, day);
CREATE INDEX shares_unclaimed_from ON shares (team_id, from_path) WHERE domain_id = 0;
CREATE INDEX shares_unclaimed_policy ON shares (team_id, policy_path) WHERE domain_id = 0;

-- The rows of aggregate reports. They have no team of their own: whoever reads
-- them comes from a share. They have no references either, which would be looked
-- up for each of millions. details is what is shown and never asked for.
CREATE TABLE records (
    report_id   BIGINT  NOT NULL,
    share       INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    source      TEXT    NOT NULL,
    count       BIGINT  NOT NULL,
    disposition TEXT    NOT NULL,
    dkim        TEXT    NOT NULL,
    spf         TEXT    NOT NULL,
    details     TEXT    NOT NULL,
    PRIMARY KEY (report_id, share, n)
);

-- The DKIM selectors with which a domain's mail was signed, by the reports.
CREATE TABLE selectors (
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL,
    signer    TEXT    NOT NULL, -- the domain that signs
    selector  TEXT    NOT NULL,
    day       INTEGER NOT NULL, -- the last
    PRIMARY KEY (team_id, domain_id, signer, selector)
);

-- What was sent and could not be used; the bytes are in originals.
CREATE TABLE rejected (
    id          BIGINT  PRIMARY KEY,
    team_id     BIGINT  NOT NULL REFERENCES teams (id),
    kind        TEXT    NOT NULL, -- what it looks like
    intake      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    member      TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    genuine     TEXT    NOT NULL,
    verdict     TEXT    NOT NULL,
    received_at BIGINT  NOT NULL,
    original    BYTEA   NOT NULL
);

CREATE UNIQUE INDEX rejected_once ON rejected (team_id, original, member);
CREATE INDEX rejected_of_team ON rejected (team_id, id);
CREATE INDEX rejected_by_age ON rejected (team_id, received_at);

-- Mailboxes that are read by IMAP. secret is sealed with a key that is not in
-- the database.
CREATE TABLE mailboxes (
    id           BIGINT  PRIMARY KEY,
    team_id      BIGINT  NOT NULL REFERENCES teams (id),
    host         TEXT    NOT NULL,
    port         INTEGER NOT NULL,
    security     TEXT    NOT NULL,
    username     TEXT    NOT NULL,
    method       TEXT    NOT NULL,
    secret       BYTEA   NOT NULL,
    folder       TEXT    NOT NULL,
    after        TEXT    NOT NULL,
    move_to      TEXT    NOT NULL,
    uid_validity BIGINT  NOT NULL DEFAULT 0,
    last_uid     BIGINT  NOT NULL DEFAULT 0,
    created_at   BIGINT  NOT NULL,
    seen_at      BIGINT  NOT NULL DEFAULT 0, -- when it was last looked into
    error        TEXT    NOT NULL DEFAULT '',
    error_at     BIGINT  NOT NULL DEFAULT 0,
    lease_until  BIGINT  NOT NULL DEFAULT 0
);

CREATE INDEX mailboxes_of_team ON mailboxes (team_id, created_at);

-- Names of addresses that send mail, as their owners publish them.
CREATE TABLE reverse_names (
    address   TEXT   PRIMARY KEY,
    name      TEXT   NOT NULL, -- '' for none
    looked_at BIGINT NOT NULL
);
