-- +goose Up

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
    hash      BLOB    NOT NULL,
    size      BIGINT  NOT NULL, -- as it was sent
    packed    BLOB    NOT NULL,
    stored_at BIGINT  NOT NULL,
    PRIMARY KEY (team_id, hash)
);

CREATE INDEX originals_by_age ON originals (team_id, stored_at);

CREATE TABLE original_chunks (
    team_id BIGINT  NOT NULL REFERENCES teams (id),
    hash    BLOB    NOT NULL,
    n       INTEGER NOT NULL,
    packed  BLOB    NOT NULL,
    PRIMARY KEY (team_id, hash, n)
);

-- A row for each version of a report; one of each identity counts. Ids grow with
-- time: the list is in their order, and what came together lies together.
CREATE TABLE reports (
    id           INTEGER PRIMARY KEY,
    team_id      BIGINT  NOT NULL REFERENCES teams (id),
    kind         TEXT    NOT NULL,
    identity     BLOB    NOT NULL, -- which report of which reporter
    content      BLOB    NOT NULL, -- what it says
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
    original     BLOB    NOT NULL,
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
    from_path     TEXT    NOT NULL,
    policy_path   TEXT    NOT NULL,
    records       BIGINT  NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    quarantined   BIGINT  NOT NULL,
    rejected      BIGINT  NOT NULL,
    dkim          BIGINT  NOT NULL,
    spf           BIGINT  NOT NULL,
    PRIMARY KEY (report_id, n)
) WITHOUT ROWID;

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
) WITHOUT ROWID;

-- The DKIM selectors with which a domain's mail was signed, by the reports.
CREATE TABLE selectors (
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL,
    signer    TEXT    NOT NULL, -- the domain that signs
    selector  TEXT    NOT NULL,
    day       INTEGER NOT NULL, -- the last
    PRIMARY KEY (team_id, domain_id, signer, selector)
) WITHOUT ROWID;

-- What was sent and could not be used; the bytes are in originals.
CREATE TABLE rejected (
    id          INTEGER PRIMARY KEY,
    team_id     BIGINT  NOT NULL REFERENCES teams (id),
    kind        TEXT    NOT NULL, -- what it looks like
    intake      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    member      TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    genuine     TEXT    NOT NULL,
    verdict     TEXT    NOT NULL,
    received_at BIGINT  NOT NULL,
    original    BLOB    NOT NULL
);

CREATE UNIQUE INDEX rejected_once ON rejected (team_id, original, member);
CREATE INDEX rejected_of_team ON rejected (team_id, id);
CREATE INDEX rejected_by_age ON rejected (team_id, received_at);

-- Mailboxes that are read by IMAP. secret is sealed with a key that is not in
-- the database.
CREATE TABLE mailboxes (
    id           INTEGER PRIMARY KEY,
    team_id      BIGINT  NOT NULL REFERENCES teams (id),
    host         TEXT    NOT NULL,
    port         INTEGER NOT NULL,
    security     TEXT    NOT NULL,
    username     TEXT    NOT NULL,
    method       TEXT    NOT NULL,
    secret       BLOB    NOT NULL,
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
    address   TEXT   PRIMARY KEY NOT NULL,
    name      TEXT   NOT NULL, -- '' for none
    looked_at BIGINT NOT NULL
);

-- How selective the indexes are in an installation of some size, as ANALYZE would
-- find: rows, and how many share the first column, the first two and so on. Without
-- this SQLite takes a team's id to be as good as a report's, and reads all rows of
-- the team.
ANALYZE sqlite_schema;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('tokens', 'tokens_of_team', '1000 10 1'),
    ('domains', 'domains_by_name', '100000 1000 1'),
    ('domains', 'domains_due', '100000 1'),
    ('domains', 'domains_deleted', '100 1'),
    ('checks', 'checks_of_domain', '1000000 10000 10 1 1'),
    ('events', 'events_of_team', '1000000 10000 2 1'),
    ('events', 'events_of_domain', '1000000 10000 10 1 1'),
    ('domain_days', 'domain_days', '10000000 100000 300 1'),
    ('domain_days', 'domain_days_by_age', '10000000 100000 300'),
    ('team_days', 'team_days', '100000 300 1'),
    ('originals', 'sqlite_autoindex_originals_1', '1000000 10000 1'),
    ('originals', 'originals_by_age', '1000000 10000 10'),
    ('original_chunks', 'sqlite_autoindex_original_chunks_1', '100000 1000 2 1'),
    ('reports', 'reports_of_content', '1000000 10000 2 1'),
    ('reports', 'reports_that_count', '1000000 10000 1'),
    ('reports', 'reports_of_team', '1000000 10000 1 1'),
    ('reports', 'reports_by_age', '1000000 10000 100'),
    ('reports', 'reports_of_original', '1000000 10000 1'),
    ('shares', 'shares', '2000000 2 1'),
    ('shares', 'shares_of_domain', '2000000 20000 1000 5'),
    ('shares', 'shares_unclaimed_from', '100000 10000 10'),
    ('shares', 'shares_unclaimed_policy', '100000 10000 10'),
    ('records', 'records', '50000000 50 30 1'),
    ('selectors', 'selectors', '100000 1000 5 2 1'),
    ('rejected', 'rejected_once', '10000 100 1 1'),
    ('rejected', 'rejected_of_team', '10000 100 1'),
    ('rejected', 'rejected_by_age', '10000 100 2'),
    ('mailboxes', 'mailboxes_of_team', '1000 5 1');
ANALYZE sqlite_schema;
